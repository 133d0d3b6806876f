"""Converts record batches to Arrow columns, without a Python object for each record.

The compiled walk finds the positions of keys and values in the fetched buffer. One call in C then
copies them for each column; without C, Arrow does. Only headers are processed record by record.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.schema import (
    HEADER_TYPE,
    ROW_SCHEMA,
    bitmap,
    byte_strings,
    header_name_text,
    numbers,
)
from ottla.record import walk as walking
from ottla.record.codec import Header, read_varlong
from ottla.record.compression import Compression
from ottla.record.header import HEADER_SIZE, BatchHeader
from ottla.record.reader import section

try:
    from ottla.lake._row_sums import gather as _gather_in_c
except ImportError:
    _in_c = False
else:
    _in_c = True

Columns = npt.NDArray[np.int64]

# A larger timestamp in milliseconds does not fit into Spark's microseconds.
_TIMESTAMP_MS_MAX = (2**63 - 1) // 1000

# Marks batches with create time, which have no append time.
_CREATE_TIME = -2


class ColumnBuilder:
    """Collects whole batches of one partition, and returns their rows within [start, end) as Arrow.

    Batches stay in memory until `take` is called: uncompressed batches in the fetched buffer,
    compressed batches as decompressed records. `start` may be raised while no rows wait. A
    timestamp that does not fit raises an error. With `null_bad_timestamps` it becomes null, and is
    added to `bad_times` by offset.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        null_bad_timestamps: bool = False,
        bad_times: dict[int, int] | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self.start = start
        self._end = end
        self._null_bad_timestamps = null_bad_timestamps
        self._bad_times = {} if bad_times is None else bad_times
        self._reset()

    def _reset(self) -> None:
        self._walk = walking.Walk()
        # Buffers with records. The positions of a row count from the start of the first buffer, as
        # if all were joined.
        self._pieces: list[bytes] = []
        # The number of records and the append time of each batch.
        self._counts: list[int] = []
        self._append_times: list[int] = []
        self.payload_bytes = 0

    @property
    def row_count(self) -> int:
        return self._walk.record_count

    def add(self, buffer: bytes, position: int, header: BatchHeader) -> int:
        """Add the data batch at `position`; return how many of its records lie in the range.

        Raises CorruptBatch if its records are not well formed. Then nothing was added.
        """
        if header.compression == Compression.NONE:
            content, first, after = buffer, position + HEADER_SIZE, position + header.size
        else:
            content = section(buffer, position, header)
            first, after = 0, len(content)
        is_new = not self._pieces or self._pieces[-1] is not content
        payload_bytes = self.payload_bytes + (len(content) if is_new else 0)
        before = self._walk.record_count
        self._walk.add(
            content,
            first,
            after,
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            payload_bytes - len(content),
        )
        # The walk may have raised, so the state is changed only after it.
        if is_new:
            self._pieces.append(content)
            self.payload_bytes = payload_bytes
        self._counts.append(self._walk.record_count - before)
        self._append_times.append(
            header.max_timestamp if header.is_log_append_time else _CREATE_TIME
        )
        if self.start <= header.base_offset and header.last_offset < self._end:
            return header.record_count
        offsets = _rows(self._walk)[before:, walking.OFFSET]
        return int(((offsets >= self.start) & (offsets < self._end)).sum())

    def add_plain(self, buffer: bytes, position: int, offset: int, rows_max: int) -> int:
        """Add the plain batches (`Walk.add_plain`) at `position`, from `offset` on.

        It stops at the first batch that is not plain, at the end of the range, or once `rows_max`
        rows wait. Returns the position after the added batches.
        """
        is_new = not self._pieces or self._pieces[-1] is not buffer
        payload_bytes = self.payload_bytes + (len(buffer) if is_new else 0)
        before = self._walk.record_count
        after: int = self._walk.add_plain(
            buffer, position, offset, self._end, rows_max, payload_bytes - len(buffer)
        )
        if after > position:
            if is_new:
                self._pieces.append(buffer)
                self.payload_bytes = payload_bytes
            self._counts.append(self._walk.record_count - before)
            self._append_times.append(_CREATE_TIME)
        return after

    def take(self) -> pa.RecordBatch | None:
        """Return the rows so far, or None if there are none, and forget them."""
        rows = _rows(self._walk)
        payload = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        append_times = np.repeat(np.array(self._append_times, np.int64), self._counts)
        self._reset()
        offsets = rows[:, walking.OFFSET]
        kept = (offsets >= self.start) & (offsets < self._end)
        if not kept.all():
            rows, append_times = rows[kept], append_times[kept]
        return self._batch(payload, rows, append_times) if len(rows) else None

    def _batch(self, payload: bytes, rows: Columns, append_times: Columns) -> pa.RecordBatch:
        count = len(rows)
        by_append = append_times != _CREATE_TIME
        timestamps = np.where(by_append, append_times, rows[:, walking.TIMESTAMP])
        far = (timestamps > _TIMESTAMP_MS_MAX) | (timestamps < -_TIMESTAMP_MS_MAX)
        if far.any() and not self._null_bad_timestamps:
            raise self._time_out_of_reach(timestamps, rows, int(np.flatnonzero(far)[0]))
        known = bitmap(~far) if far.any() else None
        if known is not None:
            self._bad_times.update(
                zip(rows[far, walking.OFFSET].tolist(), timestamps[far].tolist(), strict=True)
            )
        return pa.RecordBatch.from_arrays(
            [
                _gathered(payload, rows, walking.KEY_POSITION, walking.KEY_LENGTH),
                _gathered(payload, rows, walking.VALUE_POSITION, walking.VALUE_LENGTH),
                _headers(payload, rows),
                pa.repeat(byte_strings([self._topic.encode()], pa.string())[0], count),
                numbers(np.full(count, self._partition, np.int32), pa.int32()),
                numbers(rows[:, walking.OFFSET], pa.int64()),
                numbers(timestamps * 1000, ROW_SCHEMA.field("timestamp").type, known),
                numbers(by_append.astype(np.int32), pa.int32()),
            ],
            schema=ROW_SCHEMA,
        )

    def _time_out_of_reach(self, timestamps: Columns, rows: Columns, row: int) -> OttlaError:
        offset, value = int(rows[row, walking.OFFSET]), int(timestamps[row])
        return OttlaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"the record at {self._topic}-{self._partition} offset {offset} has timestamp "
            f"{value} ms, which no Spark timestamp can hold; read it with a null timestamp "
            "(`ottla lake load --on-bad-timestamp null`, load(…, on_bad_timestamp='null'), option "
            "onBadTimestamp) or keep it apart (dead-letter, of loads), and set "
            "message.timestamp.after.max.ms on the topic",
        )


def _rows(walk: walking.Walk) -> Columns:
    return np.frombuffer(walk.rows(), "<i8").reshape(-1, walking.WALK_COLUMNS)


def _gathered(payload: bytes, rows: Columns, position_column: int, length_column: int) -> Any:
    """Copy one byte string for each row from the payload; a length of -1 gives null."""
    positions, lengths = rows[:, position_column], rows[:, length_column]
    null = lengths < 0
    if null.all():
        return pa.nulls(len(rows), pa.binary())
    filled = np.maximum(lengths, 0)
    if _in_c:
        places = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(filled, out=places[1:])
        content = pa.allocate_buffer(int(places[-1]))
        _gather_in_c(payload, np.ascontiguousarray(positions), places, content)
        buffers = [bitmap(~null) if null.any() else None, pa.py_buffer(places), content]
        return pa.Array.from_buffers(pa.binary(), len(rows), buffers)
    # Treat strings and the gaps between them as one array over the payload, and take every second
    # element.
    bounds = np.empty(2 * len(rows) + 1, np.int32)
    bounds[0:-1:2] = positions
    bounds[1::2] = positions + filled
    bounds[-1] = bounds[-2]
    spans = pa.Array.from_buffers(
        pa.binary(), 2 * len(rows), [None, pa.py_buffer(bounds), pa.py_buffer(payload)]
    )
    chosen = np.arange(0, 2 * len(rows), 2, dtype=np.int32)
    return spans.take(pa.array(chosen, mask=null if null.any() else None))


def _headers(payload: bytes, rows: Columns) -> Any:
    counts = rows[:, walking.HEADER_COUNT]
    offsets = np.zeros(len(rows) + 1, np.int32)
    if counts.any():
        np.cumsum(counts, out=offsets[1:])
    pairs = list(_pairs(payload, rows[counts > 0])) if offsets[-1] else []
    names = byte_strings([name.encode() for name, _ in pairs], pa.string())
    values = byte_strings([value for _, value in pairs])
    elements = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    return pa.ListArray.from_arrays(
        numbers(offsets, pa.int32()), elements, type=ROW_SCHEMA.field("headers").type
    )


def _pairs(payload: bytes, rows: Columns) -> Iterator[Header]:
    """Yield the headers of these records, whose lengths the walk has checked."""
    for row in rows:
        position = int(row[walking.HEADERS_POSITION])
        for _ in range(int(row[walking.HEADER_COUNT])):
            size, position = read_varlong(payload, position)
            name = header_name_text(payload[position : position + size])
            size, position = read_varlong(payload, position + size)
            yield name, None if size < 0 else payload[position : position + size]
            position += max(size, 0)
