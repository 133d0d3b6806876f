"""Turns a task's rows into record batches, which the driver sends.

Rows are partitioned as in Kafka's producers, and keep their order.
"""

from collections.abc import Callable, Iterator

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.murmur2 import partition_of
from ottla.client import PreparedBatch
from ottla.client.producer.encoded_batch import prepared
from ottla.lake.rows.publish_row import Row
from ottla.record.builder import BatchBuilder

# Returns a topic's number of partitions. Raises OttlaError for an unknown topic.
PartitionCount = Callable[[str], int]


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
