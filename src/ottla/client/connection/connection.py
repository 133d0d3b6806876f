"""One connection to one broker: a shell over `network.exchange` with futures."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ottla import __version__
from ottla.base.errors import ErrorCode
from ottla.client.common.errors import (
    ClientError,
    ConnectionFailed,
    UnsupportedByBroker,
    check,
    connection_refused,
    ended,
)
from ottla.client.connection.login import HeldRequest, LoginSession, log_in, ready_in_thread
from ottla.client.connection.security import ClientSecurity
from ottla.client.connection.view import Address
from ottla.network.exchange import Exchange
from ottla.network.loop_exchange import LoopExchange
from ottla.network.tls.trouble import is_of_handshake, of_server
from ottla.security.sasl.client import SaslIdentity
from ottla.wire.api import ApiKey, key_name
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.notation import REQUESTS, Message

# The highest versions that this client uses. Later versions name a topic only by its id, or
# have a meaning that this client does not use, or are unstable in Kafka.
_OWN_MAXIMUM: dict[int, int] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.INIT_PRODUCER_ID: 5,
}


class AgreedVersions:
    """The highest common version per API; an API without a common version is missing.

    Computed on first use, because an API's messages are imported by the code that sends them.
    """

    __slots__ = ("_advertised", "_agreed")

    def __init__(self, advertised: Iterable[ApiVersion]) -> None:
        self._advertised = {each.api_key: each for each in advertised}
        self._agreed: dict[int, int] = {}

    def get(self, key: int) -> int | None:
        """Return the agreed version of an API; None if there is no common version."""
        version = self._agreed.get(key)
        if version is None and key in self._advertised and key in REQUESTS:
            theirs, (low, high) = self._advertised[key], REQUESTS[key].__versions__
            newest = min(theirs.max_version, high, _OWN_MAXIMUM.get(key, high))
            if newest >= max(theirs.min_version, low):
                version = self._agreed[key] = newest
        return version

    def served(self) -> dict[int, tuple[int, int]]:
        """Return the first and last version of each API that the broker serves."""
        return {key: (each.min_version, each.max_version) for key, each in self._advertised.items()}

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None


def version_for(agreed: AgreedVersions, key: int, address: str) -> int:
    """Return the agreed version of an API. Raises UnsupportedByBroker if there is none."""
    version = agreed.get(key)
    if version is None:
        raise UnsupportedByBroker(
            f"the broker at {address} and this client share no version of {key_name(key)}; "
            "upgrade the older of the two, or use a call that does not need it"
        )
    return version


Response = TypeVar("Response")


class Connection(asyncio.BufferedProtocol):
    """A connection with agreed versions. Open it with `connect`; it is never reopened.

    It deliberately does not retry and knows no topics: see `Cluster`.
    """

    def __init__(self, address: Address, client_id: str, *, protocol: str = "") -> None:
        self.address = address
        self.versions: AgreedVersions = AgreedVersions(())
        # The enabled features of the cluster, by name (KIP-584).
        self.features: dict[str, int] = {}
        self._exchange: Exchange[asyncio.Future[Any]] = Exchange(
            str(address), client_id, protocol=protocol
        )
        self._shell = LoopExchange(self._exchange, self._end)
        self._failure: ClientError | None = None
        # Schedules the next login of the session.
        self._session: LoginSession | None = None
        # False while the system accepts no more bytes: data sent then would fill our memory.
        self.is_writable = True
        self._when_writable: list[Callable[[], None]] = []

    # -- called by users

    @property
    def is_open(self) -> bool:
        return self._shell.is_open

    @property
    def in_flight(self) -> int:
        """Return the number of requests without an answer."""
        held = 0 if self._session is None else self._session.held
        return self._exchange.in_flight + held

    def version(self, key: int) -> int:
        """Return the version agreed with this broker. Raises UnsupportedByBroker."""
        return version_for(self.versions, key, str(self.address))

    def submit(
        self, message: Message, timeout_s: float, at_most: int | None = None
    ) -> "asyncio.Future[Any]":
        """Send `message` now and return a future of its answer.

        `at_most` limits the version, if later versions mean something else. The future fails with
        ConnectionFailed or RequestTimedOut; either closes the connection.
        """
        version = self.version(message.__api_key__)
        if at_most is not None:
            version = min(version, at_most)
        if self._session is not None and self._session.holds():
            self._require_open()
            return self._session.hold(message, version, timeout_s, is_answered=True)
        return self._submit(message, version, timeout_s)

    def send_unanswered(self, message: Message) -> None:
        """Send a request that has no answer (Produce with acks 0)."""
        self._require_open()
        version = self.version(message.__api_key__)
        if self._session is not None and self._session.holds():
            self._session.hold(message, version, 0, is_answered=False)
            return
        self._shell.send_unanswered(message, version)

    async def request(
        self,
        message: Message,
        response_type: type[Response],
        timeout_s: float,
        at_most: int | None = None,
    ) -> Response:
        """Send `message` and wait for its answer of type `response_type`."""
        answer = await self.submit(message, timeout_s, at_most)
        assert isinstance(answer, response_type)
        return answer

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the system accepts bytes again."""
        self._when_writable.append(callback)

    def close(self, why: ClientError | None = None) -> None:
        """Close now. Requests in flight fail; their error is `why`, if given."""
        self._exchange.closed()
        self._end(why)

    # -- sending

    def _require_open(self) -> None:
        if not self._shell.is_open:
            raise self._failure or ConnectionFailed(f"not connected to {self.address}")

    # Hot: once per request.
    def _submit(self, message: Message, version: int, timeout_s: float) -> "asyncio.Future[Any]":
        self._require_open()
        answer = self._shell.loop.create_future()
        self._shell.send(message, version, timeout_s, answer)
        return answer

    # -- ending

    def _end(self, why: ClientError | None = None) -> None:
        """End the connection. Requests in flight fail with `why` or the exchange's failure."""
        if self._failure is not None:
            return
        failure = self._exchange.failure
        assert failure is not None
        self._failure = why or ended(failure)
        for answer in self._shell.end():
            if not answer.done():
                answer.set_exception(why or ended(failure))
        if self._session is not None:
            self._session.end(lambda: why or ended(failure))

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._shell.made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._exchange.lost(exc)
        self._end()

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        waiting, self._when_writable = self._when_writable, []
        for callback in waiting:
            callback()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's name)
        return self._exchange.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        answers = self._exchange.receive(nbytes)
        while answers:
            answer, message = answers.popleft()
            # Its waiter may have been cancelled.
            if not answer.done():
                answer.set_result(message)
        if self._exchange.failure is not None:
            self._end()

    # -- opening

    async def negotiate(self, timeout_s: float) -> None:
        """Ask for the versions that the broker serves; fall back to version 0 if necessary."""
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=__version__
        )
        version = ApiVersionsRequest.__versions__[1]
        answer: ApiVersionsResponse = await self._submit(request, version, timeout_s)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = await self._submit(ApiVersionsRequest(), 0, timeout_s)
        check(answer.error_code, "send its versions")
        self.versions = AgreedVersions(answer.api_keys)
        self.features = {
            feature.name: feature.max_version_level for feature in answer.finalized_features
        }

    async def log_in(self, identity: SaslIdentity, timeout_s: float) -> None:
        """Log in by SASL now, and again before each session expires.

        Raises BrokerRefused, and ClientError if there is no token.
        """

        def send(message: Message) -> "asyncio.Future[Any]":
            # Answers come in order, so earlier requests may delay this one.
            now_s = self._shell.loop.time()
            patience_s = max(0.0, self._exchange.last_deadline_s(now_s) - now_s) + timeout_s
            return self._submit(message, self.version(message.__api_key__), patience_s)

        server = str(self.address)
        ready = await ready_in_thread(identity)
        began_s = self._shell.loop.time()
        lifetime_ms = await log_in(ready, server, send)
        if lifetime_ms:
            self._session = LoginSession(identity, server, send, self._dispatch, self.close)
            self._session.opened(lifetime_ms, began_s)

    def _dispatch(self, held: HeldRequest) -> None:
        """Send a request that was held during a login."""
        if held.answer is None:
            self._shell.send_unanswered(held.message, held.version)
        elif not held.answer.done():
            self._shell.send(held.message, held.version, held.timeout_s, held.answer)


def not_connected(
    address: Address, error: OSError, security: ClientSecurity, advertised_by: str | None
) -> ConnectionFailed:
    """Return the error, with advice, for an address to which no connection could be opened."""
    if security.tls is not None and is_of_handshake(error):
        return ConnectionFailed(f"cannot connect to {address}: {of_server(error, address.host)}")
    why = error.strerror or str(error)
    return connection_refused(*address, why, advertised_by=advertised_by)


async def connect(
    address: Address,
    client_id: str,
    timeout_s: float,
    *,
    advertised_by: str | None = None,
    security: ClientSecurity = ClientSecurity(),  # noqa: B008  # A value.
) -> Connection:
    """Open a connection, agree on versions and, if `security` requires it, log in.

    Raises ConnectionFailed with advice, or BrokerRefused if the login is refused.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(address, client_id, protocol=security.protocol),
                address.host,
                address.port,
                ssl=None if security.tls is None else security.tls(),
                server_hostname=None if security.tls is None else address.host,
            )
    except TimeoutError:
        why = f"no answer within {timeout_s:g} s"
        raise connection_refused(*address, why, advertised_by=advertised_by) from None
    except OSError as error:
        raise not_connected(address, error, security, advertised_by) from None
    try:
        await connection.negotiate(timeout_s)
        if security.identity is not None:
            await connection.log_in(security.identity, timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection
