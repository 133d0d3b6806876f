"""The connection of a fetcher to the leading broker, opened when needed and after each failure."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.network.peer import PeerConnection

_log = logging.getLogger(__name__)

_FIRST_RETRY_MS = 20

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class SourcePeers(Protocol):
    """Opens connections to other brokers; `broker.cluster.peers.Peers` implements it."""

    async def open(self, broker_id: BrokerId) -> PeerConnection: ...

    async def reaches_known(self, broker_id: BrokerId, within_s: float) -> bool: ...


class SourceLink:
    """The connection to one broker; `connection` is None unless it is open.

    After each failure the link waits twice as long as after the one before, up to `retry_ms_max`.
    """

    def __init__(
        self,
        source: BrokerId,
        peers: SourcePeers,
        spawn: Spawn,
        on_turn: Callable[[], None],
        *,
        retry_ms_max: int,
    ) -> None:
        self.connection: PeerConnection | None = None
        self._source = source
        self._peers = peers
        self._spawn = spawn
        self._on_turn = on_turn
        self._retry_ms = _FIRST_RETRY_MS
        self._retry_ms_max = retry_ms_max
        self._connecting = False
        self._closed = False
        self._wake_up: asyncio.TimerHandle | None = None

    def want(self) -> None:
        """Open the connection, unless that is in progress or must wait."""
        if not self._connecting and self._wake_up is None:
            self._connecting = True
            self._spawn(self._open())

    def end(self) -> None:
        """Close the connection until it is needed again."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connection for good."""
        self._closed = True
        self.end()
        if self._wake_up is not None:
            self._wake_up.cancel()

    def on_success(self) -> None:
        """Reset the wait after failures to the shortest, because the source answered."""
        self._retry_ms = _FIRST_RETRY_MS

    def on_news(self) -> None:
        """Connect without waiting: the source was just elected leader, so it is alive."""
        self._retry_ms = _FIRST_RETRY_MS
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None

    def wait(self) -> None:
        """Schedule a turn after a failure, with a delay that doubles each time."""
        if not self._closed:
            self.wake_after(self._retry_ms)
            self._retry_ms = min(self._retry_ms * 2, self._retry_ms_max)

    def wake_after(self, delay_ms: int) -> None:
        """Schedule a turn after `delay_ms`, and do not connect before that."""
        if self._wake_up is not None:
            self._wake_up.cancel()
        loop = asyncio.get_running_loop()
        self._wake_up = loop.call_later(max(delay_ms, 1) / 1000, self._on_wake_up)

    async def _open(self) -> None:
        try:
            connection = await self._peers.open(self._source)
        except OttlaError as error:
            _log.debug("cannot fetch from broker %d: %s", self._source, error.message)
            self.wait()
            return
        finally:
            self._connecting = False
        if self._closed:
            connection.close()
            return
        self.connection = connection
        self._on_turn()

    def _on_wake_up(self) -> None:
        self._wake_up = None
        self._on_turn()
