"""A blocking connection for sequential tasks: no event loop, no threads.

A shell over `network.exchange` whose clock runs only while it waits for the broker: a task may work
for minutes between two answers to requests sent ahead, and no deadline passes meanwhile.
"""

import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Self, TypeVar

from ottla import __version__
from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import (
    BrokerRefused,
    ClientError,
    check,
    ended,
)
from ottla.client.connection.connection import AgreedVersions, not_connected, version_for
from ottla.client.connection.login import APART_S, BEGIN, ready_identity
from ottla.client.connection.security import ClientSecurity
from ottla.client.connection.view import Address
from ottla.network.exchange import Exchange
from ottla.security.sasl.client import SaslIdentity, login_requests
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.notation import Message

Response = TypeVar("Response")

# How much later than its deadline a request may fail.
_LATE_S = 0.01

# Connects a socket to an address within a time limit in seconds. Raises OSError.
Connect = Callable[[Address, float], socket.socket]


def _secured(plain: socket.socket, tls: ssl.SSLContext, host: str) -> socket.socket:
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


class BlockingConnection:
    """A connection with agreed versions. Requests may be sent ahead; answers come in order.

    Connecting may take `setup_s`, and agreeing on versions as long again. `timeout_s` limits
    the wait for each answer, and is the default of `setup_s`. After ConnectionFailed or
    RequestTimedOut the connection cannot be used any more. `connect` and `now_s` are its only
    access to the system.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_s: float,
        *,
        setup_s: float | None = None,
        advertised_by: str | None = None,
        connect: Connect = socket.create_connection,
        now_s: Callable[[], float] = time.monotonic,
        security: ClientSecurity = ClientSecurity(),  # noqa: B008  # A value.
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._now_s = now_s
        # Seconds spent waiting so far: the exchange's clock.
        self._waited_s = 0.0
        # The timeout last set on the socket.
        self._limit_s = -1.0
        # The clock time of the next login; the session expires a little later.
        self._log_in_s = inf
        self._allowed_s = 0.0
        self._identity = security.identity
        self._exchange: Exchange[None] = Exchange(
            str(address), client_id, protocol=security.protocol
        )
        self._answers: deque[tuple[None, Any]] = deque()
        setup_s = timeout_s if setup_s is None else setup_s
        try:
            self._socket = connect(address, setup_s)
            if security.tls is not None:
                self._socket = _secured(self._socket, security.tls(), address.host)
        except OSError as error:
            raise not_connected(address, error, security, advertised_by) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.versions = self._negotiate(setup_s)
            if security.identity is not None:
                self._log_in(security.identity)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _negotiate(self, timeout_s: float) -> AgreedVersions:
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=__version__
        )
        version = ApiVersionsRequest.__versions__[1]
        self._send(request, version, timeout_s)
        answer: ApiVersionsResponse = self.receive()
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._send(ApiVersionsRequest(), 0, timeout_s)
            answer = self.receive()
        check(answer.error_code, "send its versions")
        self._newest = {entry.api_key: entry.max_version for entry in answer.api_keys}
        return AgreedVersions(answer.api_keys)

    def _log_in(self, identity: SaslIdentity) -> None:
        """Log in, and note when the session must be renewed. No request may be in flight."""
        requests = login_requests(ready_identity(identity), str(self.address), random_bytes)
        request = next(requests)
        began_s, self._log_in_s = self._now_s(), inf
        while True:
            self.send(request)
            try:
                request = requests.send(self.receive())
            except StopIteration as done:
                lifetime_ms: int = done.value
                if lifetime_ms:
                    self._log_in_s = began_s + lifetime_ms / 1000 * BEGIN
                self._allowed_s = began_s + APART_S
                return
            except ClientError:
                raise
            except OttlaError as error:
                raise BrokerRefused(error.code, error.message) from None

    def _log_in_again(self) -> None:
        """Receive the pending answers, then log in, since brokers allow no requests in between."""
        assert self._identity is not None
        early: deque[tuple[None, Any]] = deque()
        while self._exchange.in_flight or self._answers:
            early.append((None, self.receive()))
        time.sleep(max(0.0, self._allowed_s - self._now_s()))
        self._log_in(self._identity)
        self._answers.extend(early)

    def speaks(self, key: int, version: int) -> bool:
        """Whether the broker supports `version` of the API, which may be above the agreed one."""
        return self._newest.get(key, -1) >= version

    def version(self, key: int) -> int:
        """Return the version agreed with this broker. Raises UnsupportedByBroker."""
        return version_for(self.versions, key, str(self.address))

    def ask(self, message: Message, response_type: type[Response]) -> Response:
        """Send `message` and wait for its answer. No other request may be in flight."""
        assert not self._exchange.in_flight
        assert not self._answers
        self.send(message)
        answer = self.receive()
        assert isinstance(answer, response_type)
        return answer

    def send(
        self, message: Message, timeout_s: float | None = None, *, version: int | None = None
    ) -> None:
        """Send `message`; `receive` returns its answer later.

        `timeout_s` (default: the connection's) limits how long calls may wait for it. `version`
        must be one that the broker `speaks`; the default is the agreed one.
        """
        if self._log_in_s < inf and self._now_s() >= self._log_in_s:
            self._log_in_again()
        key = message.__api_key__
        if timeout_s is None:
            timeout_s = self._timeout_s
        self._send(message, self.version(key) if version is None else version, timeout_s)

    def _send(self, message: Message, version: int, timeout_s: float) -> None:
        self._require_open()
        deadline_s = self._waited_s + timeout_s
        parts = self._exchange.send(message, version, deadline_s, None)
        data = b"".join(parts)  # type: ignore[arg-type]  # No file regions.
        self._wait(lambda: self._socket.sendall(data))
        self._require_open()

    def receive(self) -> Any:
        """Return the next answer. Its records are views of the receive buffer."""
        while not self._answers:
            self._require_open()
            assert self._exchange.in_flight, "nothing was sent"
            count = self._wait(lambda: self._socket.recv_into(self._exchange.get_buffer()))
            if count == 0:
                self._exchange.lost(None)
            elif count is not None:
                self._answers = self._exchange.receive(count)
        return self._answers.popleft()[1]

    def _wait(self, call: Callable[[], int | None]) -> int | None:
        """Call a socket function that waits until the next deadline at most. None: it failed."""
        exchange = self._exchange
        if exchange.next_deadline_s <= self._waited_s:
            exchange.time_passed(self._waited_s)
            if exchange.failure is not None:
                return None
        self._limit_wait(exchange.next_deadline_s - self._waited_s)
        begin_s = self._now_s()
        try:
            return call()
        except TimeoutError:
            exchange.time_passed(exchange.next_deadline_s)
        except OSError as error:
            exchange.lost(error)
        finally:
            self._waited_s += self._now_s() - begin_s
        return None

    def _limit_wait(self, left_s: float) -> None:
        """Set the socket's timeout to `left_s`, or hundredths of a second more.

        The timeout is kept for the next calls, since setting it costs as much as a read.
        """
        if not left_s <= self._limit_s <= left_s + 2 * _LATE_S:
            self._limit_s = left_s + min(left_s / 100, _LATE_S)
            self._socket.settimeout(self._limit_s)

    def _require_open(self) -> None:
        if self._exchange.failure is not None:
            self._socket.close()
            raise ended(self._exchange.failure)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
