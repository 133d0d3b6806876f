"""Records on their way into batches: parallel lists per partition, encoded when a batch closes.

Decides nothing about brokers and does no I/O; `Sender` takes what is ready.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.client.errors import BufferFull, ClientError
from ottla.client.queues import RECORD_OVERHEAD, Batch, Headers, PartitionQueue


class Accumulator:
    """Bounded memory for unacknowledged records of all partitions. Sizes in bytes.

    A batch takes its full size from the budget when it is opened and gives back what it did
    not need when it closes, so that the bound costs nothing per record.

    Where one thread appends and another sends, both give the same `lock`: whoever appends or
    closes a single queue holds it, the other methods take it themselves.
    """

    def __init__(self, batch_bytes: int, buffer_bytes: int, clock: Clock) -> None:
        assert 0 < batch_bytes <= buffer_bytes
        self.clock = clock
        self._serials = count()
        self.lock: AbstractContextManager[object] = nullcontext()
        # Set when a batch closes, and when one opens; whoever acts on it clears it.
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

    # Hot: once per record.
    def append(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers | None,
    ) -> Batch | None:
        """Put a record into the queue's open batch and return the batch, or None.

        None: with `has_news`, the batch was full and is now closed, and the record may be put
        again; without, memory is full. A batch that this record fills is closed, too.
        """
        size = RECORD_OVERHEAD
        if value is not None:
            size += len(value)
        if key is not None:
            size += len(key)
        batch = queue.open
        if batch is not None and batch.size + size > self.batch_bytes:
            # Where the record goes is to be asked again: a partition's turn ends with its batch.
            self.close(queue)
            return None
        if batch is None:
            batch = self._open(queue, size)
            if batch is None:
                return None
        if headers:
            batch.headers[len(batch.values)] = headers
            size += headers_size(headers)
        batch.keys.append(key)
        batch.values.append(value)
        batch.timestamps.append(timestamp_ms)
        batch.size += size
        if batch.size >= self.batch_bytes:
            self.close(queue)
        return batch

    def _open(self, queue: PartitionQueue, size: int) -> Batch | None:
        reserved = max(size, self.batch_bytes)
        if not self.has_room(reserved):
            return None
        batch = self.new_batch(queue, reserved)
        queue.open = batch
        self.has_opened = True
        self.used_bytes += reserved
        self.open_queues[queue] = None
        self.unfinished[batch] = None
        return batch

    def new_batch(self, queue: PartitionQueue, reserved: int) -> Batch:
        """An empty batch that is not yet anywhere."""
        now_ms = self.clock.monotonic_ms()
        return Batch(queue.topic, queue.index, (next(self._serials), 0), now_ms, reserved)

    def close(self, queue: PartitionQueue) -> None:
        """Let nothing more into the queue's open batch, and make it ready to send."""
        batch = queue.open
        assert batch is not None
        queue.open = None
        del self.open_queues[queue]
        batch.record_count = batch.delivery.record_count = len(batch.values)
        self.used_bytes += batch.size - batch.reserved
        batch.reserved = batch.size
        queue.closed.append(batch)
        self.ready_queues[queue] = None
        self.has_news = True

    def add_closed(self, queue: PartitionQueue, batch: Batch) -> None:
        """Take a whole batch made elsewhere; whatever was open before it is closed first."""
        with self.lock:
            if queue.open is not None:
                self.close(queue)
            batch.record_count = batch.delivery.record_count = len(batch.values)
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
        """Close batches opened at or before that time; when the oldest left was opened, if any."""
        with self.lock:
            for queue in list(self.open_queues):
                batch = queue.open
                assert batch is not None
                if batch.created_ms > created_before_ms:
                    return batch.created_ms
                self.close(queue)
            return None

    def release(self, batch: Batch) -> None:
        """Give a finished batch's memory back."""
        with self.lock:
            if self.unfinished.pop(batch, batch) is None:
                self.used_bytes -= batch.reserved

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Let `parts` take over the memory of `batch`, which settles when all of them have."""
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

    def full_error(self) -> BufferFull:
        """The error where a record finds no room."""
        return BufferFull(
            f"{self.used_bytes} bytes of unacknowledged records fill the producer's buffer of "
            f"{self.buffer_bytes}; the brokers are slower than the sender: wait with `flush`, "
            "or raise buffer_bytes"
        )


def headers_size(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """An upper bound, near enough, of the bytes headers take."""
    return sum(10 + len(name) + (len(value) if value is not None else 0) for name, value in headers)


def as_bytes(value: object) -> bytes | None:
    """Bytes of what users give as key or value: bytes-like, text (UTF-8) or None."""
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
        case bytearray() | memoryview():
            return bytes(value)
    raise ClientError(
        ErrorCode.INVALID_RECORD,
        f"keys and values are bytes, str or None, not {type(value).__name__}; encode it first",
    )
