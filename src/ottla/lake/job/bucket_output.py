"""Writes a task's rows to files by event-time bucket, with a limit on memory and open files.

Rows wait in memory until their row group is large enough. If the waiting rows of all buckets take
too much memory, the largest row group is written. If too many files are open, the least recently
written file is completed; later rows of its bucket start another file.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.event_times import NULL, By, bucket_of, micros_of, numbers_of
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.plan import Range

# Limited, because an open file in an object store keeps the parts that are being sent in memory.
OPEN_MAX = 16
WAITING_BYTES = 128 << 20
# The estimated memory that a waiting batch takes in addition to its values.
_PIECE_BYTES = 8 << 10


class _BucketFile:
    """The open file of a bucket."""

    def __init__(self, output: ParquetOutput, start: int) -> None:
        self.output = output
        self.start = start
        self.end = start

    @property
    def waiting_bytes(self) -> int:
        return self.output.waiting_bytes + _PIECE_BYTES * self.output.waiting_pieces


class BucketOutputs:
    """Writes the rows of a range into one or more files per bucket, or into one if `by` is none.

    `make` starts a file; its arguments are the bucket and the number of files that the bucket has
    already. At most `open_max` files are open, and about `waiting_bytes` wait in memory.
    """

    def __init__(
        self,
        wanted: Range,
        by: By,
        make: Callable[[str, int], ParquetOutput],
        *,
        open_max: int = OPEN_MAX,
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        self._wanted = wanted
        self._by: By = by
        self._make = make
        self._open_max = open_max
        self._waiting_max = waiting_bytes
        self._files: dict[str, _BucketFile] = {}
        self._counts: dict[str, int] = {}
        self._opened: dict[str, None] = {}  # The least recently written first.
        self._waiting = 0
        self.files: list[DataFile] = []
        # The most files that were open, and bytes that waited, at any time.
        self.opened_most = 0
        self.waiting_most = 0

    def write(self, batch: pa.RecordBatch, added: Sequence[Any] = (), times: Any = None) -> None:
        """Append at least one row, in order of offset. `times` is the rows' event-time column."""
        if self._by == "none":
            self._append("", batch, added)
            return
        for bucket, rows in _divided(times, self._by):
            if rows is None:
                self._append(bucket, batch, added)
            else:
                # Copy: a slice would keep the whole batch in memory.
                self._append(bucket, batch.take(rows), [each.take(rows) for each in added])

    def _append(self, bucket: str, batch: pa.RecordBatch, added: Sequence[Any]) -> None:
        offsets = batch.column("offset")
        file = self._files.get(bucket)
        if file is None:
            number = self._counts.get(bucket, 0)
            self._counts[bucket] = number + 1
            output = self._make(bucket, number)
            file = self._files[bucket] = _BucketFile(output, offsets[0].as_py())
        file.end = offsets[-1].as_py() + 1
        before = file.waiting_bytes
        file.output.write(batch, added)
        self._waiting += file.waiting_bytes - before
        self.waiting_most = max(self.waiting_most, self._waiting)
        self._note_open(bucket, file)
        while self._waiting > self._waiting_max and len(self._files) > 1:
            largest = max(self._files, key=lambda one: self._files[one].waiting_bytes)
            self._waiting -= self._files[largest].waiting_bytes
            self._files[largest].output.flush()
            self._note_open(largest, self._files[largest])

    def _note_open(self, bucket: str, file: _BucketFile) -> None:
        if not file.output.is_open:
            return
        self._opened.pop(bucket, None)
        if len(self._opened) >= self._open_max:
            self._finish(next(iter(self._opened)))
        self._opened[bucket] = None
        self.opened_most = max(self.opened_most, len(self._opened))

    def _finish(self, bucket: str) -> None:
        file = self._files.pop(bucket)
        self._waiting -= file.waiting_bytes
        self._opened.pop(bucket, None)
        try:
            file.output.finish()
        except BaseException:
            file.output.discard()
            raise
        is_whole = self._by == "none"
        start = self._wanted.start if is_whole else file.start
        end = self._wanted.end if is_whole else file.end
        self.files.append(file.output.as_file(self._wanted.partition, start, end, bucket))

    def finish(self) -> None:
        """Complete all files and make them durable. Then `files` can be committed."""
        for bucket in list(self._files):
            self._finish(bucket)

    def discard(self) -> None:
        """Remove unfinished files, even if the disk is full."""
        for file in self._files.values():
            file.output.discard()


def _divided(times: Any, by: By) -> Iterator[tuple[str, Any]]:
    """Yield each bucket with the indices of its rows, in order, or None for all rows."""
    micros = micros_of(times)
    if micros.null_count == len(micros):
        yield NULL, None
        return
    known = np.flatnonzero(~np.asarray(micros.is_null()))
    numbers = numbers_of(np.asarray(micros.drop_null()), by)
    if len(known) == len(micros) and numbers.min() == numbers.max():
        yield bucket_of(int(numbers[0]), by), None
        return
    order = np.argsort(numbers, kind="stable")
    found, firsts = np.unique(numbers[order], return_index=True)
    for number, rows in zip(found, np.split(known[order], firsts[1:]), strict=True):
        yield bucket_of(int(number), by), pa.array(rows)
    if len(known) < len(micros):
        yield NULL, pa.array(np.flatnonzero(np.asarray(micros.is_null())))
