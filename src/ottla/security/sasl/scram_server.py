"""The server's side of SCRAM: two messages in, two out."""

import base64
from collections.abc import Callable

from ottla.base.errors import shortened
from ottla.security.sasl import scram_messages
from ottla.security.sasl.failures import AuthenticationFailed, MalformedExchange
from ottla.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    fake_credential,
    is_proof,
    mac,
)
from ottla.security.sasl.scram_messages import ClientFirst

# RFC 5802 leaves the length to the server: 24 bytes can't be guessed.
NONCE_BYTES = 24

# Returns a user's or, if the flag is set, a delegation token's credential; None if missing.
FindCredential = Callable[[str, bool], ScramCredential | None]


class ScramServer:
    """One exchange. `user` is set once `step` has accepted the proof.

    An unknown user gets the same steps as a known one, with a salt that stays the same, so that
    answers do not reveal which users exist.
    """

    def __init__(
        self, mechanism: ScramMechanism, find: FindCredential, nonce: bytes, secret: bytes
    ) -> None:
        """Start an exchange. `nonce` is NONCE_BYTES of random bytes, used only once.

        The fake credentials of unknown users are derived from `secret`.
        """
        self.user: str | None = None
        self.is_token = False
        self._mechanism = mechanism
        self._find = find
        self._own_nonce = base64.b64encode(nonce).decode()
        self._secret = secret
        self._first: ClientFirst | None = None
        self._server_first = b""
        self._credential: ScramCredential | None = None
        # The user's credential, or the fake one of an unknown user.
        self._shown: ScramCredential | None = None
        self._is_over = False

    def step(self, message: bytes) -> bytes:
        """Answer the client's next message. Raises AuthenticationFailed."""
        if self._is_over:
            raise self._malformed("the exchange is over")
        try:
            if self._first is None:
                return self._greet(message)
            self._is_over = True
            return self._judge(self._first, message)
        except ValueError as error:
            self._is_over = True
            raise self._malformed(str(error)) from None

    def _greet(self, message: bytes) -> bytes:
        self._first = first = scram_messages.read_client_first(message)
        self.is_token = scram_messages.is_of_token(first)
        self._credential = self._find(first.user, self.is_token)
        # Computed even for a known user, so that both cases take the same time.
        fake = fake_credential(self._mechanism, self._secret, first.user, is_token=self.is_token)
        self._shown = shown = self._credential or fake
        self._server_first = scram_messages.write_server_first(
            first.nonce + self._own_nonce, shown.salt, shown.iterations
        )
        return self._server_first

    def _judge(self, first: ClientFirst, message: bytes) -> bytes:
        final = scram_messages.read_client_final(message)
        if final.nonce != first.nonce + self._own_nonce:
            raise self._malformed("its nonce is not the one of this exchange")
        if final.binding != first.header.encode():
            raise self._malformed("its channel binding is not the one it began with")
        signed = b",".join((first.bare.encode(), self._server_first, final.without_proof.encode()))
        credential = self._shown
        assert credential is not None
        is_right = is_proof(self._mechanism, credential, signed, final.proof)
        if self._credential is None or not is_right:
            raise self._refused(first.user)
        self.user = first.user
        return scram_messages.write_server_final(
            mac(self._mechanism, credential.server_key, signed)
        )

    def _refused(self, user: str) -> AuthenticationFailed:
        name = self._mechanism.sasl_name
        if self.is_token:
            return unusable_token(name, user)
        return unknown_user(name, user) if self._credential is None else wrong_password(name, user)

    def _malformed(self, cause: str) -> MalformedExchange:
        return MalformedExchange(self._mechanism.sasl_name, cause)


def unusable_token(mechanism: str, token_id: str) -> AuthenticationFailed:
    """Return the failure for a missing or expired delegation token."""
    return AuthenticationFailed(
        mechanism,
        f"there is no delegation token {shortened(token_id)!r}, it has expired, or the HMAC that "
        "the client has is not of it; `ottla token list` lists tokens, `ottla token create` makes "
        "one",
        "token",
    )


def unknown_user(mechanism: str, user: str) -> AuthenticationFailed:
    """Return the failure for a user without a credential."""
    failure = AuthenticationFailed(
        mechanism,
        f"there is no user {shortened(user)!r} with a credential for it; `ottla user list` lists "
        "the users, `ottla user add` makes one",
        "unknown user",
    )
    failure.claimed = user
    return failure


def wrong_password(mechanism: str, user: str) -> AuthenticationFailed:
    """Return the failure for a wrong password of a known user."""
    failure = AuthenticationFailed(
        mechanism,
        f"the proof of user {user!r} is wrong: the client has another password; correct it there, "
        "or set a new one with `ottla user password`",
        f"password of {user}",
    )
    failure.claimed, failure.is_known = user, True
    return failure
