"""Replays a partition of a coordinator's topic: finds the last value of each key.

Records of a transaction become valid at its commit marker, unless a record of the same key with a
higher offset is valid already. Records of open transactions are listed separately. Unreadable
records are skipped and noted as losses, so that one bad record does not make the others unusable.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.record.codec import Record
from ottla.record.compression import CorruptBatch
from ottla.record.control import ControlType, read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import records
from ottla.storage.log.log import Log
from ottla.storage.recovery.readable import Damage, Whole

_log = logging.getLogger(__name__)

# The most losses that are described one by one.
_EXAMPLES_MAX = 5


class Losses:
    """Records and damaged bytes that were skipped while a partition was loaded."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        # Records that cannot be decoded, perhaps because a newer version wrote them.
        self.records = 0
        # Batches, or damaged bytes in place of batches.
        self.batches = 0
        self._examples: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.records or self.batches)

    def note_record(self, offset: int, what: str) -> None:
        """Note that the record at `offset` cannot be decoded."""
        self.records += 1
        self._note(f"offset {offset}: {what}")

    def note_batch(self, offset: int, what: str) -> None:
        """Note that the records of the batch at `offset` cannot be read."""
        self.batches += 1
        self._note(f"offset {offset}: {what}")

    def note_damage(self, damage: Damage) -> None:
        """Note damaged bytes of a file."""
        self.batches += 1
        self._note(
            f"offset {damage.offset}, {damage.size} bytes from {damage.position} on of "
            f"{damage.path}: {damage.what}"
        )

    def _note(self, example: str) -> None:
        if len(self._examples) < _EXAMPLES_MAX:
            self._examples.append(example)

    def warn(self, what: str) -> None:
        """Log a warning if records were lost; `what` names the loaded state, for example groups."""
        if not self:
            return
        count = self.records + self.batches
        more = count - len(self._examples)
        _log.warning(
            "%s: %d records and %d batches cannot be read and were skipped; the other %s are "
            "loaded. %s%s. Look at the disk and with `ottla log dump`; what was skipped is lost "
            "unless a replica or a copy has it",
            self._topic_partition,
            self.records,
            self.batches,
            what,
            "; ".join(self._examples),
            f"; and {more} more" if more else "",
        )


# A smaller log is read without a thread.
_SMALL_BYTES = 1_048_576

R = TypeVar("R")
# Decodes a record; None for an unknown kind. Raises OttlaError.
Decode = Callable[[bytes, bytes | None], R | None]
# Processes the records of a batch. Raises CorruptBatch if they cannot be read.
Take = Callable[[BatchHeader, list[Record]], None]


class Written(NamedTuple):
    """The offset and value of a record; the value of a tombstone is None."""

    offset: int
    value: bytes | None


@dataclass(slots=True)
class Replayed:
    """The values in a partition.

    `written` has the last value of each key. `pending` has the records of open transactions by
    producer id, in order. Records whose key is in `doubted` are skipped unless `is_readable`
    returns True for them.
    """

    written: dict[bytes, Written] = field(default_factory=dict)
    pending: dict[int, list[tuple[bytes, Written]]] = field(default_factory=dict)
    doubted: Collection[bytes] = ()
    is_readable: Callable[[bytes, Written], bool] = lambda _key, _written: True

    def take(self, header: BatchHeader, content: list[Record]) -> None:
        """Add the records of a batch. Raises CorruptBatch."""
        if header.is_control:
            self._end(header, content)
            return
        for record in content:
            if record.key is None:
                continue
            written = Written(record.offset, record.value)
            if record.key in self.doubted and not self.is_readable(record.key, written):
                continue
            if header.is_transactional:
                waiting = self.pending.setdefault(header.producer_id, [])
                waiting.append((record.key, written))
            else:
                self.written[record.key] = written

    def _end(self, header: BatchHeader, content: list[Record]) -> None:
        for record in content:
            marker = read_marker(record)
            if marker is None:
                continue
            ended = self.pending.pop(header.producer_id, [])
            if marker.control_type is ControlType.COMMIT:
                for key, written in ended:
                    if not self.is_overtaken(key, written):
                        self.written[key] = written

    def in_order(self) -> list[tuple[int, bytes, Written]]:
        """Return (producer id, key, value) of pending records, in the order of the log."""
        found = [
            (producer_id, key, written)
            for producer_id, waiting in self.pending.items()
            for key, written in waiting
        ]
        return sorted(found, key=lambda each: each[2].offset)

    def is_overtaken(self, key: bytes, written: Written) -> bool:
        """Whether a record of the key with a higher offset is valid already."""
        found = self.written.get(key)
        return found is not None and found.offset > written.offset


class Pending(NamedTuple, Generic[R]):
    """A record of an open transaction.

    `is_overtaken` is True if a record of the same key with a higher offset is valid already.
    """

    producer_id: int
    record: R
    is_overtaken: bool


@dataclass(slots=True)
class ReplayedPartition(Generic[R]):
    """The decoded records of a replayed partition, without tombstones."""

    losses: Losses
    records: list[R] = field(default_factory=list)
    # Records of open transactions, in the order of the log.
    pending: list[Pending[R]] = field(default_factory=list)
    # Keys whose last value is unreadable.
    doubted: set[bytes] = field(default_factory=set)

    def decode(self, found: Replayed, decode: Decode[R]) -> None:
        """Decode the partition's values into records."""
        for key, written in found.written.items():
            if written.value is not None:
                record = self._readable(key, written, decode)
                if record is not None:
                    self.records.append(record)
        for producer_id, key, written in found.in_order():
            record = self._readable(key, written, decode)
            if record is not None:
                overtaken = found.is_overtaken(key, written)
                self.pending.append(Pending(producer_id, record, overtaken))

    def _readable(self, key: bytes, written: Written, decode: Decode[R]) -> R | None:
        """Decode a record; if it is unreadable or unknown, note a loss and return None."""
        try:
            record = decode(key, written.value)
        except OttlaError as error:
            self.doubted.add(key)
            self.losses.note_record(written.offset, error.message or error.code.name)
            return None
        if record is None:
            kind = key[:2].hex()
            self.losses.note_record(written.offset, f"a record of unknown kind 0x{kind}")
        return record


async def replay(partition: Partition, chunk_bytes: int, decode: Decode[R]) -> ReplayedPartition[R]:
    """Return the last readable value of each key in the log, and the pending records.

    In a long log only the last value of each key is decoded. If one of these is unreadable, the log
    is read again to find the last readable value. Raises OttlaError if the disk fails.
    """
    found, reading = Replayed(), ReplayedPartition[R](Losses(partition.topic_partition))
    await read_back(partition.log, chunk_bytes, found.take, reading.losses)
    reading.decode(found, decode)
    if not reading.doubted:
        return reading
    losses = Losses(partition.topic_partition)

    def is_readable(key: bytes, written: Written) -> bool:
        try:
            if written.value is not None:
                decode(key, written.value)
        except OttlaError as error:
            losses.note_record(written.offset, error.message or error.code.name)
            return False
        return True

    found = Replayed(doubted=reading.doubted, is_readable=is_readable)
    reading = ReplayedPartition[R](losses)
    await read_back(partition.log, chunk_bytes, found.take, losses)
    reading.decode(found, decode)
    return reading


async def read_back(log: Log, chunk_bytes: int, take: Take, losses: Losses) -> None:
    """Pass all batches of a log to `take` in order, reading `chunk_bytes` at a time.

    A large log is read in a thread. Unreadable batches are skipped and noted in `losses`. Raises
    OttlaError if the disk fails.
    """
    parts = log.readable(chunk_bytes)

    def step() -> bool:
        part = next(parts, None)
        for each in part or ():
            _take(each, take, losses)
        return part is not None

    if log.size_bytes <= _SMALL_BYTES:
        while step():
            pass
        return
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, step):
        pass


def _take(found: Whole | Damage, take: Take, losses: Losses) -> None:
    if isinstance(found, Damage):
        losses.note_damage(found)
        return
    buffer, place, header, _ = found
    try:
        # The checksum was verified already.
        take(header, records(buffer, place, header, check_crc=False))
    except CorruptBatch as error:
        losses.note_batch(header.base_offset, error.message or ErrorCode.CORRUPT_MESSAGE.name)
