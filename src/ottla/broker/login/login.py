"""The login of one connection: a shell over `SaslSession`.

It serves the requests of a connection until the client has logged in; then the dispatcher serves
them. If sessions can expire, each request still passes through here, because the client must log
in again over the same connection.
"""

import logging
from asyncio import TimerHandle
from collections.abc import Callable
from struct import Struct
from struct import error as StructError  # noqa: N812  # It is an exception class.

from ottla.base.errors import ErrorCode
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.login.exchange import Credential, ServerExchange, Stepped
from ottla.broker.login.logins import ListenerLogins
from ottla.network.connection import Connection
from ottla.network.service import CloseConnection, Serve, ServeRun, Slot
from ottla.security.principal import Principal
from ottla.security.sasl.failures import AuthenticationFailed
from ottla.security.sasl.session import (
    LoginState,
    LoginStep,
    SaslSession,
    session_lifetime_ms,
)
from ottla.wire.api import key_name
from ottla.wire.codec import decode
from ottla.wire.errors import VersionError, WireError
from ottla.wire.frames import Part, RequestHeader, decode_request_header, encode_response
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ottla.wire.notation import Message

_log = logging.getLogger(__name__)

_PREFIX = Struct(">hhi")
_SIZE = Struct(">i")
_HANDSHAKE = SaslHandshakeRequest.__api_key__
_USER = "User"
# The most bytes that a client may send at once before it has chosen a mechanism. Until then it
# sends only ApiVersions and SaslHandshake.
FIRST_BYTES_MAX = 16 << 10

# Returns the functions that serve the requests of a client that has logged in.
Converse = Callable[[Connection], tuple[Serve, ServeRun]]
# The header of the token's request; None for a raw token without one (SaslHandshake version 0).
_Header = RequestHeader | None


class Login:
    """Serves the requests of one connection while its client must log in."""

    def __init__(self, logins: ListenerLogins, connection: Connection, converse: Converse) -> None:
        self._logins = logins
        self._connection = connection
        self._converse = converse
        self._session = SaslSession()
        self._exchange: ServerExchange | None = None
        # Serves the requests of a session that can expire. After its timer has ended, the session
        # checks every request.
        self._served: Serve | None = None
        self._served_run: ServeRun | None = None
        self._in_time = False
        # Set if the login failed and the answer has given the reason to the client (OAUTHBEARER).
        self._refusal: AuthenticationFailed | None = None
        self._holds = False
        # The stored credential that the client used for the current session.
        self._credential: Credential | None = None
        # Whether this connection has already been counted as a failed login.
        self._is_failure = False
        connection.limit_requests(min(FIRST_BYTES_MAX, logins.request_bytes_max))
        self._timer: TimerHandle = logins.loop.call_later(
            logins.timeout_ms / 1000, self._on_timeout
        )
        connection.on_lost.append(self._on_lost)

    # Hot if sessions expire.
    def serve(self, frame: memoryview) -> list[Part] | None:
        """See `network.service.Serve`."""
        if self._in_time and len(frame) > 1 and frame[1] != _HANDSHAKE:
            assert self._served is not None
            return self._served(frame)
        if self._session.takes_raw_tokens:
            self._take_token(None, frame.tobytes())
            return None
        try:
            return self._judge(frame)
        except CloseConnection as error:
            if self._session.is_open:
                raise
            self._end(f"before its login {error}", "login: malformed")
            return None
        except (WireError, VersionError, StructError) as error:
            # All such clients share one log line, because sending such bytes costs them nothing.
            why = f"before its login it sent bytes that are no valid request: {error}"
            self._end(why, "login: malformed")
            return None

    # Hot if sessions expire.
    def _serve_run(self, received: memoryview, count_max: int) -> tuple[int, list[Part]] | None:
        if self._served_run is None or not self._in_time:
            return None
        return self._served_run(received, count_max)

    def _judge(self, frame: memoryview) -> list[Part] | None:
        session = self._session
        api_key, version, correlation_id = _PREFIX.unpack_from(frame)
        match session.judge(api_key, self._logins.monotonic_ms()):
            case LoginStep.SERVE:
                assert self._served is not None
                return self._served(frame)
            case LoginStep.WAIT:
                self._holds = True
                self._connection.hold()
                return None
            case LoginStep.VERSIONS:
                parts = self._converse(self._connection)[0](frame)
                if parts and version <= ApiVersionsRequest.__versions__[1]:
                    session.versions_served()
                return parts
            case LoginStep.HANDSHAKE:
                return self._shake_hands(frame)
            case LoginStep.TOKEN:
                header, body = _decoded(frame, SaslAuthenticateRequest)
                assert isinstance(body, SaslAuthenticateRequest)
                self._take_token(header, bytes(body.auth_bytes))
                return None
            case LoginStep.ILLEGAL:
                self._refuse_order(api_key, version, correlation_id)
                return None
        self._end(_reason(api_key, session), "login: order")
        return None

    # -- one step

    def _shake_hands(self, frame: memoryview) -> list[Part] | None:
        header, body = _decoded(frame, SaslHandshakeRequest)
        assert isinstance(body, SaslHandshakeRequest)
        logins, mechanism = self._logins, body.mechanism
        self._close_session()
        response = SaslHandshakeResponse(mechanisms=list(logins.mechanisms))
        new_exchange = logins.mechanisms.get(mechanism)
        cause = (
            f"it asked for SASL mechanism {mechanism[:100]!r}, and the listener has"
            f" {', '.join(logins.mechanisms)}: set sasl.mechanism in the client"
        )
        if new_exchange is not None:
            cause = "it logged in again with another mechanism"
            is_raw = header.api_version == 0
            now_ms = logins.monotonic_ms()
            if self._session.agreed(mechanism, is_raw=is_raw, now_ms=now_ms):
                self._exchange = new_exchange()
                if self._served is None:
                    self._connection.limit_requests(logins.request_bytes_max)
                return _encoded(response, header)
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self._fail(
            self._connection.defer(len(frame)), _encoded(response, header), cause, "mechanism"
        )
        return None

    def _take_token(self, header: _Header, token: bytes) -> None:
        self._session.judging()
        slot = self._connection.defer(len(token))
        self._logins.spawn(self._step(slot, header, token))

    async def _step(self, slot: Slot, header: _Header, token: bytes) -> None:
        assert self._exchange is not None
        try:
            stepped = await self._exchange.step(token)
        except AuthenticationFailed as error:
            self._refuse(slot, header, error)
            return
        except Exception as error:  # noqa: BLE001  # A mechanism that fails lets no client in.
            _log.exception("a login failed unexpectedly")
            cause = f"the broker could not judge it ({type(error).__name__}; see above)"
            self._refuse(slot, header, AuthenticationFailed(self._session.mechanism, cause))
            return
        lifetime_ms: int | None = None
        if stepped.refusal is not None:
            self._challenge(slot, header, stepped.answer, stepped.refusal)
            return
        if stepped.user is None:
            self._session.went_on()
        else:
            lifetime_ms = self._lifetime_ms(stepped)
            now_ms = self._logins.monotonic_ms()
            principal = Principal(_USER, stepped.user)
            if not self._session.logged_in(principal, lifetime_ms, now_ms):
                cause = f"{self._connection.principal} logged in again as {principal}"
                self._refuse(slot, header, AuthenticationFailed(self._session.mechanism, cause))
                return
            self._connection.by_token = stepped.by_token
            if not self._open_session(principal, lifetime_ms):
                return
            self._keep(stepped.credential)
            self._logins.on_logged_in(self._connection, self._session.mechanism)
        slot.answer(_answer(header, stepped.answer, lifetime_ms or 0))
        self._go_on()

    def _go_on(self) -> None:
        """Serve the request that arrived while the client's token was being checked."""
        if self._holds:
            self._holds = False
            self._connection.release()

    def _lifetime_ms(self, stepped: Stepped) -> int | None:
        reauth_ms_max = self._logins.reauth_ms_max[self._session.mechanism]
        return session_lifetime_ms(stepped.valid_ms, reauth_ms_max)

    # -- sessions

    def _open_session(self, principal: Principal, lifetime_ms: int | None) -> bool:
        """Begin to serve the client; return False if its user has too many connections."""
        connection = self._connection
        self._exchange = None
        self._timer.cancel()
        if not connection.belongs_to(principal):
            return False
        connection.limit_requests()
        serve, serve_run = self._converse(connection)
        if lifetime_ms is None:
            connection.serve_with(serve, serve_run)
            return True
        # An expired token may be accepted within the allowed clock skew. Then its session has
        # expired, too.
        self._served, self._served_run, self._in_time = serve, serve_run, lifetime_ms > 0
        connection.serve_with(self.serve, self._serve_run)
        self._timer = self._logins.loop.call_later(lifetime_ms / 1000, self._on_expired)
        return True

    def _keep(self, credential: Credential | None) -> None:
        """Register the session, which ends when `credential` is removed.

        A new login on this connection may have replaced the previous credential.
        """
        sessions, before = self._logins.sessions, self._credential
        if before is not None and before != credential:
            sessions.remove(before, self._connection)
        self._credential = credential
        if credential is not None:
            sessions.add(credential, self._connection)

    def _on_expired(self) -> None:
        # Connections of brokers that know the cluster's secret do not expire.
        if proven_broker(self._connection) is None:
            self._close_session()

    def _close_session(self) -> None:
        """Let the session check every request from now on."""
        self._in_time = False

    def _on_timeout(self) -> None:
        if not self._connection.closed:
            self._end(f"it did not log in within {self._logins.timeout_ms} ms", "login timeout")

    def _on_lost(self) -> None:
        self._timer.cancel()
        self._keep(None)
        session = self._session
        # Load balancers check health by connections that send nothing. Without TLS they cost
        # nothing, so they are not failed logins.
        has_cost = self._logins.is_tls or session.state is not LoginState.BEGINNING
        if session.principal is None and has_cost:
            self._count_failure()
        refusal, connection = self._refusal, self._connection
        if refusal is not None:
            # The client has disconnected after the refusal, so no close by this side has logged it.
            connection.refusals.log(
                (connection.peer_host, f"login: {refusal.kind}"),
                lambda: (
                    f"the connection from {connection.peer_host}:{connection.peer_port} has ended:"
                    f" its login failed: {refusal.cause}"
                ),
            )

    # -- failing

    def _end(self, why: str, kind: str) -> None:
        """Close the connection at once."""
        if self._session.principal is None:
            self._count_failure()
        self._connection.close(why, kind)

    def _count_failure(self) -> None:
        """Count a failed login, but only once per connection."""
        if not self._is_failure:
            self._is_failure = True
            self._connection.login_failed()

    def _challenge(
        self, slot: Slot, header: _Header, answer: bytes, refusal: AuthenticationFailed
    ) -> None:
        """Send the reason for a failure after a delay; the client's next message ends the login."""
        self._refusal = refusal
        logins, connection = self._logins, self._connection
        now_ms = logins.monotonic_ms()
        delay_ms = logins.failures.failed(connection.peer_host, refusal.claimed, now_ms)

        def send() -> None:
            if not connection.closed:
                self._session.went_on()
                slot.answer(_answer(header, answer, 0))
                self._go_on()

        logins.loop.call_later(delay_ms / 1000, send)

    def _refuse(self, slot: Slot, header: _Header, error: AuthenticationFailed) -> None:
        answer: list[Part] = []
        if header is not None:
            response = SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
            answer = _encoded(response, header)
        self._fail(slot, answer, error.cause, error.kind, error)

    def _refuse_order(self, api_key: int, version: int, correlation_id: int) -> None:
        kind = SaslHandshakeResponse if api_key == _HANDSHAKE else ApiVersionsResponse
        response = kind(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        answer = encode_response(response, api_key, version, correlation_id)
        cause = f"it sent {key_name(api_key)} where SASL_AUTHENTICATE was due"
        self._fail(self._connection.defer(len(answer)), answer, cause, "order")

    def _fail(
        self,
        slot: Slot,
        answer: list[Part],
        cause: str,
        kind: str,
        error: AuthenticationFailed | None = None,
    ) -> None:
        """Send the answer after a delay, then close the connection.

        `error` is the mechanism's error, which has the name of the user.
        """
        logins, connection = self._logins, self._connection
        self._session.failed()
        self._timer.cancel()
        connection.stop_reading()
        self._count_failure()
        claimed = "" if error is None else error.claimed
        logins.on_failed(connection, cause, claimed if error and error.is_known else "")
        delay_ms = 0
        if self._refusal is None:
            now_ms = logins.monotonic_ms()
            delay_ms = logins.failures.failed(connection.peer_host, claimed, now_ms)
        self._refusal = None

        def end() -> None:
            if not connection.closed:
                slot.answer(answer)
                connection.close(f"its login failed: {cause}", f"login: {kind}")

        self._timer = logins.loop.call_later(delay_ms / 1000, end)


def _decoded(frame: memoryview, kind: type[Message]) -> tuple[RequestHeader, object]:
    header, position = decode_request_header(frame)
    low, high = kind.__versions__
    if not low <= header.api_version <= high:
        raise VersionError(f"there is no {kind.__name__} of version {header.api_version}")
    return header, decode(kind, header.api_version, frame, position)


def _encoded(
    response: SaslHandshakeResponse | SaslAuthenticateResponse, header: RequestHeader
) -> list[Part]:
    return encode_response(response, header.api_key, header.api_version, header.correlation_id)


def _answer(header: _Header, token: bytes, lifetime_ms: int) -> list[Part]:
    if header is None:
        return [_SIZE.pack(len(token)) + token]
    return _encoded(
        SaslAuthenticateResponse(
            error_message=None, auth_bytes=token, session_lifetime_ms=lifetime_ms
        ),
        header,
    )


def _reason(api_key: int, session: SaslSession) -> str:
    name = key_name(api_key)
    if session.is_open:
        return (
            f"the session of {session.principal} is over, and it sent {name} instead of logging in"
            " again (connections.max.reauth.ms)"
        )
    return (
        f"it sent {name} before it logged in: set security.protocol, sasl.mechanism and"
        " sasl.jaas.config (or sasl.username and sasl.password) in the client"
    )
