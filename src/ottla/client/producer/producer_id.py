"""The producer id, which lets brokers recognise a producer's batches (KIP-98)."""

import asyncio
from collections.abc import Callable

from ottla.base.errors import OttlaError
from ottla.client.common.errors import check
from ottla.client.connection.cluster import Cluster
from ottla.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

# The transaction timeout sent by a producer without transactions.
_NO_TIMEOUT_MS = 0x7FFFFFFF


class ProducerIds:
    """Asks brokers for a producer id, repeatedly until one answers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._task: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[], None]] = []
        # The current producer id; -1 if there is none yet.
        self.current = -1

    def when_known(self, callback: Callable[[], None]) -> None:
        """Call `callback` once an id is known; request one if no request is in progress."""
        if callback not in self._callbacks:
            self._callbacks.append(callback)
        if self._task is None:
            self._task = asyncio.ensure_future(self._ask())

    def renew(self) -> None:
        """Drop the id, because its epochs are used up; the next one is requested on demand."""
        self.current = -1

    async def _ask(self) -> None:
        attempt = 0
        while self.current < 0:
            try:
                answer = await self._cluster.ask_any(
                    InitProducerIdRequest(
                        transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS
                    ),
                    InitProducerIdResponse,
                )
                check(answer.error_code, "give a producer id")
                self.current = answer.producer_id
            except OttlaError:
                await self._cluster.pause(attempt)
                attempt += 1
        self._task = None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    async def close(self) -> None:
        """Cancel the request for a producer id, if one is in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
