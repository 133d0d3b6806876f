"""Routes records: a topic's queues, the partitioner, and columns cut into batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, runtime_checkable

from ottla.base.errors import ErrorCode
from ottla.client.common.arguments import wrong
from ottla.client.common.errors import ClientError
from ottla.client.connection.cluster import Cluster
from ottla.client.producer.accumulator import Accumulator, as_bytes
from ottla.client.producer.queues import Batch, PartitionQueue, TopicQueues
from ottla.record.builder import are_bytes

# (topic, key, value, number of partitions) -> partition
Partitioner = Callable[[str, bytes | None, bytes | None, int], int]


@runtime_checkable
class ArrowColumn(Protocol):
    """The required interface of a pyarrow Array or ChunkedArray."""

    def to_pylist(self) -> list[object]: ...


Column = Sequence[bytes | str | None] | ArrowColumn


@dataclass(slots=True)
class Rows:
    """Records as parallel lists.

    `keys` is None if no record has a key, `timestamps` if all records have `now_ms`.
    """

    values: list[bytes | None]
    keys: list[bytes | None] | None
    timestamps: list[int] | None
    now_ms: int

    def take(self, chosen: list[int]) -> "Rows":
        """Return the rows with those numbers."""
        return Rows(
            [self.values[row] for row in chosen],
            None if self.keys is None else [self.keys[row] for row in chosen],
            None if self.timestamps is None else [self.timestamps[row] for row in chosen],
            self.now_ms,
        )


def rows(values: Column, keys: Column | None, timestamps_ms: list[int] | None, now_ms: int) -> Rows:
    """Return columns as checked lists of bytes. Raises ClientError if their lengths differ."""
    value_list = _bytes_list("values", values)
    count = len(value_list)
    key_list = None if keys is None else _bytes_list("keys", keys)
    times = None if timestamps_ms is None else list(timestamps_ms)
    key_count = count if key_list is None else len(key_list)
    time_count = count if times is None else len(times)
    if key_count != count or time_count != count:
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{count} values, {key_count} keys and {time_count} timestamps do not belong "
            "together; give columns of one length",
        )
    return Rows(value_list, key_list, times, now_ms)


# A copy, as the caller may change its list while batches are cut from it.
def _bytes_list(name: str, column: Column) -> list[bytes | None]:
    if isinstance(column, str | bytes) or not isinstance(column, ArrowColumn | Iterable):
        raise wrong(name, column, "a list of bytes, str or None, or an Arrow column")
    plain = column.to_pylist() if isinstance(column, ArrowColumn) else list(column)
    if are_bytes(plain):
        return plain  # type: ignore[return-value]  # The line above is the proof.
    return [as_bytes(value) for value in plain]


class Router:
    """Knows the queues of every topic used so far."""

    def __init__(
        self, cluster: Cluster, accumulator: Accumulator, partitioner: Partitioner | None
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        # None: murmur2 chooses by the key, and records without keys use the sticky partition.
        self._partitioner = partitioner
        self.is_default = self._partitioner is None
        self.known: dict[str, TopicQueues] = {}

    async def queues(self, topic: str) -> TopicQueues:
        """Return the topic's queues, requesting its partitions if unknown. Raises UnknownTopic."""
        if not isinstance(topic, str):
            raise wrong("topic", topic, "a str")
        view = await self._cluster.topic(topic)
        queues = self.known.get(topic)
        if queues is None:
            sticky = self._cluster.chance.randrange(len(view.partitions))
            queues = self.known[topic] = TopicQueues(topic, len(view.partitions), sticky)
        return queues

    def queue_for(
        self, queues: TopicQueues, key: bytes | None, value: bytes | None, partition: int | None
    ) -> PartitionQueue:
        """Return a record's queue. Raises ClientError for a partition that does not exist."""
        if partition is not None:
            return queues.partitions[_checked(partition, len(queues.partitions), queues.name)]
        if self._partitioner is not None:
            count = len(queues.partitions)
            chosen = self._partitioner(queues.name, key, value, count)
            return queues.partitions[_checked(chosen, count, queues.name)]
        if key is None:
            return queues.sticky
        return queues.by_key.get(key) or queues.place(key)

    def move_on(self, queues: TopicQueues) -> None:
        """After a batch, move records without a key to another partition (KIP-794)."""
        view = self._cluster.view.topics.get(queues.name)
        if view is None or queues.sticky.open is not None or self._partitioner is not None:
            return
        if len(view.partitions) > len(queues.partitions):
            queues.grow(len(view.partitions))
        if len(queues.partitions) > 1:
            led = [entry.partition for entry in view.partitions if entry.leader >= 0]
            chosen = _next_sticky(queues.sticky.index, led, self._cluster.chance)
            queues.sticky = queues.partitions[chosen]

    def batches(
        self,
        queues: TopicQueues,
        values: Column,
        keys: Column | None,
        partition: int | None,
        timestamps_ms: list[int] | None,
    ) -> Iterator[tuple[PartitionQueue, Batch]]:
        """Cut columns into full, finished batches, each with its queue."""
        every = rows(values, keys, timestamps_ms, self._accumulator.clock.now_ms())
        if partition is None and (keys is not None or self._partitioner is not None):
            parts: dict[PartitionQueue, list[int]] = {}
            keyed = every.keys or [None] * len(every.values)
            for row, (key, value) in enumerate(zip(keyed, every.values, strict=True)):
                queue = self.queue_for(queues, key, value, None)
                parts.setdefault(queue, []).append(row)
            for queue, chosen in parts.items():
                part = every.take(chosen)
                start = 0
                while start < len(chosen):
                    batch, start = self._cut(queue, part, start)
                    yield queue, batch
            return
        start = 0
        while start < len(every.values):
            queue = self.queue_for(queues, None, None, partition)
            batch, start = self._cut(queue, every, start)
            yield queue, batch

    def _cut(self, queue: PartitionQueue, part: Rows, start: int) -> tuple[Batch, int]:
        """Return a batch of the rows from `start` on, and the number of the first remaining row."""
        batch = self._accumulator.new_batch(queue, self._accumulator.batch_bytes)
        stop = batch.builder.fill(part.timestamps, part.keys, part.values, start, part.now_ms)
        batch.finish()
        return batch, stop


def _checked(partition: int, partition_count: int, topic: str) -> int:
    """Return `partition` if the topic has it; otherwise raise ClientError."""
    if 0 <= partition < partition_count:
        return partition
    raise ClientError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {topic!r} has partitions 0 to {partition_count - 1}, not {partition}",
    )


def _next_sticky(current: int, available: Sequence[int], chance: Random) -> int:
    """Return another random partition that has a leader; `current` if there is no other."""
    others = [partition for partition in available if partition != current]
    return chance.choice(others) if others else current
