"""Turns a task's rows into record batches, and hands them to the driver, which sends them.

Rows are partitioned as in Kafka's producers, and keep their order. The batches are in the task's
message to the driver, or in a file if they are large. Nothing has to be durable, because Spark runs
the tasks again after a crash.
"""

import io
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.murmur2 import partition_of
from ottla.client import PreparedBatch
from ottla.client.producer.encoded_batch import prepared
from ottla.lake.rows.publish_row import Row
from ottla.lake.store.store import StoreWriter
from ottla.lake.store.targets import open_store
from ottla.record.builder import BatchBuilder

_log = logging.getLogger(__name__)

# Returns a topic's number of partitions. Raises OttlaError for an unknown topic.
PartitionCount = Callable[[str], int]
# The head of a batch: size of the topic's name, partition, number of records, size of the batch.
_HEAD = Struct(">Hiii")


class Preparer:
    """Builds batches of about `batch_bytes` before compression.

    Rows of one partition keep their order. Rows with a key go to the partition that Kafka's
    producers would choose. Rows without a key fill a batch of one partition, then of the next.
    """

    def __init__(
        self,
        topic: str | None,
        partition_count: PartitionCount,
        now_ms: Callable[[], int],
        *,
        compression: int,
        batch_bytes: int,
        first_partition: int = 0,
    ) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._now_ms = now_ms
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._turn = first_partition
        self._counts: dict[str, int] = {}
        self._open: dict[tuple[str, int], BatchBuilder] = {}
        self.record_count = 0

    def add(self, row: Row) -> PreparedBatch | None:
        """Add a row. Return the batch that it completes, or None. Raises OttlaError."""
        topic = self._topic or row.topic
        if topic is None:
            raise _wrong("a row has no topic, and the option `topic` is not set")
        where = (topic, self._partition_of(topic, row))
        builder = self._open.get(where)
        if builder is None:
            builder = self._open[where] = BatchBuilder(self._compression)
        at_ms = self._now_ms() if row.timestamp_ms is None else row.timestamp_ms
        builder.append(at_ms, row.key, row.value, row.headers)
        self.record_count += 1
        if builder.size_estimate < self._batch_bytes:
            return None
        if row.key is None:
            self._turn += 1
        del self._open[where]
        return prepared(*where, builder)

    def rest(self) -> Iterator[PreparedBatch]:
        """Yield the batches that are not full yet."""
        while self._open:
            where = next(iter(self._open))
            yield prepared(*where, self._open.pop(where))

    def _partition_of(self, topic: str, row: Row) -> int:
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._partition_count(topic)
        if row.partition is None:
            return self._turn % count if row.key is None else partition_of(row.key, count)
        if not 0 <= row.partition < count:
            raise _wrong(f"a row's partition is {row.partition}; {topic} has 0 to {count - 1}")
        return row.partition


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"sink ottla: {what}")


@dataclass(frozen=True, slots=True)
class Parcel:
    """All batches of a task, in `content`, or in the file at `path` of the folder `url`."""

    content: bytes
    url: str = ""
    path: str = ""


class Staging:
    """Collects the batches of one attempt of a task. Each attempt writes a file of its own."""

    def __init__(self, url: str | None, folder: str, name: str, inline_bytes: int) -> None:
        self._url = url
        self._folder = folder
        self._path = f"{folder}{name}.batches"
        self._inline_bytes = inline_bytes
        self._buffer = io.BytesIO()
        self._file: StoreWriter | None = None

    def add(self, batch: PreparedBatch) -> None:
        """Add a batch. Raises OttlaError if the batches are too large and there is no folder."""
        if self._file is not None:
            write_batch(self._file, batch)
            return
        write_batch(self._buffer, batch)
        if self._buffer.tell() <= self._inline_bytes:
            return
        if self._url is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a task has more than inlineBytes={self._inline_bytes} bytes for the topic, and "
                "no place to stage them: set the option stagingLocation to a folder that all "
                "executors and the driver see, or raise inlineBytes",
            )
        store = open_store(self._url)
        store.prepare([self._folder])
        self._file = store.create(self._path)
        self._file.write(self._buffer.getvalue())
        self._buffer = io.BytesIO()

    def finish(self) -> Parcel:
        """Complete the parcel and return it."""
        if self._file is None:
            return Parcel(self._buffer.getvalue())
        assert self._url is not None
        self._file.finish()
        return Parcel(b"", self._url, self._path)

    def discard(self) -> None:
        """Remove the file after the task has failed."""
        if self._file is not None:
            self._file.discard()


def unpacked(parcel: Parcel) -> Iterator[PreparedBatch]:
    """Yield the batches of a parcel, in order. Raises OttlaError if its file is missing."""
    if not parcel.path:
        yield from read_batches(io.BytesIO(parcel.content))
        return
    try:
        source = open_store(parcel.url).open(parcel.path)
    except OSError as error:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"what a task staged cannot be read by the driver ({error}); nothing was written. "
            "Set the option stagingLocation to a folder that all executors and the driver see",
        ) from None
    with source:
        yield from read_batches(source)


def remove(parcels: Iterable[Parcel]) -> None:
    """Remove the files of parcels that are no longer needed."""
    with _only_logged():
        for parcel in parcels:
            if parcel.path:
                open_store(parcel.url).remove(parcel.path)


def remove_epochs(parcels: Iterable[Parcel], up_to: int) -> None:
    """Remove the files of epochs up to `up_to` in the parcels' folders, even of failed tasks."""
    places = {(parcel.url, parcel.path.partition("/")[0]) for parcel in parcels if parcel.path}
    with _only_logged():
        for url, folder in places:
            store = open_store(url)
            for name in store.names(f"{folder}/"):
                epoch = name.partition("-")[0]
                if epoch.isdecimal() and int(epoch) <= up_to:
                    store.remove(f"{folder}/{name}")


@contextmanager
def _only_logged() -> Iterator[None]:
    """Log errors of removing files. A file that stays is harmless, as the commit has succeeded."""
    try:
        yield
    except (OSError, OttlaError) as error:
        _log.warning("staged files could not be removed: %s", error)


def write_batch(out: io.BytesIO | StoreWriter, batch: PreparedBatch) -> None:
    """Append a batch to a task's parcel."""
    topic = batch.topic.encode()
    head = _HEAD.pack(len(topic), batch.partition, batch.record_count, len(batch.content))
    out.write(head + topic + batch.content)


def read_batches(source: BinaryIO) -> Iterator[PreparedBatch]:
    """Yield the batches in their order. Raises OttlaError if the bytes end within a batch."""
    while head := source.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise _torn()
        name_size, partition, record_count, size = _HEAD.unpack(head)
        topic, content = source.read(name_size), source.read(size)
        if len(topic) < name_size or len(content) < size:
            raise _torn()
        yield PreparedBatch(topic.decode(), partition, record_count, content)


def _torn() -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        "what a task staged ends within a batch; nothing was written: run the query again",
    )
