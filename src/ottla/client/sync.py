"""Producer, consumer and administration as plain calls, for programs without an event loop.

One background thread runs a loop of its own (uvloop where it is installed); nothing global is
changed. Objects may be used from any thread, a consumer from one at a time.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from time import time
from typing import Any, Self, TypeVar

from ottla import _compiled
from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.accumulator import as_bytes
from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.admin import AdminOptions
from ottla.client.columns import Column
from ottla.client.consumer import Consumer as AsyncConsumer
from ottla.client.consumer_options import ConsumerOptions, Listener
from ottla.client.delivery import Delivery
from ottla.client.errors import Closed, RequestTimedOut
from ottla.client.group_metadata import GroupMetadata
from ottla.client.offsets import OffsetAndTimestamp
from ottla.client.partition_state import ConsumedRecord, OffsetAndMetadata, RawBatches, Records
from ottla.client.producer import Producer as AsyncProducer
from ottla.client.producer_options import ProducerOptions
from ottla.client.queues import Headers, TopicQueues
from ottla.client.transactional_producer import Offsets
from ottla.client.transactional_producer import (
    TransactionalProducer as AsyncTransactionalProducer,
)
from ottla.record import builder

__all__ = ["Admin", "Consumer", "Producer", "TransactionalProducer"]

Result = TypeVar("Result")

try:
    import uvloop
except ImportError:
    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_event_loop = uvloop.new_event_loop


class LoopThread:
    """A loop in a daemon thread, for one client."""

    def __init__(self, name: str) -> None:
        self.loop = _new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, work: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
        """Run `work` on the loop and wait for what it returns or raises."""
        if not self._thread.is_alive() or self.loop.is_closed():
            work.close()
            raise Closed("the client is closed; make a new one")
        assert threading.current_thread() is not self._thread, "a callback must not block its loop"
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except FutureTimeout:
            if future.done():
                raise
            future.cancel()
            raise RequestTimedOut(f"not done within {timeout_s:g} s") from None
        except CancelledError:
            raise Closed("the client was closed meanwhile") from None
        except BaseException:
            # Ctrl-C while waiting: the work ends too.
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(10)


def _is_add_atomic() -> bool:
    """Whether no other thread runs while a record is added to a builder: compiled, with a GIL."""
    has_gil = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
    return has_gil and _compiled.status().get(builder.__name__, False)


async def _made(make: Callable[[], Result]) -> Result:
    return make()


class Producer:
    """`ottla.client.producer.Producer` as plain calls; `with Producer("host:9092") as producer`.

    `on_delivery` is called on the background thread, once per batch, and must not block.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        options: ProducerOptions | None = None,
        *,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        self._start(lambda: AsyncProducer(bootstrap, options, on_delivery=on_delivery))

    def _start(self, make: Callable[[], AsyncProducer]) -> None:
        self._thread = LoopThread("ottla-producer")
        self._closed = False
        # Appending and closing batches happen on two threads.
        self._lock = threading.Lock()
        try:
            self._producer = self._thread.call(_made(make))
        except BaseException:
            self._thread.stop()
            raise
        self._accumulator = self._producer.accumulator
        self._accumulator.lock = self._lock
        self._router = self._producer.router
        self._is_quick = self._router.is_default and _is_add_atomic()
        self._wake = self._producer.on_news_from_elsewhere

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Hot: see bench/client.py for the cost per record.
    def send(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Accept one record; waits only while the producer's memory is full.

        See `ottla.client.producer.Producer.send`. Wait for the returned batch with `wait`.
        """
        queues = self._router.known.get(topic)
        if queues is None or self._closed:
            queues = self._thread.call(self._router.queues(topic))
        if value.__class__ is not bytes:
            value = as_bytes(value)
        if key is not None:
            key = as_bytes(key)
        if timestamp_ms is None:
            timestamp_ms = int(time() * 1000)
        if partition is None and headers is None and self._is_quick:
            # The common case, spelled out: there is room in the open batch. Without the lock, as
            # `add` is one step for other threads, and refuses once the batch is closed.
            queue = queues.sticky if key is None else queues.by_key.get(key)
            batch = None if queue is None else queue.open
            if batch is not None and batch.builder.add(timestamp_ms, key, value):
                return batch.delivery
        accumulator = self._accumulator
        while True:
            with self._lock:
                queue = self._router.queue_for(queues, key, value, partition)
                batch = accumulator.append(queue, key, value, timestamp_ms, headers)
            if batch is not None:
                break
            if accumulator.has_news:
                self._on_news(queues)
            else:
                self._thread.call(self._producer.room())
        if accumulator.has_opened or accumulator.has_news:
            self._on_news(queues)
        return batch.delivery

    def _on_news(self, queues: TopicQueues) -> None:
        if self._accumulator.has_news:
            self._router.move_on(queues)
        self._accumulator.has_opened = self._accumulator.has_news = False
        self._thread.loop.call_soon_threadsafe(self._wake, queues)

    def send_and_wait(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Send one record and wait until it is acknowledged. Raises DeliveryFailed."""
        return self._thread.call(
            self._producer.send_and_wait(
                topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
        )

    def send_batch(
        self,
        topic: str,
        values: Column,
        keys: Column | None = None,
        *,
        partition: int | None = None,
        timestamps_ms: list[int] | None = None,
    ) -> list[Delivery]:
        """Send many records from lists or Arrow columns; a `Delivery` per batch."""
        return self._thread.call(
            self._producer.send_batch(
                topic, values, keys, partition=partition, timestamps_ms=timestamps_ms
            )
        )

    def wait(self, delivery: Delivery, timeout_s: float | None = None) -> Delivery:
        """Wait for the fate of a batch. Raises DeliveryFailed, RequestTimedOut."""
        return self._thread.call(_await(delivery), timeout_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Send what is waiting; return once all of it is settled. Raises DeliveryFailed."""
        self._thread.call(self._producer.flush(), timeout_s)

    def close(self, timeout_ms: int | None = None) -> None:
        """Flush, then end."""
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.call(self._producer.close(timeout_ms))
        finally:
            self._thread.stop()


async def _await(delivery: Delivery) -> Delivery:
    return await delivery


class TransactionalProducer(Producer):
    """`ottla.client.TransactionalProducer` as plain calls; `with producer.transaction():`."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        transaction_version_max: int = 2,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        def make() -> AsyncTransactionalProducer:
            self._transactional = AsyncTransactionalProducer(
                bootstrap,
                transactional_id,
                options,
                transaction_timeout_ms=transaction_timeout_ms,
                transaction_version_max=transaction_version_max,
                on_delivery=on_delivery,
            )
            return self._transactional

        self._start(make)

    def init_transactions(self) -> None:
        """Take over the transactional id, once: what another producer has open is aborted."""
        self._thread.call(self._transactional.init_transactions())

    def begin_transaction(self) -> None:
        """Open a transaction. What is sent from now on belongs to it."""
        self._thread.call(self._transactional.begin_transaction())

    def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit what was consumed with the transaction: for each partition the next offset."""
        self._thread.call(self._transactional.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Make all of the transaction visible. See the asyncio form for what it raises."""
        self._thread.call(self._transactional.commit_transaction())

    def abort_transaction(self) -> None:
        """Let nothing of the transaction be visible. Raises ProducerFenced."""
        self._thread.call(self._transactional.abort_transaction())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits at its end, and aborts after an error."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(OttlaError):
                self.abort_transaction()
            raise

    # Hot: see `Producer.send`.
    def send(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """As `Producer.send`. Raises ClientError where no transaction is open."""
        self._transactional.transactions.check_open()
        return super().send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )


class Consumer:
    """`ottla.client.consumer.Consumer` as plain calls; `for record in consumer`, or `poll`.

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

        def make() -> AsyncConsumer:
            return AsyncConsumer(
                bootstrap,
                options,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
            )

        try:
            self._consumer = self._thread.call(_made(make))
        except BaseException:
            self._thread.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, what was being processed is not committed.
        self.close(commit=kind is None)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without being a member of a group."""
        self._thread.call(self._consumer.assign(partitions))

    def subscribe(self, topics: Any) -> None:
        """Read a topic, several, or those matching a compiled pattern, as the group's member."""
        self._on_loop(lambda: self._consumer.subscribe(topics))

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        return self._on_loop(lambda: self._consumer.assignment)

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
        self._on_loop(lambda: self._consumer.seek(partition, offset))

    def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> None:
        """Read on from the first record at or after a time in ms; from the end where none is."""
        self._on_loop(lambda: self._consumer.seek_to_time(timestamp_ms, partitions))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read on from the first record there is."""
        self._on_loop(lambda: self._consumer.seek_to_beginning(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read only what comes from now on."""
        self._on_loop(lambda: self._consumer.seek_to_end(partitions))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these until `resume`."""
        self._on_loop(lambda: self._consumer.pause(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with paused partitions."""
        self._on_loop(lambda: self._consumer.resume(partitions))

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to hand out."""
        return self._thread.call(self._consumer.position(partition))

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The partition's end as of the last fetch; None before the first."""
        return self._on_loop(lambda: self._consumer.high_watermark(partition))

    def begin_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets that can be read."""
        return self._thread.call(self._consumer.begin_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets after the last records that can be read."""
        return self._thread.call(self._consumer.end_offsets(partitions))

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Per partition the first record at or after a time in ms."""
        return self._thread.call(self._consumer.offsets_for_times(times_ms))

    def group_metadata(self) -> GroupMetadata:
        """Who commits here, for `TransactionalProducer.send_offsets`. Ask anew for each."""
        return self._on_loop(self._consumer.group_metadata)

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commit positions after the records handed out so far, or the offsets given."""
        self._thread.call(self._consumer.commit(offsets))

    def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed."""
        return self._thread.call(self._consumer.committed(partitions))

    def _on_loop(self, work: Callable[[], Result]) -> Result:
        return self._thread.call(_made(work))

    def close(self, *, commit: bool = True) -> None:
        """Commit what is processed (if commits are automatic, and `commit`), leave, disconnect."""
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.call(self._consumer.close(commit=commit))
        finally:
            self._thread.stop()


class Admin:
    """`ottla.client.admin.Admin` as plain calls: every method of it, waited for."""

    def __init__(self, bootstrap: str | Iterable[str], options: AdminOptions | None = None) -> None:
        self._thread = LoopThread("ottla-admin")
        self._closed = False
        try:
            self._admin = self._thread.call(_made(lambda: AsyncAdmin(bootstrap, options)))
        except BaseException:
            self._thread.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._admin, name)
        if name.startswith("_") or not asyncio.iscoroutinefunction(method):
            raise AttributeError(f"Admin has no call {name!r}")

        def call(*arguments: Any, **named: Any) -> Any:
            return self._thread.call(method(*arguments, **named))

        return call

    def close(self) -> None:
        """Close all connections."""
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.call(self._admin.close())
        finally:
            self._thread.stop()
