"""One kazoo client, which runs in threads: passes its answers and states to the event loop.

Its errors become StoreErrors.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from ottla.coordination.interface.client import call_on_loop
from ottla.coordination.interface.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from ottla.coordination.zookeeper.login import EnsembleLogin, EnsembleThreads, ZookeeperSecurity

_log = logging.getLogger(__name__)

# The client retries often and without end, as the store may return after a long time.
_RETRY = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}
_STOP_LIMIT_S = 15.0


class SessionListener(Protocol):
    """Is called on the loop when the connection changes."""

    def on_connected(self, connection: "EnsembleConnection") -> None: ...

    def on_lost(self, session_id: int) -> None:
        """Act on an expired session; the connection is already opening another."""
        ...


class EnsembleConnection:
    """A client of the ensemble with one session at a time, whose lease is `lease_ms`."""

    def __init__(
        self,
        hosts: str,
        lease_ms: int,
        *,
        security: ZookeeperSecurity,
        patience_ms: int,
        listener: SessionListener,
        client_id: tuple[int, bytes] | None = None,
    ) -> None:
        """With `client_id`, a session's id and password, the connection resumes that session."""
        self.lease_ms = lease_ms
        self.hosts = hosts
        self._patience_s = patience_ms / 1000
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        # Set once the client has connected, or its login was refused.
        self._settled = asyncio.Event()
        # Held while a request is sent and while the loss of a session is noted, so that no request
        # for one session is sent in the next.
        self._lock = threading.Lock()
        self._session_id = 0
        self._password = b""
        self._stopped = False
        self._security = security
        # Why the last attempt to connect failed, and whether ZooKeeper refused the login.
        self._trouble = ""
        self._refused = ""
        self._client = KazooClient(
            hosts=hosts,
            timeout=lease_ms / 1000,
            connection_retry=KazooRetry(**_RETRY),
            client_id=client_id,
            handler=EnsembleThreads(security.tls, self._on_trouble),
            auth_data=security.auth_data,
            use_ssl=security.tls is not None,
        )
        self._client.add_listener(self._on_state)
        self._granted_ms = 0
        EnsembleLogin(
            security,
            self._client._connection,
            on_granted=self._on_granted,
            on_done=lambda: self._to_loop(self._become_connected),
            on_refused=self._on_refused,
            on_trouble=self._on_trouble,
        )

    async def start(self, timeout_ms: int) -> None:
        """Connect. Raises StoreUnavailable if no server answers in time, or StoreDenied."""
        self._client.start_async()
        try:
            await asyncio.wait_for(self._settled.wait(), timeout_ms / 1000)
        except TimeoutError:
            await self.stop()
            raise self._unavailable(f"no server answered within {timeout_ms} ms") from None
        if not self.connected and self._refused:
            await self.stop()
            raise self._denied()

    async def stop(self) -> None:
        """End the session and the connection."""
        self._stopped = True
        done = asyncio.Event()

        def stop() -> None:
            try:
                self._client.stop()
                self._client.close()
            finally:
                self._to_loop(done.set)

        # A daemon: without an answer it waits for seconds, and must not keep the process alive.
        threading.Thread(target=stop, name="ottla-zookeeper-stop", daemon=True).start()
        await asyncio.wait_for(done.wait(), _STOP_LIMIT_S)

    @property
    def connected(self) -> bool:
        return self._connected.is_set()

    @property
    def last_zxid(self) -> int:
        """The newest transaction of the ensemble that this client has seen."""
        return int(self._client.last_zxid)

    async def granted(self) -> tuple[int, bytes, int]:
        """Id and password of the present session, and its timeout in milliseconds.

        Waits for a connection.
        """
        while True:
            await self._until_connected()
            with self._lock:
                if self._session_id:
                    return self._session_id, self._password, self._granted_ms
            await asyncio.sleep(0)

    async def call(
        self, request: Callable[[KazooClient], Any], path: str, *, session_id: int = 0
    ) -> Any:
        """Send a request, with `session_id` only in that session, and wait for its answer.

        Raises StoreError; SessionExpired if the session has ended.
        """
        await self._until_connected()
        answer: asyncio.Future[Any] = self._loop.create_future()
        with self._lock:
            if session_id and session_id != self._session_id:
                raise SessionExpired(session_id)
            result = request(self._client)
        result.rawlink(lambda done: self._to_loop(lambda: _settle(answer, done)))
        try:
            return await asyncio.wait_for(answer, self._patience_s)
        except TimeoutError:
            raise self._unavailable("the answer did not come in time") from None
        except KazooException as error:
            raise self.translate(error, path) from error

    def send(self, request: Callable[[KazooClient], Any], on_error: Callable[[str], None]) -> None:
        """Send a request without waiting; an error's name is passed to `on_error` on the loop.

        Does nothing without a connection.
        """
        if not self.connected:
            return

        def check(done: Any) -> None:
            if done.exception is not None:
                self._to_loop(lambda: on_error(type(done.exception).__name__))

        request(self._client).rawlink(check)

    def translate(self, error: Exception, path: str, expected_version: int = -1) -> StoreError:
        """Convert kazoo's error to a StoreError."""
        match error:
            case NoNodeError():
                return NoNode(path)
            case NodeExistsError():
                return NodeExists(path)
            case BadVersionError():
                return BadVersion(path, expected_version, None)
            case NotEmptyError():
                return NotEmpty(path)
            case NoAuthError() | AuthFailedError():
                return StoreDenied(
                    f"ZooKeeper at {self.hosts} denies us {path or 'what we asked'}: set"
                    " coordination.user and coordination.password to those the nodes were made with"
                    " (`getAcl` of zkCli shows whose they are); `ottla store open`, run as that"
                    " user, takes the nodes' ACLs away"
                )
        return self._unavailable(f"{type(error).__name__} {error}".strip())

    def _denied(self) -> StoreDenied:
        return StoreDenied(f"ZooKeeper at {self.hosts} {self._refused}")

    def _unavailable(self, why: str) -> StoreError:
        if self._refused:
            return self._denied()
        trouble = f"{why}; {self._trouble}" if self._trouble else why
        return StoreUnavailable(
            f"ZooKeeper at {self.hosts} did not answer ({trouble}); look whether a majority of its"
            " servers runs and can be reached"
        )

    async def _until_connected(self) -> None:
        if self.connected:
            return
        try:
            await asyncio.wait_for(self._connected.wait(), self._patience_s)
        except TimeoutError:
            raise self._unavailable("there is no connection") from None

    # The following methods run on kazoo's threads.

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            with self._lock:
                # Kazoo sets its own `client_id` only later.
                self._session_id = self._client._session_id
                self._password = bytes(self._client._session_passwd)
            # With SASL the login comes first.
            if not self._security.is_sasl:
                self._to_loop(self._become_connected)
        elif state == KazooState.SUSPENDED:
            self._to_loop(self._connected.clear)
        else:
            with self._lock:
                lost, self._session_id = self._session_id, 0
            self._to_loop(lambda: self._become_lost(lost))

    def _on_granted(self, granted_ms: int) -> None:
        self._granted_ms = granted_ms

    def _on_trouble(self, why: str) -> None:
        self._to_loop(lambda: self._take_trouble(why, ""))

    def _on_refused(self, why: str) -> None:
        self._to_loop(lambda: self._take_trouble("", why))

    def _to_loop(self, callback: Callable[[], object]) -> None:
        call_on_loop(self._loop, callback)

    # The following methods run on the loop.

    def _take_trouble(self, trouble: str, refused: str) -> None:
        if (trouble, refused) != (self._trouble, self._refused) and not self._stopped:
            _log.warning("ZooKeeper at %s: %s", self.hosts, refused or trouble)
        self._trouble, self._refused = trouble, refused
        if refused:
            self._settled.set()

    def _become_connected(self) -> None:
        self._trouble = self._refused = ""
        self._connected.set()
        self._settled.set()
        if not self._stopped:
            self._listener.on_connected(self)

    def _become_lost(self, session_id: int) -> None:
        self._connected.clear()
        if not self._stopped:
            self._listener.on_lost(session_id)


def _settle(answer: asyncio.Future[Any], done: Any) -> None:
    """Give kazoo's result to the waiting future, unless it was cancelled."""
    if answer.done():
        return
    if done.exception is None:
        answer.set_result(done.value)
    elif isinstance(done.exception, KazooException):
        answer.set_exception(done.exception)
    else:
        # Kazoo's timeout is not a KazooException.
        assert isinstance(done.exception, KazooTimeoutError), done.exception
        answer.set_exception(TimeoutError())
