"""The cluster's delegation tokens: reads and changes them in the store.

Every broker keeps all tokens in memory, and is notified of changes in the same way as of changed
settings. Clients log in with a token by SCRAM: the user is its id, the password its HMAC.
"""

import asyncio
import logging
from asyncio import Lock
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.configs.changes import change_notice
from ottla.broker.runtime.runtime import Runtime
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    Delete,
    Node,
    NoNode,
    Operation,
    Set,
    Store,
    StoreError,
)
from ottla.security.principal import Principal
from ottla.security.sasl.scram_keys import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    credential_of,
    fake_credential,
    salted_password,
)
from ottla.security.stored import (
    TOKENS,
    decode_token,
    encode_token,
    token_id_of,
    token_path,
)
from ottla.security.tokens import (
    DelegationToken,
    TokenRules,
    ended,
    no_such_token,
    token_hmac,
    token_password,
)

_log = logging.getLogger(__name__)

OnChanged = Callable[[str], Awaitable[None]]
# Returns the changed token; None removes it.
_Decide = Callable[[DelegationToken, int], DelegationToken | None]


class DelegationTokens:
    """Finds, creates, renews and expires tokens."""

    def __init__(self, store: Store, runtime: Runtime, key: str, rules: TokenRules) -> None:
        """Create the object. `key` is `delegation.token.secret.key`."""
        self._store = store
        self._clock = runtime.clock
        self._runtime = runtime
        self._key = key
        self._rules = rules
        self._changing = Lock()
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        # Created when a client first logs in with the token, because hashing takes time.
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._hashing = Lock()
        # Called with the id of a token after it was removed.
        self.on_removed: Callable[[str], None] = lambda _token_id: None

    async def load(self) -> None:
        """Read all tokens. An unreadable one is logged, and no client can log in with it."""
        async with self._changing:
            await self._load()

    async def _load(self) -> None:
        nodes = await self._store.subtree(TOKENS)
        found = {token_id_of(path): node for path, node in nodes.items()}
        for token_id in self._tokens.keys() - found.keys():
            self._take(token_id, None)
        for name, node in found.items():
            if name is not None:
                self._take(name, node)

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback for change notifications: reads tokens, passes the rest to `others`."""

        async def on_changed(entity: str) -> None:
            token_id = token_id_of(entity)
            if token_id is None:
                await others(entity)
                return
            async with self._changing:
                self._take(token_id, await self._store.get(token_path(token_id)))

        return on_changed

    # -- reading

    def all(self) -> Iterable[DelegationToken]:
        """Return all tokens, including expired ones that are not removed yet."""
        return self._tokens.values()

    def hmac(self, token: DelegationToken) -> bytes:
        """Return the HMAC of a token, which is its secret."""
        return token_hmac(self._key, token.id)

    def valid(self, token_id: str) -> DelegationToken | None:
        """Return the token if clients may log in with it; None if it is unknown or expired."""
        token = self._tokens.get(token_id)
        return None if token is None or token.is_over(self._clock.now_ms()) else token

    def valid_ms(self, token: DelegationToken) -> int:
        """Return for how many milliseconds clients may stay logged in with the token."""
        return max(0, token.expires_ms - self._clock.now_ms())

    def credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        """Return the credential that `prepare` created, if the token is valid; else None."""
        if self.valid(token_id) is None:
            return None
        return self._credentials.get((token_id, mechanism))

    async def prepare(self, mechanism: ScramMechanism, token_id: str, secret: bytes) -> None:
        """Create a token's credential once, in a thread, because hashing takes milliseconds.

        Its salt is derived from `secret`, as that of an unknown token is.
        """
        name = (token_id, mechanism)
        async with self._hashing:
            token = self.valid(token_id)
            if token is None or name in self._credentials:
                return
            password = token_password(self.hmac(token))
            salt = fake_credential(mechanism, secret, token_id, is_token=True).salt
            salted = await self._runtime.in_thread(
                lambda: salted_password(mechanism, password, salt, ITERATIONS_MIN)
            )
            if token_id in self._tokens:
                self._credentials[name] = credential_of(mechanism, salted, salt, ITERATIONS_MIN)

    # -- changing

    async def create(
        self,
        token_id: str,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        lifetime_ms: int,
    ) -> DelegationToken:
        """Create a token with a new id, valid on all brokers. Raises StoreError."""
        now_ms = self._clock.now_ms()
        token = self._rules.made(token_id, owner, requester, renewers, lifetime_ms, now_ms)
        async with self._changing:
            await self._store.ensure(TOKENS)
            await self._write(Create(token_path(token_id), encode_token(token)), token_id, token)
        _log.info("%s made delegation token %s of %s", requester, token_id, owner)
        return token

    async def renew(self, secret: bytes, principal: Principal, period_ms: int) -> int:
        """Renew a token; return its new expiry time. Raises OttlaError with Kafka's codes."""
        token = await self._change(
            secret, lambda held, now_ms: self._rules.renewed(held, principal, period_ms, now_ms)
        )
        assert token is not None, "renewing removes no token"
        _log.info("%s renewed delegation token %s", principal, token.id)
        return token.expires_ms

    async def expire(self, secret: bytes, principal: Principal, period_ms: int) -> int:
        """Set a token's expiry time, and return it. Raises OttlaError with Kafka's codes."""
        token = await self._change(
            secret, lambda held, now_ms: ended(held, principal, period_ms, now_ms)
        )
        _log.info(
            "%s ended a delegation token: %s", principal, "now" if token is None else token.id
        )
        return self._clock.now_ms() if token is None else token.expires_ms

    async def remove_expired(self) -> None:
        """Remove the expired tokens. Raises StoreError."""
        now_ms = self._clock.now_ms()
        for token in [one for one in self._tokens.values() if one.is_over(now_ms)]:
            try:
                left = await self._change(self.hmac(token), _unless_renewed)
            except StoreError:
                raise
            except OttlaError:
                # Another broker or client removed or renewed the token first.
                continue
            if left is None:
                _log.info("removed delegation token %s of %s: expired", token.id, token.owner)

    async def keep_removing(self, interval_ms: int, is_due: Callable[[], bool]) -> None:
        """Remove expired tokens periodically while this broker is responsible for it."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if not is_due():
                continue
            try:
                await self.remove_expired()
            except StoreError as error:
                _log.warning("cannot remove expired delegation tokens: %s", error.message)

    async def _change(self, secret: bytes, decide: _Decide) -> DelegationToken | None:
        """Change or remove the token with this HMAC in the store; retries on conflicts."""
        async with self._changing:
            if secret not in self._ids:
                # Another broker may have created the token a moment ago.
                await self._load()
            token_id = self._ids.get(secret)
            if token_id is None:
                raise no_such_token()
            path = token_path(token_id)
            while True:
                node = await self._store.get(path)
                self._take(token_id, node)
                held = self._tokens.get(token_id)
                if node is None or held is None:
                    raise no_such_token()
                token = decide(held, self._clock.now_ms())
                if token is held:
                    return held
                change = (
                    Delete(path, node.version)
                    if token is None
                    else Set(path, encode_token(token), node.version)
                )
                try:
                    await self._write(change, token_id, token)
                except (BadVersion, NoNode):
                    continue
                return token

    async def _write(self, change: Operation, token_id: str, token: DelegationToken | None) -> None:
        notice = change_notice(token_path(token_id), self._clock.now_ms())
        await self._store.multi([change, notice])
        self._put(token_id, token)

    def _take(self, token_id: str, node: Node | None) -> None:
        """Keep the token that a node of the store contains."""
        token: DelegationToken | None = None
        if node is not None:
            try:
                token = decode_token(token_path(token_id), node.data)
            except OttlaError as error:
                _log.error("a delegation token cannot be read, and lets no client in: %s", error)
        self._put(token_id, token)

    def _put(self, token_id: str, token: DelegationToken | None) -> None:
        if token is not None:
            self._tokens[token_id] = token
            self._ids[self.hmac(token)] = token_id
        elif self._tokens.pop(token_id, None) is not None:
            del self._ids[token_hmac(self._key, token_id)]
            for mechanism in ScramMechanism:
                self._credentials.pop((token_id, mechanism), None)
            self.on_removed(token_id)


def new_tokens(settings: BrokerSettings, store: Store, runtime: Runtime) -> DelegationTokens | None:
    """Return the tokens of a broker; None if no secret key is set."""
    key = settings.value("delegation.token.secret.key") or settings.value(
        "delegation.token.master.key"
    )
    if not key:
        return None
    rules = TokenRules(
        settings.integer("delegation.token.max.lifetime.ms"),
        settings.integer("delegation.token.expiry.time.ms"),
    )
    return DelegationTokens(store, runtime, str(key), rules)


def require_tokens(tokens: DelegationTokens | None) -> DelegationTokens:
    """Return the tokens. Raises OttlaError(DELEGATION_TOKEN_AUTH_DISABLED) without a secret key."""
    if tokens is None:
        raise OttlaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "there are no delegation tokens here: set delegation.token.secret.key on all brokers",
        )
    return tokens


def _unless_renewed(held: DelegationToken, now_ms: int) -> DelegationToken | None:
    return None if held.is_over(now_ms) else held
