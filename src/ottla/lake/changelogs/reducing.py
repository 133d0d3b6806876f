"""The first stage of a changelog: a task for each range of offsets.

Reads a range, keeps what the table may need of it, and spreads that over the buckets of the table.
"""

import json
import uuid
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.changelogs.latest import Flags, is_latest
from ottla.lake.changelogs.spilled import Piece, SpilledOutput
from ottla.lake.cluster import connect
from ottla.lake.manifest import Changelog, Keeps
from ottla.lake.plan import Range
from ottla.lake.reader import read_range
from ottla.lake.schema import ROW_SCHEMA
from ottla.lake.stores.store import FileStore
from ottla.lake.task import TaskResult, result_from_text, result_to_text
from ottla.ledger.partition import RangeAccount

OnNullKey = Literal["fail", "skip"]

# Changes are reduced whenever so many bytes of them wait; bounds the memory of a task.
_BYTES_AT_ONCE = 128 << 20


@dataclass(frozen=True, slots=True)
class ReduceJob:
    """A range to read for a changelog table."""

    wanted: Range
    bootstrap: str
    compacted: bool
    store: FileStore
    path: str  # Where its changes go in `store`; an attempt adds a name of its own.
    changelog: Changelog
    on_null_key: OnNullKey = "fail"
    skip_unreadable: bool = False
    null_bad_timestamps: bool = False


@dataclass(frozen=True, slots=True)
class Reduced:
    """What was read, without a data file, and where the changes are. No pieces: no file."""

    read: TaskResult
    path: str
    pieces: tuple[Piece, ...]


def reduce_range(job: ReduceJob) -> str:
    """Read the range and spread its changes over the buckets; return a `Reduced` as text.

    Raises OttlaError; no file stays then.
    """
    wanted = job.wanted
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, job.compacted)
    path = f"{job.path}-{uuid.uuid4().hex[:12]}.arrow"
    output = SpilledOutput(job.store, path, job.changelog.buckets)
    cluster = connect(job.bootstrap)
    keyless = 0
    try:
        batches = read_range(
            wanted,
            cluster,
            account,
            skip_unreadable=job.skip_unreadable,
            null_bad_timestamps=job.null_bad_timestamps,
        )
        waiting = _Waiting(job.changelog.keeps)
        for batch in batches:
            with_key = _with_key(batch, job.on_null_key)
            keyless += batch.num_rows - with_key.num_rows
            if waiting.add(with_key):
                output.write(*waiting.rows())
        output.write(*waiting.rows())
        output.finish()
    except BaseException:
        output.discard()
        raise
    finally:
        cluster.close()
    ledger = account.ledger_with_gaps()
    ledger = replace(ledger, loaded=ledger.loaded - keyless, keyless=keyless)
    read = TaskResult(ledger, (), tuple(account.skipped))
    return json.dumps(
        {
            "read": result_to_text(read),
            "path": path,
            "pieces": [asdict(piece) for piece in output.pieces],
        }
    )


def reduced_from_text(text: str) -> Reduced:
    """What `reduce_range` returned."""
    found = json.loads(text)
    pieces = tuple(Piece(**piece) for piece in found["pieces"])
    return Reduced(result_from_text(found["read"]), found["path"], pieces)


class _Waiting:
    """Changes that wait to be written, reduced now and then; a history needs them all."""

    def __init__(self, keeps: Keeps) -> None:
        self._keeps = keeps
        self._parts: list[pa.Table] = [ROW_SCHEMA.empty_table()]
        self._bytes = 0

    def add(self, changes: pa.RecordBatch) -> bool:
        """Add changes; return whether they are to be written, since they take much memory."""
        self._parts.append(pa.Table.from_batches([changes]))
        self._bytes += changes.nbytes
        if self._bytes < _BYTES_AT_ONCE:
            return False
        rows, counts = self.rows()
        left = rows if counts.all() else rows.filter(pa.array(counts))
        # Where there are few keys, what is left goes on waiting.
        self._parts, self._bytes = [left], left.nbytes
        return self._bytes > _BYTES_AT_ONCE // 2

    def rows(self) -> tuple[pa.Table, Flags]:
        """Give up what waits, and which of the changes count."""
        rows = pa.concat_tables(self._parts)
        self._parts, self._bytes = [ROW_SCHEMA.empty_table()], 0
        if self._keeps == "latest":
            return rows, is_latest(rows)
        return rows, np.ones(rows.num_rows, np.bool_)


def _with_key(batch: pa.RecordBatch, on_null_key: OnNullKey) -> pa.RecordBatch:
    """The records that have a key. Raises OttlaError for others, unless they are skipped."""
    keys = batch.column("key")
    if keys.null_count == 0:
        return batch
    if on_null_key == "fail":
        first = pc.index(keys.is_null(), True).as_py()
        topic, partition = batch.column("topic")[0], batch.column("partition")[0]
        raise OttlaError(
            ErrorCode.INVALID_RECORD,
            f"the record at {topic}-{partition} offset {batch.column('offset')[first]} has no "
            "key, and a changelog table has one row of each key: write keys, or leave such records "
            "out (`ottla lake changelog --on-null-key skip`, changelog(…, on_null_key='skip')), "
            "which counts them in the ledger",
        )
    return batch.filter(keys.is_valid())
