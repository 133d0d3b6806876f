"""Connections to other brokers for one purpose: answers that wait there delay nothing else."""

import asyncio
from typing import Any

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.peers import Peers
from ottla.network.peer import PeerConnection
from ottla.wire.notation import Message


class Links:
    """One connection to each broker that is needed, opened then, and again after it ended."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._open: dict[BrokerId, PeerConnection] = {}
        self._opening: dict[BrokerId, asyncio.Task[PeerConnection]] = {}
        self._closed = False

    async def request(self, broker_id: BrokerId, message: Message, *, timeout_ms: int) -> Any:
        """Send a request and return its response. Raises OttlaError; it may have been done then."""
        connection = self._open.get(broker_id)
        if connection is None or not connection.is_open:
            connection = await self._connect(broker_id)
        return await connection.request(message, timeout_ms=timeout_ms)

    def close(self) -> None:
        """Give all connections back."""
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
        # Others wait for the same connection: one of them giving up does not end it.
        return await asyncio.shield(task)

    def _on_opened(self, broker_id: BrokerId, task: asyncio.Task[PeerConnection]) -> None:
        self._opening.pop(broker_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._open[broker_id] = task.result()
            if self._closed:
                task.result().close()
        else:
            assert isinstance(error, OttlaError)
