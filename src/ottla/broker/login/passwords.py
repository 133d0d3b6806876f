"""Logins by passwords: PLAIN and SCRAM."""

import hmac
from asyncio import Semaphore
from collections.abc import Mapping
from functools import partial

from ottla.base.chance import random_bytes
from ottla.broker.login.exchange import Stepped, of_token, of_user
from ottla.broker.login.tokens import DelegationTokens
from ottla.broker.login.users import ScramUsers
from ottla.broker.runtime.runtime import Runtime
from ottla.security.sasl.failures import AuthenticationFailed
from ottla.security.sasl.plain import MECHANISM, PlainLogin, read_plain
from ottla.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    fake_credential,
    salted_password,
)
from ottla.security.sasl.scram_messages import token_in
from ottla.security.sasl.scram_server import (
    NONCE_BYTES,
    ScramServer,
    unknown_user,
    unusable_token,
    wrong_password,
)

# How many passwords may wait to be hashed; further logins are refused.
_WAITING_MAX = 100


class PlainUsers:
    """Checks passwords. If a listener's settings name users, only those users can log in."""

    def __init__(
        self, users: Mapping[str, str] | None, stored: ScramUsers, runtime: Runtime
    ) -> None:
        self._users = users
        self._stored = stored
        self._runtime = runtime
        # Only one thread hashes at a time, so that logins leave the CPU to other work.
        self._hashing = Semaphore(1)
        self._waiting = 0

    @property
    def is_of_store(self) -> bool:
        """Return whether the users are read from the store."""
        return self._users is None

    async def check(self, login: PlainLogin) -> None:
        """Check the password. Raises AuthenticationFailed if it is wrong."""
        if self._users is not None:
            expected = self._users.get(login.user)
            # Compared even if the user is unknown, so that both cases take the same time.
            is_right = hmac.compare_digest(
                _digest(login.password), _digest("" if expected is None else expected)
            )
            is_known = expected is not None
        else:
            is_known, is_right = await self._check_stored(login)
        if not is_known:
            raise unknown_user(MECHANISM, login.user)
        if not is_right:
            raise wrong_password(MECHANISM, login.user)

    async def _check_stored(self, login: PlainLogin) -> tuple[bool, bool]:
        mechanism, credential = self._credential(login.user)
        shown = credential or fake_credential(
            mechanism, self._stored.secret, login.user, is_token=False
        )
        if self._waiting >= _WAITING_MAX:
            raise AuthenticationFailed(
                MECHANISM,
                f"{self._waiting} passwords wait to be hashed; clients that log in often should "
                "use SCRAM, which costs a broker nothing",
                "rate",
            )
        self._waiting += 1
        try:
            async with self._hashing:
                salted = await self._runtime.in_thread(
                    lambda: salted_password(mechanism, login.password, shown.salt, shown.iterations)
                )
        finally:
            self._waiting -= 1
        found = credential_of(mechanism, salted, shown.salt, shown.iterations)
        is_right = hmac.compare_digest(found.stored_key, shown.stored_key)
        # The credential may have been removed or replaced while the password was hashed.
        _, held = self._credential(login.user)
        return held is not None, is_right and held == credential

    def _credential(self, user: str) -> tuple[ScramMechanism, ScramCredential | None]:
        for mechanism in ScramMechanism:
            credential = self._stored.find(mechanism, user)
            if credential is not None:
                return mechanism, credential
        return self._stored.mechanism_of_unknown(user), None


class PlainExchange:
    """Implements `ServerExchange`."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    async def step(self, token: bytes) -> Stepped:
        """See `ServerExchange`."""
        login = read_plain(token)
        await self._users.check(login)
        credential = of_user(login.user) if self._users.is_of_store else None
        return Stepped(b"", login.user, credential=credential)


def _digest(password: str) -> bytes:
    """Hash a password, so that comparing takes the same time for passwords of any length."""
    return hmac.digest(b"plain", password.encode(), "sha256")


class ScramExchange:
    """Implements `ServerExchange`."""

    def __init__(
        self, mechanism: ScramMechanism, users: ScramUsers, tokens: DelegationTokens | None
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        # Not a method of this object, because the reference cycle would live until garbage
        # collection.
        find = partial(_find, mechanism, users, tokens)
        self._server = ScramServer(mechanism, find, random_bytes(NONCE_BYTES), users.secret)

    async def step(self, token: bytes) -> Stepped:
        """See `ServerExchange`."""
        tokens = self._tokens
        if tokens is not None and (token_id := token_in(token)) is not None:
            await tokens.prepare(self._mechanism, token_id, self._users.secret)
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
