"""One partition of `__share_group_state` at work: its coordinator, and its log, which it cuts."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinating import Shard, Ticket
from ottla.broker.partition import OnBehalf, Partition
from ottla.broker.purgatory import Purgatory
from ottla.record.reader import batches, records
from ottla.share.coordinator import Decision, ShareCoordinator
from ottla.share.records import ShareRecord, decode, encode
from ottla.share.settings import ShareStateSettings

_log = logging.getLogger(__name__)

# Given the coordinator, who asks, and the time of day in ms.
Command = Callable[[ShareCoordinator, Any, int], Decision]
# Below this a log is read without a thread.
_SMALL_BYTES = 1_048_576


class ShareStateShard(Shard[ShareCoordinator, ShareRecord]):
    """The share state of one partition."""

    what = "share states"

    def __init__(
        self,
        partition: Partition,
        settings: ShareStateSettings,
        clock: Clock,
        purgatory: Purgatory,
        *,
        commit_timeout_ms: int,
        load_bytes: int,
    ) -> None:
        super().__init__(
            partition,
            clock,
            purgatory,
            commit_timeout_ms=commit_timeout_ms,
            load_bytes=load_bytes,
        )
        self._settings = settings

    def empty(self) -> ShareCoordinator:
        return ShareCoordinator(self._settings)

    async def replayed(self) -> ShareCoordinator:
        coordinator = self.empty()
        log = self.partition.log
        small = log.size_bytes <= _SMALL_BYTES
        offset, end = log.log_start_offset, log.log_end_offset
        loop = asyncio.get_running_loop()
        while offset < end:
            if small:
                chunk = self._read(offset, end)
            else:
                chunk = await loop.run_in_executor(None, self._read, offset, end)
            following = offset
            for following, record in chunk:
                if record is not None:
                    coordinator.apply(record, following)
            offset = following + 1 if chunk else end
        return coordinator

    def encode(self, record: ShareRecord) -> tuple[bytes, bytes | None]:
        return encode(record)

    def apply(
        self,
        coordinator: ShareCoordinator,
        record: ShareRecord,
        offset: int,
        _producer: OnBehalf | None,
    ) -> None:
        coordinator.apply(record, offset)

    def begin(self, coordinator: ShareCoordinator) -> None:
        if coordinator.states:
            _log.info("loaded %d share states of %s", len(coordinator.states), self.name)

    def forsake(self, _coordinator: ShareCoordinator | None, _code: ErrorCode) -> None:
        """Nobody waits here but for records to be committed, which the partition tells."""

    # Hot: once per command.
    def run(self, ticket: Ticket, command: Command) -> None:
        """Carry a command out, and answer it. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS)."""
        decision = command(self.loaded(), ticket, self.clock.now_ms())
        if not decision.records or self.write(decision):
            self.answer(decision)

    def upkeep(self) -> None:
        """Write old snapshots anew, and cut what is needed no more off the log's beginning."""
        coordinator = self.coordinator
        if coordinator is None:
            return
        decision = coordinator.refresh(self.clock.now_ms())
        if decision.records and not self.write(decision):
            return
        end = self.partition.log_end_offset
        self.partition.on_high_watermark(end, lambda code: self._cut(coordinator, code))

    def _cut(self, coordinator: ShareCoordinator, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE or self.coordinator is not coordinator:
            return
        # A snapshot above the high watermark may be lost with its term.
        start = min(
            coordinator.needed_from(self.partition.log_end_offset), self.partition.high_watermark
        )
        if start > self.partition.log_start_offset:
            try:
                self.partition.advance_log_start(start)
            except OttlaError as error:
                _log.warning("cannot cut %s: %s", self.name, error)

    def _read(self, offset: int, end: int) -> list[tuple[int, ShareRecord | None]]:
        """The records from `offset` on, some of them, in order."""
        located = self.partition.log.read(offset, self.load_bytes, max_offset=end)
        buffer = located.file.pread(located.size, located.position)
        return [each for each in _decoded(buffer) if each[0] >= offset]


def _decoded(buffer: bytes | memoryview) -> Iterator[tuple[int, ShareRecord | None]]:
    for position, header in batches(buffer):
        if header.is_control:
            yield header.last_offset, None
            continue
        for record in records(buffer, position, header):
            found = None if record.key is None else decode(record.key, record.value)
            yield record.offset, found
