"""A DeleteRecords that waits until all live replicas have the new log start offset (KIP-107)."""

import asyncio
from collections.abc import Iterable

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.waiters import Woken
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.runtime import Runtime
from ottla.replica.registration import OwnRegistration
from ottla.wire.messages.topics import DeleteRecordsPartitionResult, DeleteRecordsResponse

# The longest wait for a flush. A slower disk is stuck.
_PATIENCE_MS = 1_000


async def until_flushed(partitions: Iterable[Partition], purgatory: Purgatory) -> None:
    """Wait until all records are committed, in partitions where a flush is enough for that."""
    waiting = [partition for partition in partitions if partition.is_committed_by_flush]
    if not waiting:
        return
    flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(waiting)

    def finish() -> None:
        if not flushed.done():
            flushed.set_result(None)

    def on_reached(_code: ErrorCode) -> None:
        nonlocal left
        left -= 1
        if not left:
            finish()

    deadline = purgatory.schedule(_PATIENCE_MS, finish)
    for partition in waiting:
        partition.on_high_watermark(partition.log_end_offset, on_reached)
    await flushed
    purgatory.cancel(deadline)


Waiting = list[tuple[Partition, int, DeleteRecordsPartitionResult]]


def low_watermark(own: OwnRegistration, partition: Partition) -> int:
    """Return the lowest log start offset of the live replicas; -1 while one is unknown."""
    image = partition.image
    replicas = () if image is None else image.replicas
    registration = own.current
    starts = [
        partition.follower_starts.get(replica, -1)
        for replica in replicas
        if replica != registration.broker_id and replica in registration.live
    ]
    return min([partition.log_start_offset, *starts])


class DelayedDeleteRecords(Woken):
    """One DeleteRecords until it is answered; it waits on partitions with lagging followers."""

    __slots__ = ("_deadline", "_own", "_request", "_response", "_waiting")

    def __init__(
        self,
        runtime: Runtime,
        own: OwnRegistration,
        request: RequestContext,
        response: DeleteRecordsResponse,
        waiting: Waiting,
    ) -> None:
        """`waiting` has partitions, their target log start offsets, and parts of `response`."""
        super().__init__(runtime)
        self._own = own
        self._request = request
        self._response = response
        self._waiting = waiting

    def start(self, timeout_ms: int) -> None:
        """Start waiting, for at most `timeout_ms`."""
        self._request.on_abandoned(self._finish)
        self._deadline = self._runtime.purgatory.schedule(timeout_ms, self._on_timeout)
        for partition, _, _ in self._waiting:
            partition.start_waiters[self] = None

    def _look(self) -> None:
        still: Waiting = []
        for partition, offset, answer in self._waiting:
            if partition.leader is None:
                partition.start_waiters.pop(self, None)
                answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            answer.low_watermark = low_watermark(self._own, partition)
            if answer.low_watermark >= offset:
                partition.start_waiters.pop(self, None)
            else:
                still.append((partition, offset, answer))
        was_waiting, self._waiting = bool(self._waiting), still
        if was_waiting and not still:
            self._finish()
            self._request.reply(self._response)

    def _on_timeout(self) -> None:
        for partition, _, answer in self._waiting:
            answer.low_watermark = low_watermark(self._own, partition)
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._finish()
        self._request.reply(self._response)

    def _finish(self) -> None:
        self._runtime.purgatory.cancel(self._deadline)
        for partition, _, _ in self._waiting:
            partition.start_waiters.pop(self, None)
        self._waiting = []
