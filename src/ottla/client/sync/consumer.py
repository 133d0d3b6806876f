"""The consumer as plain calls."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from ottla.base.ids import TopicPartition
from ottla.client.arguments import Partitions
from ottla.client.consumer.consumer import Consumer as AsyncConsumer
from ottla.client.consumer.offsets import OffsetAndTimestamp
from ottla.client.consumer.options import ConsumerOptions, Listener
from ottla.client.consumer.partition_state import (
    ConsumedRecord,
    OffsetAndMetadata,
    RawBatches,
    Records,
)
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.transactions.group_metadata import GroupMetadata


class Consumer:
    """`ottla.client.Consumer` as plain calls; `for record in consumer`, or `poll`.

    Listeners are called on the background thread, during `poll`, and must not block.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        options: ConsumerOptions | None = None,
        *,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
    ) -> None:
        self._thread = LoopThread("ottla-consumer")
        self._closed = False
        self._consumer = self._thread.make(
            lambda: AsyncConsumer(
                bootstrap,
                options,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, what was being processed is not committed.
        self.close(commit=kind is None)

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, without being a member of a group."""
        self._thread.call(self._consumer.assign(partitions))

    def subscribe(self, topics: Any) -> None:
        """Read a topic, several, or those matching a compiled pattern, as the group's member."""
        self._thread.call_plain(lambda: self._consumer.subscribe(topics))

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        return self._thread.call_plain(lambda: self._consumer.assignment)

    def poll(self, timeout_ms: int = 1_000, max_records: int = 100_000) -> list[Records]:
        """Records that are there, or come within `timeout_ms`."""
        return self._thread.call(self._consumer.poll(timeout_ms, max_records))

    def poll_batches(self, timeout_ms: int = 1_000) -> list[RawBatches]:
        """Whole batches of bytes that are there, or come within `timeout_ms`."""
        return self._thread.call(self._consumer.poll_batches(timeout_ms))

    # Hot: once per record; see bench/client.py.
    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Records for ever. Each counts as processed when the next is asked for."""
        consumer = self._consumer
        while True:
            if not consumer.is_interrupted:
                for record in consumer.batch:
                    state = consumer.state
                    state.position = record.offset + 1
                    yield tuple.__new__(
                        ConsumedRecord,
                        (
                            state.topic,
                            state.partition,
                            record.offset,
                            record.timestamp,
                            record.key,
                            record.value,
                            record.headers,
                        ),
                    )
                    if consumer.is_interrupted:
                        break
            self._thread.call(consumer.advance())

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._thread.call_plain(lambda: self._consumer.seek(partition, offset))

    def seek_to_time(self, timestamp_ms: int, partitions: Partitions | None = None) -> None:
        """Read on from the first record at or after a time in ms; from the end where none is."""
        self._thread.call_plain(lambda: self._consumer.seek_to_time(timestamp_ms, partitions))

    def seek_to_beginning(self, partitions: Partitions | None = None) -> None:
        """Read on from the first record there is."""
        self._thread.call_plain(lambda: self._consumer.seek_to_beginning(partitions))

    def seek_to_end(self, partitions: Partitions | None = None) -> None:
        """Read only what comes from now on."""
        self._thread.call_plain(lambda: self._consumer.seek_to_end(partitions))

    def pause(self, partitions: Partitions) -> None:
        """Hand out nothing of these until `resume`."""
        self._thread.call_plain(lambda: self._consumer.pause(partitions))

    def resume(self, partitions: Partitions) -> None:
        """Go on with paused partitions."""
        self._thread.call_plain(lambda: self._consumer.resume(partitions))

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to hand out."""
        return self._thread.call(self._consumer.position(partition))

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The partition's end as of the last fetch; None before the first."""
        return self._thread.call_plain(lambda: self._consumer.high_watermark(partition))

    def beginning_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """The first offsets that can be read."""
        return self._thread.call(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """The offsets after the last records that can be read."""
        return self._thread.call(self._consumer.end_offsets(partitions))

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Per partition the first record at or after a time in ms."""
        return self._thread.call(self._consumer.offsets_for_times(times_ms))

    def group_metadata(self) -> GroupMetadata:
        """Who commits here, for `TransactionalProducer.send_offsets`. Ask anew for each."""
        return self._thread.call_plain(self._consumer.group_metadata)

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commit positions after the records handed out so far, or the offsets given."""
        self._thread.call(self._consumer.commit(offsets))

    def committed(self, partitions: Partitions) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed."""
        return self._thread.call(self._consumer.committed(partitions))

    def close(self, *, commit: bool = True) -> None:
        """Commit what is processed (if commits are automatic, and `commit`), leave, disconnect."""
        if self._closed:
            return
        self._closed = True
        self._thread.end(self._consumer.close(commit=commit))
