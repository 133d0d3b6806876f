"""One range of a partition, from fetched batches to Arrow rows and an account of each offset.

The one reading core: the load's tasks, the data source and the verification all come through
`read_range`. It skips control batches and aborted transactions, and counts them.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ottla.lake.columns import ColumnBuilder
from ottla.lake.plan import Range
from ottla.lake.source import Fetched
from ottla.ledger.partition import RangeAccount
from ottla.record.aborted import AbortedTransactions
from ottla.record.reader import batches, check_batch

# Rows and bytes that make an Arrow batch at the latest; whichever comes first.
_ROWS_MAX = 1 << 17
_BYTES_MAX = 32 << 20
# What is worth a batch of its own where an answer ends: columns come from one buffer then, and
# nothing is joined. (Spark and Parquet like batches of tens of thousands of rows.)
_ROWS_ENOUGH = 1 << 14
_BYTES_ENOUGH = 4 << 20


def read_range(
    wanted: Range, fetches: Iterable[Fetched], account: RangeAccount
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `wanted` in order of offset; `account` has counted them all at the end.

    Every batch's checksum is checked. Raises OttlaError CORRUPT_MESSAGE.
    """
    builder = ColumnBuilder(wanted.topic, wanted.partition, wanted.start, wanted.end)
    transactions = AbortedTransactions()
    for fetched in fetches:
        if fetched.log_start > account.position:
            # The batch at the log's new start may still hold records from below it: deleted ones.
            yield from _taken(builder)
            account.log_starts_at(fetched.log_start)
            builder.start = account.position
        transactions.learn(fetched.aborted)
        for position, header in batches(fetched.buffer):
            if header.last_offset < account.position:
                continue
            check_batch(fetched.buffer, position, header)
            if header.is_control:
                transactions.on_control_batch(fetched.buffer, position, header, check_crc=False)
                account.control_batch(header.base_offset, header.last_offset)
            elif transactions.is_aborted(header):
                account.aborted_batch(header.base_offset, header.last_offset)
            elif header.base_offset >= wanted.end:
                # Nothing of it is wanted; that it is there explains the gap before it.
                account.records(header.base_offset, header.last_offset, 0)
            else:
                loaded = builder.add(fetched.buffer, position, header)
                account.records(header.base_offset, header.last_offset, loaded)
            if account.position >= wanted.end:
                break
            if builder.row_count >= _ROWS_MAX or builder.payload_bytes >= _BYTES_MAX:
                yield from _taken(builder)
        if account.position >= wanted.end:
            break
        if builder.row_count >= _ROWS_ENOUGH or builder.payload_bytes >= _BYTES_ENOUGH:
            yield from _taken(builder)
    yield from _taken(builder)


def _taken(builder: ColumnBuilder) -> Iterator[pa.RecordBatch]:
    batch = builder.take() if builder.row_count else None
    if batch is not None:
        yield batch
