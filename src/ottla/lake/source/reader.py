"""Reads one range of a partition: from fetched batches to Arrow rows and a ledger of offsets.

Load tasks, the data source and the verification all read through `read_range`. It skips and counts
control batches and aborted transactions. A batch that cannot be read is fetched a second time. If
that fails too, an error is raised, or the batch is skipped and counted.

The last offset in the header of a damaged batch may be wrong too. It is trusted if the base offset
of the following batch or the batch's number of records confirms it. Otherwise, later offsets are
fetched until the leader returns a good batch.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import keep_freed_memory
from ottla.client.common.errors import BrokerRefused
from ottla.client.common.placed import placed
from ottla.lake.model.plan import Range
from ottla.lake.rows.columns import ColumnBuilder
from ottla.lake.source.cluster import Fetched, Log
from ottla.ledger.partition import RangeAccount
from ottla.record.aborted import AbortedTransactions
from ottla.record.header import HEADER_SIZE, BatchHeader, read_header
from ottla.record.reader import CorruptBatch, batches, check_batch


class DamagedBatch(CorruptBatch):
    """Raised if the batch at offset `start` cannot be read.

    `end` is the offset after the batch, or None if that is unknown.
    """

    def __init__(self, start: int, end: int | None, cause: str) -> None:
        super().__init__(cause)
        self.start = start
        self.end = end
        self.cause = cause


def span_end(buffer: bytes, position: int, header: BatchHeader) -> int | None:
    """Return the offset after the damaged batch at `position`; None if it is uncertain."""
    claimed = header.last_offset + 1
    spans_records = header.record_count <= header.last_offset_delta + 1
    following = position + header.size
    if len(buffer) - following < HEADER_SIZE:
        return claimed if header.record_count == header.last_offset_delta + 1 else None
    follower = read_header(buffer, following)
    if follower.base_offset == claimed and spans_records:
        return claimed
    try:
        check_batch(buffer, following, follower)
    except CorruptBatch:
        return None
    if follower.base_offset <= header.base_offset:
        return None
    # The good following batch shows where the damaged batch ends at the latest.
    return min(claimed, follower.base_offset) if spans_records else follower.base_offset


def next_readable(log: Log, wanted: Range, damage: DamagedBatch) -> int:
    """Return the base offset of the first good batch after the damage.

    It fetches at growing distances, then by bisection between the last bad and the first good
    offset: some sixty offsets, at most twice each. Raises OttlaError if no later offset can be
    read.
    """
    end = log.end_offset(wanted.topic, wanted.partition)
    last = end - 1
    low, distance = damage.start, 1
    best: int | None = None
    high = low
    while best is None:
        if low >= last:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{wanted.topic}-{wanted.partition} cannot be read from offset {damage.start} on "
                f"({damage.cause}), and the broker gives nothing behind it: restore the partition "
                "from a replica or a copy, or load up to there with "
                f"`--until {wanted.partition}:{damage.start}`",
            )
        high = min(damage.start + distance, last)
        best = _good_at(log, wanted, high, damage.start, end)
        low, distance = (low if best is not None else high), distance * 2
    high = min(high, best)
    while low + 1 < high:
        middle = (low + high) // 2
        found = _good_at(log, wanted, middle, damage.start, end)
        if found is None:
            low = middle
        else:
            best = min(best, found)
            high = min(middle, found)
    return best


def _good_at(log: Log, wanted: Range, offset: int, behind: int, end: int) -> int | None:
    """Return the base offset of the good batch at `offset`, if it begins after `behind`.

    A batch whose base offset does not fit its place in the log is not good: its records would get
    wrong offsets, and other records would be left out. The log ends at `end`.
    """
    for _ in range(2):
        try:
            buffer = log.peek(wanted.topic, wanted.partition, offset)
            if not placed(buffer, offset, end).batches:
                continue
            header = read_header(buffer)
            check_batch(buffer, 0, header)
        except CorruptBatch:
            continue
        is_behind = behind < header.base_offset and offset <= header.last_offset
        return header.base_offset if is_behind else None
    return None


# An Arrow batch ends when it has this many rows or bytes, whichever comes first.
_ROWS_MAX = 1 << 17
_BYTES_MAX = 32 << 20
# If at least this much is waiting at the end of a fetch response, it becomes an Arrow batch. Its
# columns then come from one buffer, and need no copy. (Spark and Parquet work well with batches of
# tens of thousands of rows.)
_ROWS_ENOUGH = 1 << 14
_BYTES_ENOUGH = 4 << 20


def read_range(
    wanted: Range,
    log: Log,
    account: RangeAccount,
    *,
    skip_unreadable: bool = False,
    null_bad_timestamps: bool = False,
    bad_times: dict[int, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `wanted` in order of offset, and count every offset in `account`.

    Every batch's checksum is checked. If a batch cannot be read, OttlaError is raised
    (CORRUPT_MESSAGE, or KAFKA_STORAGE_ERROR if the leader reports that). With `skip_unreadable`, it
    is raised only if no later batch can be read; `account.skipped` has the skipped ranges. Original
    timestamps of rows whose timestamp became null are added to `bad_times`, by offset.
    """
    keep_freed_memory()
    builder = ColumnBuilder(
        wanted.topic,
        wanted.partition,
        wanted.start,
        wanted.end,
        null_bad_timestamps=null_bad_timestamps,
        bad_times=bad_times,
    )
    # The offset of the last damage. If it is damaged again, the cause is not the transmission.
    suspected = -1
    while True:
        rest = replace(wanted, start=account.position)
        try:
            # Close the iteration before the next attempt, as a response may still be expected.
            with closing(log.fetch(rest)) as fetches:
                yield from _read(wanted, fetches, account, builder)
            break
        except (CorruptBatch, BrokerRefused) as error:
            damage = _damage(error, account.position)
            # After KAFKA_STORAGE_ERROR, the client has already retried until its timeout.
            was_retried = error.code is ErrorCode.KAFKA_STORAGE_ERROR
            if damage.start > suspected and not was_retried:
                suspected = damage.start
                continue
            if not skip_unreadable:
                raise _unreadable(wanted, damage, error.code) from error
            end = next_readable(log, wanted, damage) if damage.end is None else damage.end
            account.unreadable_batch(damage.start, end - 1, damage.cause)
        if account.position >= wanted.end:
            break
    yield from _taken(builder)


def _read(
    wanted: Range, fetches: Iterable[Fetched], account: RangeAccount, builder: ColumnBuilder
) -> Iterator[pa.RecordBatch]:
    """Read from the account's position on. Rows may remain in `builder`. Raises CorruptBatch."""
    # A fetch response names the aborted transactions from its first offset on, even if an abort
    # marker was lost.
    transactions = AbortedTransactions()
    for fetched in fetches:
        if fetched.log_start > account.position:
            # The first batch may still have records below the new log start offset. Leave them out.
            yield from _taken(builder)
            account.log_starts_at(fetched.log_start)
            builder.start = account.position
        transactions.learn(fetched.aborted)
        position = 0
        while True:
            position = _take_plain(fetched.buffer, position, account, builder)
            if account.position >= wanted.end:
                return
            if builder.row_count >= _ROWS_MAX or builder.payload_bytes >= _BYTES_MAX:
                yield from _taken(builder)
            header = next((found for _, found in batches(fetched.buffer, position)), None)
            if header is None:
                break
            try:
                _take(wanted, fetched.buffer, position, header, account, builder, transactions)
            except CorruptBatch as error:
                start = max(header.base_offset, account.position)
                end = span_end(fetched.buffer, position, header)
                if end is None or end > start:
                    cause = error.message or error.code.name
                    raise DamagedBatch(start, end, cause) from error
            position += header.size
        if builder.row_count >= _ROWS_ENOUGH or builder.payload_bytes >= _BYTES_ENOUGH:
            yield from _taken(builder)


def _take_plain(buffer: bytes, position: int, account: RangeAccount, builder: ColumnBuilder) -> int:
    """Count and add the plain batches (`Walk.add_plain`) at `position`.

    Returns the position after them.
    """
    before, first = builder.row_count, account.position
    after = builder.add_plain(buffer, position, first, _ROWS_MAX)
    if after > position:
        count = builder.row_count - before
        account.records(first, first + count - 1, count)
    return after


def _take(
    wanted: Range,
    buffer: bytes,
    position: int,
    header: BatchHeader,
    account: RangeAccount,
    builder: ColumnBuilder,
    transactions: AbortedTransactions,
) -> None:
    """Count one batch and add its rows. If it raises CorruptBatch, nothing was counted."""
    check_batch(buffer, position, header)
    if header.last_offset < account.position:
        return  # The leader sent this batch again.
    if header.is_control:
        transactions.on_control_batch(buffer, position, header, check_crc=False)
        account.control_batch(header.base_offset, header.last_offset)
    elif transactions.is_aborted(header):
        account.aborted_batch(header.base_offset, header.last_offset)
    elif header.base_offset >= wanted.end:
        # Its records are beyond the range, but its base offset explains the gap before it.
        account.records(header.base_offset, header.last_offset, 0)
    elif header.record_count > header.last_offset_delta + 1:
        raise CorruptBatch(
            f"batch at offset {header.base_offset} claims {header.record_count} records "
            f"for {header.last_offset_delta + 1} offsets"
        )
    else:
        loaded = builder.add(buffer, position, header)
        account.records(header.base_offset, header.last_offset, loaded)


def _damage(error: OttlaError, position: int) -> DamagedBatch:
    """Convert an error of damaged data to DamagedBatch; raise any other error.

    If the error does not say where the damage is, it is at `position`.
    """
    if isinstance(error, DamagedBatch):
        return error
    if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR):
        raise error
    return DamagedBatch(position, None, error.message or error.code.name)


def _unreadable(wanted: Range, damage: DamagedBatch, code: ErrorCode) -> OttlaError:
    return OttlaError(
        code,
        f"{wanted.topic}-{wanted.partition} cannot be read at offset {damage.start}: "
        f"{damage.cause}. Restore the partition from a replica or a copy, or leave out what cannot "
        "be read: `ottla lake load --skip-unreadable` (load(…, skip_unreadable=True), option "
        "skipUnreadable) counts it in the ledger",
    )


def _taken(builder: ColumnBuilder) -> Iterator[pa.RecordBatch]:
    batch = builder.take() if builder.row_count else None
    if batch is not None:
        yield batch
