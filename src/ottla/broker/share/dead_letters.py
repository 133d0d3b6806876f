"""The dead letters of one share partition: written one batch after another, then archived.

Records that wait for a dead letter are in flight: `share.partition.max.record.locks` bounds them. A
dead letter is written after the record's state ARCHIVING, and before its state ARCHIVED: if the
leader changes in between, the new leader writes it again (`adr/0012-dead-letters.md`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.dead_letter_sender import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.portion import PORTION_BYTES, read_portion
from ottla.record.codec import Record
from ottla.record.reader import CorruptBatch, batches, records
from ottla.share.dead_letters import TOPIC_NAME, Origin, write_letters
from ottla.share.deliveries import Dead

# How long a batch is retried after errors that may pass.
_PATIENCE_MS = 120_000
# How long it is retried after a wrong setting: this broker may learn of a change a little later.
_GRACE_MS = 2_000
_LOST = "get no dead letter"
_BARE = "get dead letters without key and value"
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
# Retried like Kafka's retriable codes: another broker, or a later attempt, may succeed.
_PASSING = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class DeadLetterWriter:
    """Writes the dead letters of one share partition, in order, with retries.

    `on_done` is called with the first and last offset of records whose dead letters were written or
    given up.
    """

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
        # Records without a dead letter yet, each with the time it was added (monotonic ms).
        self._waiting: deque[tuple[Dead, int]] = deque()
        self._closed = False
        self._running = False
        # The message of the last error that made a batch be given up; no grace period if it recurs.
        self._refused = ""

    @property
    def is_idle(self) -> bool:
        """Whether no record waits for a dead letter."""
        return not self._waiting

    def add(self, dead: Iterable[Dead]) -> None:
        """Write dead letters for these records, after those that wait already."""
        now_ms = self._runtime.clock.monotonic_ms()
        self._waiting.extend((each, now_ms) for each in dead)
        if self._waiting and not self._running and not self._closed:
            self._running = True
            self._runtime.spawn(self._write_all())

    def close(self) -> None:
        """Stop writing: the share partition is closed; the next leader writes what is missing."""
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
        """Try the first batch; return the last offset written or given up, None to retry."""
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
        """Write as many dead letters as fit into one batch; return their last source offset."""
        config = self._settings.config(self._origin.group_id)
        if not config.letters:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"the group's {TOPIC_NAME} is not set any more: set it to the dead-letter topic",
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
            why = f"topic {target.topic.name} takes batches of at most {target.max_bytes} bytes"
            self._report(letters.bare, _BARE, f"{why}: raise its max.message.bytes")
        return letters.last

    def _found(self, dead: Dead, enough_bytes: int) -> tuple[dict[int, Record], int]:
        """Source records from the log, enough to fill a batch, and the last offset read."""
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
