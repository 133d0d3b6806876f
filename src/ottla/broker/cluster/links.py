"""Separate connections to other brokers, so that slow answers do not delay other requests."""

import asyncio
from collections.abc import Container
from typing import Any

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.peers import Peers
from ottla.network.peer import PeerConnection
from ottla.wire.notation import Message

# A connection that is unused for this long is closed.
_IDLE_MS = 20_000


def idle_ms(settings: BrokerSettings) -> int:
    """Return the idle time after which this broker closes a connection, before the other does."""
    longest_ms = settings.integer("connections.max.idle.ms")
    return min(_IDLE_MS, max(1, longest_ms // 3)) if longest_ms > 0 else _IDLE_MS


class Links:
    """One connection to each broker, opened by the first request and reopened after it ended.

    This broker closes a connection that is idle for `idle_ms`. If the other broker closed it, this
    broker would suspect that the other one has died.
    """

    def __init__(self, peers: Peers, *, idle_ms: int) -> None:
        self._peers = peers
        self._idle_ms = idle_ms
        self._open: dict[BrokerId, PeerConnection] = {}
        self._opening: dict[BrokerId, asyncio.Task[PeerConnection]] = {}
        # Requests sent so far to each broker.
        self._sent: dict[BrokerId, int] = {}
        self._closed = False

    async def request(self, broker_id: BrokerId, message: Message, *, timeout_ms: int) -> Any:
        """Send a request and return its response. After an OttlaError the outcome is unknown."""
        connection = self._open.get(broker_id)
        if connection is None or not connection.is_open:
            connection = await self._connect(broker_id)
        self._sent[broker_id] = self._sent.get(broker_id, 0) + 1
        return await connection.request(message, timeout_ms=timeout_ms)

    def keep_only(self, alive: Container[BrokerId]) -> None:
        """Close connections to brokers that are not in `alive`.

        Their requests in flight fail at once, and can be sent to the new leaders.
        """
        for broker_id in [known for known in self._open if known not in alive]:
            self._open.pop(broker_id).close()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for task in self._opening.values():
            task.cancel()
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    async def _connect(self, broker_id: BrokerId) -> PeerConnection:
        task = self._opening.get(broker_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._peers.open(broker_id))
            self._opening[broker_id] = task
            task.add_done_callback(lambda done: self._on_opened(broker_id, done))
        # Shielded, because other requests may wait for the same connection.
        return await asyncio.shield(task)

    def _on_opened(self, broker_id: BrokerId, task: asyncio.Task[PeerConnection]) -> None:
        self._opening.pop(broker_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # Every request that waits for the connection raises the error.
            assert isinstance(error, OttlaError), error
        elif self._closed:
            task.result().close()
        else:
            self._open[broker_id] = task.result()
            self._watch(broker_id, task.result())

    def _watch(self, broker_id: BrokerId, connection: PeerConnection) -> None:
        sent = self._sent.get(broker_id, 0)
        loop = asyncio.get_running_loop()
        loop.call_later(self._idle_ms / 1000, self._look, broker_id, connection, sent)

    def _look(self, broker_id: BrokerId, connection: PeerConnection, sent: int) -> None:
        """Close the connection if nothing was sent since the last check."""
        if self._open.get(broker_id) is not connection:
            return
        if connection.in_flight or self._sent.get(broker_id, 0) != sent:
            self._watch(broker_id, connection)
            return
        del self._open[broker_id]
        connection.close()
