"""Collects records into batches: one open batch per partition, in bounded memory.

It does no I/O and decides nothing about brokers; `Sender` takes the ready batches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError
from ottla.client.producer.queues import Batch, Headers, PartitionQueue

# An open batch reserves memory in steps of this size: large batches cost nothing if many partitions
# have few records each.
_RESERVED_STEP_BYTES = 16 << 10
# Upper bounds: the header of a batch, and the bytes of a record besides key, value and headers.
_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 32


class Accumulator:
    """Bounded memory for unacknowledged records of all partitions. Sizes in bytes.

    An open batch reserves memory in steps before it needs it, and returns the unused part when it
    closes, so that the bound costs nothing per record.

    If one thread appends and another sends, both use the same `lock`: callers of `append` and
    `close` hold it, the other methods take it themselves.
    """

    def __init__(self, batch_bytes: int, buffer_bytes: int, clock: Clock) -> None:
        assert 0 < batch_bytes <= buffer_bytes
        self.clock = clock
        self._serials = count()
        self.lock: AbstractContextManager[object] = nullcontext()
        # Set when a batch closes, and when one opens; cleared by the code that acts on it.
        self.has_news = False
        self.has_opened = False
        self.batch_bytes = batch_bytes
        self.buffer_bytes = buffer_bytes
        self.used_bytes = 0
        # Queues with an open batch, in the order opened.
        self.open_queues: dict[PartitionQueue, None] = {}
        # Queues with closed batches.
        self.ready_queues: dict[PartitionQueue, None] = {}
        self.unfinished: dict[Batch, None] = {}

    def has_room(self, size: int) -> bool:
        """Whether a batch of `size` bytes may be opened now."""
        return self.used_bytes + size <= self.buffer_bytes or not self.unfinished

    def append(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers | None,
    ) -> Batch | None:
        """Put a record into the queue's open batch; return the batch, or None if it was not added.

        None and `has_news` mean that the batch was full and is closed now, so the caller may try
        again. None without `has_news` means that memory is full. A batch that this record fills is
        closed, too. Raises OttlaError INVALID_TIMESTAMP.
        """
        size = _RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        pairs: Sequence[tuple[str, bytes | None]] = ()
        if headers:
            given = headers.items() if isinstance(headers, Mapping) else headers
            pairs = [
                (name, text.encode() if isinstance(text, str) else text) for name, text in given
            ]
            size += headers_size(pairs)
        batch = queue.open
        if batch is None:
            batch = self._open(queue, _BATCH_OVERHEAD + size)
            if batch is None:
                return None
        try:
            is_in = self._put(batch, key, value, timestamp_ms, pairs, size)
        except Exception:
            if batch.builder.record_count == 0:
                # No linger timer would close it, as its first record was refused.
                self.close(queue)
            raise
        if not is_in:
            # The caller routes the record again: the next batch may go to another partition.
            self.close(queue)
            return None
        if batch.builder.size_estimate >= self.batch_bytes:
            self.close(queue)
        return batch

    def _put(
        self,
        batch: Batch,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Sequence[tuple[str, bytes | None]],
        size: int,
    ) -> bool:
        """Add the record if the batch may grow enough; return whether it was added."""
        builder = batch.builder
        if headers:
            while builder.record_count and builder.size_estimate + size > batch.reserved:
                if not self._reserve_more(batch):
                    return False
            builder.append(timestamp_ms, key, value, headers)
            return True
        while not builder.add(timestamp_ms, key, value):
            if not self._reserve_more(batch):
                return False
        return True

    def _open(self, queue: PartitionQueue, size: int) -> Batch | None:
        reserved = max(size, min(_RESERVED_STEP_BYTES, self.batch_bytes))
        if not self.has_room(reserved):
            return None
        batch = self.new_batch(queue, reserved)
        queue.open = batch
        self.has_opened = True
        self.used_bytes += reserved
        self.open_queues[queue] = None
        self.unfinished[batch] = None
        return batch

    def _reserve_more(self, batch: Batch) -> bool:
        """Let an open batch grow, unless it or the memory is at its limit."""
        more = min(_RESERVED_STEP_BYTES, self.batch_bytes - batch.reserved)
        if more <= 0 or not self.has_room(more):
            return False
        batch.reserved += more
        batch.builder.limit_bytes = batch.reserved
        self.used_bytes += more
        return True

    def new_batch(self, queue: PartitionQueue, limit_bytes: int) -> Batch:
        """Return an empty batch outside of all queues, which may grow to `limit_bytes`."""
        now_ms = self.clock.monotonic_ms()
        batch = Batch(queue.topic, queue.index, (next(self._serials), 0), now_ms, limit_bytes)
        batch.builder.limit_bytes = limit_bytes
        return batch

    def close(self, queue: PartitionQueue) -> None:
        """Close the queue's open batch, and make it ready to send."""
        batch = queue.open
        assert batch is not None
        queue.open = None
        # Another thread may still hold the builder, about to add a record without the lock.
        batch.builder.close()
        del self.open_queues[queue]
        if batch.builder.record_count == 0:
            # Its first record was refused.
            self.used_bytes -= batch.reserved
            del self.unfinished[batch]
            return
        batch.finish()
        self.used_bytes += batch.size - batch.reserved
        batch.reserved = batch.size
        queue.closed.append(batch)
        self.ready_queues[queue] = None
        self.has_news = True

    def add_closed(self, queue: PartitionQueue, batch: Batch) -> None:
        """Add a finished batch to a queue; the queue's open batch is closed first."""
        with self.lock:
            if queue.open is not None:
                self.close(queue)
            batch.reserved = batch.size
            self.used_bytes += batch.size
            self.unfinished[batch] = None
            queue.closed.append(batch)
            self.ready_queues[queue] = None
            self.has_news = True

    def close_all(self) -> None:
        """Close every open batch."""
        with self.lock:
            for queue in list(self.open_queues):
                self.close(queue)

    def close_older(self, created_before_ms: int) -> int | None:
        """Close batches opened at or before that time.

        Return when the oldest remaining one was opened.
        """
        with self.lock:
            for queue in list(self.open_queues):
                batch = queue.open
                assert batch is not None
                if batch.created_ms > created_before_ms:
                    return batch.created_ms
                self.close(queue)
            return None

    def release(self, batch: Batch) -> None:
        """Return a finished batch's memory to the budget."""
        with self.lock:
            if self.unfinished.pop(batch, batch) is None:
                self.used_bytes -= batch.reserved

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Replace a batch by `parts`, which get its memory. It settles when all parts have."""
        with self.lock:
            del self.unfinished[batch]
            self.used_bytes -= batch.reserved
            batch.reserved = 0
            batch.parts_left = len(parts)
            for part in parts:
                part.part_of = batch
                part.reserved = part.size
                self.used_bytes += part.size
                self.unfinished[part] = None


def headers_size(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return an approximate upper bound of the bytes that headers take."""
    return sum(10 + len(name) + (len(value) if value is not None else 0) for name, value in headers)


def serializing(serializer: Callable[[Any], bytes] | None) -> Callable[[Any], bytes | None]:
    """Return a function that converts keys or values to bytes, using `serializer` if needed."""
    if serializer is None:
        return as_bytes

    def to_bytes(value: object) -> bytes | None:
        return value if value is None or isinstance(value, bytes) else as_bytes(serializer(value))

    return to_bytes


def as_bytes(value: object) -> bytes | None:
    """Convert a user's key or value to bytes: bytes-like, text (UTF-8) or None."""
    match value:
        case None | bytes():
            return value
        case str():
            try:
                return value.encode()
            except UnicodeEncodeError as error:
                raise ClientError(
                    ErrorCode.INVALID_RECORD, f"the text is not UTF-8: {error}; give bytes"
                ) from error
        case bytearray() | memoryview():
            return bytes(value)
    raise ClientError(
        ErrorCode.INVALID_RECORD,
        f"keys and values are bytes, str or None, not {type(value).__name__}; encode it first, or"
        " give the producer a serializer",
    )
