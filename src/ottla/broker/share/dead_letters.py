"""The dead letters of one share partition: written one batch after another, then archived.

Waiting letters are within the window of the partition, and so bounded. A letter is written after
the state says that it is to be, and before the state says that it was: a new leader in between
writes it again (`docs/adr/0013-dead-letters.md`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.dead_letter_sender import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.reading import PORTION_BYTES, read_portion
from ottla.record.codec import Record
from ottla.record.reader import CorruptBatch, batches, records
from ottla.share.dead_letters import TOPIC_NAME, Origin, write_letters
from ottla.share.deliveries import Dead

# How long a batch is retried while its topic cannot be written to.
_PATIENCE_MS = 120_000
# How long if a setting lacks: this broker may learn of it later than others.
_GRACE_MS = 2_000
_LOST = "left no dead letter"
_BARE = "left dead letters without their content"
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
# Retried besides the retriable codes: another broker, or a later attempt, may succeed.
_PASSING = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class DeadLetterWriter:
    """`on_done` is called with the first and last offset of what is done with, written or not."""

    def __init__(
        self,
        runtime: Runtime,
        settings: ShareGroupSettings,
        sender: DeadLetterSender,
        group_id: str,
        partition: Partition,
        on_done: Callable[[int, int], None],
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._sender = sender
        self._partition = partition
        self._origin = Origin(group_id, partition.topic, partition.index)
        self._on_done = on_done
        # Each with the time at which it was added.
        self._waiting: deque[tuple[Dead, int]] = deque()
        self._closed = False
        self._running = False
        # The last error that was given up on: it gets no second grace period.
        self._refused = ""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write."""
        return not self._waiting

    def add(self, dead: Iterable[Dead]) -> None:
        """Write letters for these after those that wait."""
        now_ms = self._runtime.clock.monotonic_ms()
        self._waiting.extend((each, now_ms) for each in dead)
        if self._waiting and not self._running and not self._closed:
            self._running = True
            self._runtime.spawn(self._write_all())

    def close(self) -> None:
        """The partition is closed: the next leader begins with what is not done."""
        self._closed = True
        self._waiting.clear()

    async def _write_all(self) -> None:
        try:
            tries = 0
            while self._waiting:
                dead, since_ms = self._waiting[0]
                last = await self._settle(dead, since_ms)
                if last is None:
                    await asyncio.sleep(_BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)])
                    tries += 1
                    continue
                tries = 0
                if self._closed:
                    return
                self._pass(dead, since_ms, last)
        finally:
            self._running = False

    async def _settle(self, dead: Dead, since_ms: int) -> int | None:
        """The last offset that is done with, written or given up; None: retry."""
        try:
            last = await self._write_some(dead)
        except OttlaError as error:
            if self._closed or self._is_worth_trying(error, since_ms):
                return None
            self._refused = error.message
            self._report(dead.last - dead.first + 1, _LOST, error.message)
            return dead.last
        self._refused = ""
        return last

    def _pass(self, dead: Dead, since_ms: int, last: int) -> None:
        self._waiting.popleft()
        if last < dead.last:
            self._waiting.appendleft((dead._replace(first=last + 1), since_ms))
        self._on_done(dead.first, last)

    def _is_worth_trying(self, error: OttlaError, since_ms: int) -> bool:
        waited_ms = self._runtime.clock.monotonic_ms() - since_ms
        if error.code.retriable or error.code in _PASSING:
            return waited_ms < _PATIENCE_MS
        return waited_ms < _GRACE_MS and error.message != self._refused

    async def _write_some(self, dead: Dead) -> int:
        """Write as many letters as fit into one batch; return their last offset."""
        config = self._settings.config(self._origin.group_id)
        if not config.letters:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG, f"the group has no {TOPIC_NAME} any more: set one"
            )
        source = self._partition.topic_partition
        target = await self._sender.target(config.letters, source)
        found, upto = self._found(dead, target.max_bytes) if config.copies else ({}, dead.last)
        letters = write_letters(
            self._origin,
            dead,
            found,
            upto=upto,
            now_ms=self._runtime.clock.now_ms(),
            max_bytes=target.max_bytes,
        )
        await self._sender.send(target, letters.batch)
        if letters.bare:
            why = f"a batch of {target.topic.name} has {target.max_bytes} bytes at most"
            self._report(letters.bare, _BARE, f"{why}: raise its max.message.bytes")
        return letters.last

    def _found(self, dead: Dead, enough_bytes: int) -> tuple[dict[int, Record], int]:
        """The records in the log, enough to fill a batch, and the last offset that was read."""
        partition = self._partition
        first = max(dead.first, partition.log_start_offset)
        found: dict[int, Record] = {}
        upto, left_bytes = dead.last, enough_bytes
        try:
            portion = read_portion(partition, first, PORTION_BYTES, committed=False)
            for position, header in batches(portion.data):
                upto = header.last_offset
                for record in records(portion.data, position, header):
                    if first <= record.offset <= dead.last:
                        found[record.offset] = record
                        left_bytes -= len(record.value or b"")
                if left_bytes <= 0:
                    break
        except (CorruptBatch, OttlaError) as error:
            self._report(min(upto, dead.last) - first + 1, _BARE, error.message)
        return found, upto

    def _report(self, count: int, what: str, trouble: str) -> None:
        self._sender.report(self._origin.group_id, count, what, trouble)
