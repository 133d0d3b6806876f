"""SCRAM-SHA-256 and -512, with the credentials in the store and with delegation tokens."""

from functools import partial

from ottla.base.chance import random_bytes
from ottla.broker.login.exchange import Stepped
from ottla.broker.login.sessions import of_token, of_user
from ottla.broker.login.tokens import DelegationTokens
from ottla.broker.login.users import ScramUsers
from ottla.security.sasl.failures import AuthenticationFailed
from ottla.security.sasl.scram_keys import ScramCredential, ScramMechanism
from ottla.security.sasl.scram_messages import token_in
from ottla.security.sasl.scram_server import (
    NONCE_BYTES,
    ScramServer,
    unknown_user,
    unusable_token,
)


class ScramExchange:
    """Implements `ServerExchange`."""

    def __init__(
        self, mechanism: ScramMechanism, users: ScramUsers, tokens: DelegationTokens | None
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._disguise = users.disguise(mechanism)
        # Not a method of this object, because a reference cycle would wait for the garbage
        # collector.
        find = partial(_find, mechanism, users, tokens)
        self._server = ScramServer(mechanism, find, random_bytes(NONCE_BYTES), self._disguise)

    async def step(self, token: bytes) -> Stepped:
        """See `ServerExchange`."""
        tokens = self._tokens
        if tokens is not None and (token_id := token_in(token)) is not None:
            await tokens.prepare(self._mechanism, token_id, self._disguise.of_tokens())
        answer = self._server.step(token)
        user = self._server.user
        if user is None:
            return Stepped(answer)
        if tokens is None or not self._server.is_token:
            if self._users.find(self._mechanism, user) is None:
                # The credential was removed meanwhile.
                raise unknown_user(self._mechanism.sasl_name, user)
            return Stepped(answer, user, credential=of_user(user))
        # The name is the token's id; the client acts as its owner. The token may have expired
        # meanwhile.
        held = tokens.valid(user)
        if held is None:
            raise unusable_token(self._mechanism.sasl_name, user)
        name, valid_ms = held.owner.name, tokens.valid_ms(held)
        return Stepped(answer, name, valid_ms, by_token=True, credential=of_token(user))


def _find(
    mechanism: ScramMechanism,
    users: ScramUsers,
    tokens: DelegationTokens | None,
    user: str,
    is_token: bool,  # The parameter name that `ScramServer` passes.
) -> ScramCredential | None:
    if not is_token:
        return users.find(mechanism, user)
    if tokens is None:
        raise AuthenticationFailed(
            mechanism.sasl_name,
            "it has a delegation token, and there are none here: set"
            " delegation.token.secret.key on all brokers",
        )
    return tokens.credential(mechanism, user)
