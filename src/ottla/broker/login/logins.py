"""The part that authenticates clients: users, delegation tokens, and the logins of listeners."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import ListenerAddress, listen_addresses
from ottla.broker.login.exchange import NewExchange, OpenSessions, of_token, of_user
from ottla.broker.login.passwords import PlainExchange, PlainUsers, ScramExchange
from ottla.broker.login.tokens import DelegationTokens, new_tokens
from ottla.broker.login.users import ScramUsers
from ottla.broker.requests.auditing import Auditing
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.coordination.interface.store import Store
from ottla.network.connection import Connection
from ottla.security.sasl import bearer, plain
from ottla.security.sasl.failures import FailedLogins
from ottla.security.sasl.jaas import parse_jaas
from ottla.security.sasl.scram_keys import ScramMechanism

# The most bytes that a client may send at once before its login, regardless of the settings.
REQUEST_BYTES_MAX = 64 << 10
_SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
_MECHANISMS = (*_SCRAM, plain.MECHANISM, bearer.MECHANISM)
_JAAS = "sasl.jaas.config"
_PLAIN_IN_THE_CLEAR = "sasl.plain.without.tls.enable"


@dataclass(frozen=True, slots=True)
class ListenerLogins:
    """The state that all logins of one listener share."""

    mechanisms: Mapping[str, NewExchange]
    # `connections.max.reauth.ms` of each mechanism.
    reauth_ms_max: Mapping[str, int]
    failures: FailedLogins
    sessions: OpenSessions
    is_tls: bool
    request_bytes_max: int
    timeout_ms: int
    loop: asyncio.AbstractEventLoop
    monotonic_ms: Callable[[], int]
    spawn: Callable[[Coroutine[object, object, None]], None]
    # Called with the connection, the reason (without secrets) and the user that the client claimed.
    on_failed: Callable[[Connection, str, str], None]
    # Called with the connection and the mechanism.
    on_logged_in: Callable[[Connection, str], None]


class Logins:
    """The logins of a broker's SASL listeners.

    Raises OttlaError if one of them is configured in such a way that no client could log in.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        users: ScramUsers,
        tokens: DelegationTokens | None,
        runtime: Runtime,
        audit: Auditing | None = None,
    ) -> None:
        self._settings = settings
        self._audit = audit
        self._users = users
        self._tokens = tokens
        self._runtime = runtime
        self.failures = FailedLogins(settings.integer("connection.failed.authentication.delay.ms"))
        self.sessions = OpenSessions(runtime.loop)
        users.on_removed = lambda user: self.sessions.end(of_user(user))
        if tokens is not None:
            tokens.on_removed = lambda token_id: self.sessions.end(of_token(token_id))
        self._listeners = {
            address.name: self._new(address)
            for address in listen_addresses(settings)
            if address.protocol.startswith("SASL")
        }

    def of_listener(self, name: str) -> ListenerLogins | None:
        """Return the logins of a listener, or None if it does not use SASL."""
        return self._listeners.get(name)

    def _new(self, address: ListenerAddress) -> ListenerLogins:
        settings, runtime, listener = self._settings, self._runtime, address.name
        names = settings.texts_of_listener(listener, "sasl.enabled.mechanisms")
        return ListenerLogins(
            {name: self._mechanism(address, name) for name in names},
            {name: self._reauth_ms_max(listener, name) for name in names},
            self.failures,
            self.sessions,
            address.is_tls,
            min(REQUEST_BYTES_MAX, settings.integer("sasl.server.max.receive.size")),
            settings.integer("connection.authentication.timeout.ms"),
            runtime.loop,
            runtime.clock.monotonic_ms,
            runtime.spawn,
            partial(self._on_failed, listener),
            partial(self._on_logged_in, listener),
        )

    def _on_failed(self, listener: str, connection: Connection, cause: str, user: str) -> None:
        if self._audit is not None:
            self._audit.login_failed(connection, listener, cause, user)

    def _on_logged_in(self, listener: str, connection: Connection, mechanism: str) -> None:
        if self._audit is not None:
            self._audit.logged_in(connection, listener, mechanism)

    def _mechanism(self, address: ListenerAddress, name: str) -> NewExchange:
        scram = _SCRAM.get(name)
        if scram is not None:
            return lambda: ScramExchange(scram, self._users, self._tokens)
        if name == plain.MECHANISM:
            users = self._plain_users(address)
            return lambda: PlainExchange(users)
        if name == bearer.MECHANISM:
            # This imports an HTTP client, which most brokers do not need.
            from ottla.broker.login.bearer import bearer_exchanges  # noqa: PLC0415

            return bearer_exchanges(self._settings, address, self._runtime)
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"sasl.enabled.mechanisms of listener {address.name}: there is no {name} here; set it "
            f"to one or several of {', '.join(_MECHANISMS)}",
        )

    def _plain_users(self, address: ListenerAddress) -> PlainUsers:
        settings = self._settings
        if address.protocol == "SASL_PLAINTEXT" and not settings.flag(_PLAIN_IN_THE_CLEAR):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"listener {address.name} has no TLS, and PLAIN would show passwords to the "
                "network: make it a SASL_SSL listener, use SCRAM, or set "
                f"{_PLAIN_IN_THE_CLEAR}=true",
            )
        text = settings.of_listener(address.name, f"plain.{_JAAS}") or settings.value(_JAAS)
        jaas = None if text is None else parse_jaas(str(text))
        users = None if jaas is None or jaas.mechanism != plain.MECHANISM else jaas.users
        return PlainUsers(users or None, self._users, self._runtime)

    def _reauth_ms_max(self, listener: str, mechanism: str) -> int:
        name = "connections.max.reauth.ms"
        value = self._settings.of_listener(listener, f"{mechanism.lower()}.{name}")
        if value is None:
            value = self._settings.of_listener(listener, name)
        return self._settings.integer(name) if value is None else int(str(value))


_CHECK_INTERVAL = "delegation.token.expiry.check.interval.ms"


@dataclass(frozen=True, slots=True)
class LoginStatus:
    """Counts the users with SCRAM credentials and the delegation tokens of the cluster."""

    users: int
    tokens: int
    # How many users and tokens have clients that are logged in to this broker now.
    credentials_in_use: int


class LoginPart(BrokerPart):
    """The authentication of clients. `tokens` is None if no secret key is set."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        store: Store,
        secret: bytes,
        audit: Auditing | None,
        is_controller: Callable[[], bool],
    ) -> None:
        """Create the part. On the controller it also removes expired tokens from the store."""
        self._runtime = runtime
        self._interval_ms = settings.integer(_CHECK_INTERVAL)
        self._is_controller = is_controller
        self.users = ScramUsers(store, runtime.clock, secret)
        self.tokens = new_tokens(settings, store, runtime)
        self.logins = Logins(settings, self.users, self.tokens, runtime, audit)

    def begin(self) -> None:
        if self.tokens is not None:
            work = self.tokens.keep_removing(self._interval_ms, self._is_controller)
            self._runtime.spawn(work)

    def status(self) -> LoginStatus:
        return LoginStatus(
            users=len(self.users.all()),
            tokens=0 if self.tokens is None else sum(1 for _ in self.tokens.all()),
            credentials_in_use=len(self.logins.sessions),
        )
