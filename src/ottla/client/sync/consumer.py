"""The consumer as plain calls."""

import re
from collections.abc import Iterable, Iterator
from typing import Self, Unpack

from ottla.client.common.arguments import Names
from ottla.client.common.other_names import OtherNames
from ottla.client.consumer.consumer import Consumer as AsyncConsumer
from ottla.client.consumer.options import ConsumerOptions, Listener
from ottla.client.consumer.partition_state import ConsumerRecord, RawBatches
from ottla.client.sync.loop_thread import LoopThread, asks, waits


class Consumer(OtherNames):
    """`ottla.client.Consumer` as plain calls; `for record in consumer`, or `poll`.

    Listeners are called on the background thread, during `poll`, and must not block.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        topics: Names | re.Pattern[str] = (),
        *,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._thread = LoopThread("ottla-consumer")
        self._closed = False
        self._twin = self._thread.make(
            lambda: AsyncConsumer(
                bootstrap_servers,
                topics,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
                **options,
            )
        )
        # The iterator used by `next(consumer)`.
        self._iterator: Iterator[ConsumerRecord] | None = None

    def __repr__(self) -> str:
        return repr(self._twin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, the record being processed is not committed.
        self.close(commit=kind is None)

    assign = waits(AsyncConsumer.assign)
    subscribe = asks(AsyncConsumer.subscribe)

    subscription = asks(AsyncConsumer.subscription)
    assignment = asks(AsyncConsumer.assignment)
    partitions_for = waits(AsyncConsumer.partitions_for)
    poll = waits(AsyncConsumer.poll)
    poll_batches = waits(AsyncConsumer.poll_batches)

    def fetch_batches(self) -> Iterator[RawBatches]:
        """Yield what `poll_batches` returns, one by one, for ever."""
        while True:
            yield from self.poll_batches(3_600)

    # Hot: once per record; see bench/client.py.
    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Iterate over records for ever. A record is processed when the next one is requested."""
        consumer = self._twin
        while True:
            if not consumer._is_interrupted:
                for record in consumer._batch:
                    state = consumer._state
                    state.position = record.offset + 1
                    yield tuple.__new__(
                        ConsumerRecord,
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
                    if consumer._is_interrupted:
                        break
            self._thread.call(consumer._advance())

    def __next__(self) -> ConsumerRecord:
        """Wait for the next record."""
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator)

    seek = asks(AsyncConsumer.seek)
    seek_to_time = asks(AsyncConsumer.seek_to_time)
    seek_to_beginning = asks(AsyncConsumer.seek_to_beginning)
    seek_to_end = asks(AsyncConsumer.seek_to_end)
    pause = asks(AsyncConsumer.pause)
    resume = asks(AsyncConsumer.resume)
    position = waits(AsyncConsumer.position)
    high_watermark = asks(AsyncConsumer.high_watermark)
    beginning_offsets = waits(AsyncConsumer.beginning_offsets)
    end_offsets = waits(AsyncConsumer.end_offsets)
    offsets_for_times = waits(AsyncConsumer.offsets_for_times)
    group_metadata = asks(AsyncConsumer.group_metadata)
    commit = waits(AsyncConsumer.commit)
    committed = waits(AsyncConsumer.committed)

    def close(self, *, commit: bool = True) -> None:
        """Commit processed records (if commits are automatic, and `commit`), leave, disconnect."""
        if self._closed:
            return
        self._closed = True
        self._thread.end(self._twin.close(commit=commit))
