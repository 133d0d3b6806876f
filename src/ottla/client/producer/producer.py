"""The producer: collects records into batches and sends them; one outcome per batch."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, Unpack

from ottla.base.clock import Clock, current_clock
from ottla.base.errors import ErrorCode
from ottla.client.common.arguments import checked_options, checks_calls, mistake_in
from ottla.client.common.callbacks import call_callback
from ottla.client.common.errors import ClientClosed, DeliveryFailed, RequestTimedOut
from ottla.client.common.other_names import OtherNames
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.view import PartitionDescription
from ottla.client.producer.accumulator import Accumulator, serializing
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.encoded_batch import PreparedBatch, to_queue
from ottla.client.producer.options import (
    DEFAULTS,
    ProducerOptions,
    check_options,
    cluster_options,
    is_idempotent,
)
from ottla.client.producer.producer_id import ProducerIds
from ottla.client.producer.queues import Batch, Headers, PartitionQueue, TopicQueues
from ottla.client.producer.router import Column, Router
from ottla.client.producer.sender import Sender
from ottla.client.producer.transaction_state import Transactions
from ottla.client.producer.transactions import Transactional

__all__ = ["Delivery", "Producer", "ProducerOptions"]

# A batch cut from columns, and its queue.
Cut = tuple[PartitionQueue, Batch]
# Python's errors if an argument of `send` has a wrong type, or a number is too large.
MISTAKEN = (TypeError, AttributeError, ValueError, OverflowError)


# Calls with records are checked after they have failed.
@checks_calls(unchecked=("send", "send_and_wait", "send_batch", "send_prepared"))
class Producer(Transactional, OtherNames):
    """Sends records. Use it as `async with Producer("host:9092") as producer`.

    Three modes (Kafka design, §4.3): fire and forget (`await producer.send(...)` and go on;
    `flush` raises what failed), asynchronous (`on_delivery` is called once per batch, or the
    returned `Delivery` is awaited), synchronous (`await producer.send_and_wait(...)`).

    With `transactional_id` records are sent within transactions only, and readers need
    `isolation_level="read_committed"`:

        async with Producer("host:9092", transactional_id="copier-1") as producer:
            async with producer.transaction():
                await producer.send("out", b"...")
                group = consumer.group_metadata()
                await producer.send_offsets_to_transaction({partition: offset}, group)

    Not for several event loops or threads: see `ottla.client.sync`.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        *,
        on_delivery: Callable[[Delivery], None] | None = None,
        clock: Clock | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._options = options = checked_options(options, DEFAULTS, ProducerOptions)
        check_options(options)
        self._user_callback = on_delivery
        clock = clock or current_clock()
        self._now_ms = clock.now_ms
        self._connections = Cluster(bootstrap_servers, cluster_options(options))
        self._accumulator = Accumulator(options["batch_size"], options["buffer_memory"], clock)
        self._router = Router(self._connections, self._accumulator, options["partitioner"])
        is_transactional = options["transactional_id"] is not None
        self._transactions = Transactions(self._connections, options) if is_transactional else None
        numbered = is_idempotent(options)
        self._numbering: ProducerIds | Transactions | None = self._transactions or (
            ProducerIds(self._connections) if numbered else None
        )
        self._sender = Sender(
            self._connections,
            self._accumulator,
            self._numbering,
            options,
            clock,
            self._on_delivery,
        )
        self._to_key = serializing(options["key_serializer"])
        self._to_value = serializing(options["value_serializer"])
        self._is_default = self._router.is_default
        self._linger: asyncio.TimerHandle | asyncio.Handle | None = None
        self._waiting_for_room: list[asyncio.Future[None]] = []
        # Failed deliveries that `flush` has not processed yet.
        self._failed: list[Delivery] = []
        self._closed = False
        # Whether the producer's state may refuse a record.
        self._must_check = self._transactions is not None

    def __repr__(self) -> str:
        name = self._options["transactional_id"]
        return f"<Producer to {self._connections.named}{f' as {name!r}' if name else ''}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # -- sending

    async def partitions_for(self, topic: str) -> tuple[PartitionDescription, ...]:
        """Return the topic's partitions and leaders. Raises UnknownTopic."""
        self._check_open()
        return (await self._connections.topic(topic)).partitions

    # Hot: see bench/client.py for the cost per record.
    async def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Accept one record; return its batch's `Delivery` at once, or wait for memory.

        Text is sent as UTF-8; values other than text and bytes are serialized. Without `partition`
        the partitioner chooses; without `timestamp_ms` (since 1970, UTC) it is now. Raises
        UnknownTopic, and ClientError for a record that no broker would accept, or if no transaction
        is open although the producer has a transactional_id.
        """
        try:
            queues = self._router.known.get(topic)
            if queues is None or self._must_check:
                self._check_sendable()
                queues = queues or await self._router.queues(topic)
            if value.__class__ is not bytes:
                value = self._to_value(value)
            if key is not None:
                key = self._to_key(key)
            if timestamp_ms is None:
                timestamp_ms = self._now_ms()
            if partition is None and headers is None and self._is_default:
                # The common case, inlined: there is room in the open batch.
                queue = queues.sticky if key is None else queues.by_key.get(key)
                batch = None if queue is None else queue.open
                if batch is not None and batch.builder.add(timestamp_ms, key, value):
                    return batch.delivery
            return await self._send(queues, key, value, partition, timestamp_ms, headers)
        except MISTAKEN as error:
            raise explained(error, topic, partition, timestamp_ms, headers) from None

    async def _send(
        self,
        queues: TopicQueues,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp_ms: int,
        headers: Headers | None,
    ) -> Delivery:
        """Put a record into its queue, opening and closing batches, waiting for memory."""
        self._connections.check_loop()
        accumulator = self._accumulator
        while True:
            queue = self._router.queue_for(queues, key, value, partition)
            batch = accumulator.append(queue, key, value, timestamp_ms, headers)
            if batch is not None:
                break
            if accumulator.has_news:
                self._on_news(queues)
                # Let answers be read, and other tasks run, once per batch.
                await asyncio.sleep(0)
            else:
                await self._room()
        if accumulator.has_news:
            self._on_news(queues)
            await asyncio.sleep(0)
        if self._linger is None:
            self._start_linger()
        return batch.delivery

    async def send_and_wait(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Send one record without lingering and wait until it is acknowledged.

        Records sent by other tasks in the same turn of the loop share the batch. Raises
        DeliveryFailed.
        """
        delivery = await self.send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        asyncio.get_running_loop().call_soon(self._close_open)
        return await delivery

    async def send_batch(
        self,
        topic: str,
        values: Column,
        keys: Column | None = None,
        *,
        partition: int | None = None,
        timestamps_ms: list[int] | None = None,
    ) -> list[Delivery]:
        """Send many records: parallel lists, or Arrow columns of binary or text.

        Returns a `Delivery` per batch, in order per partition. Records with keys are partitioned as
        by `send`; the others fill batches of one partition after the other.
        """
        self._connections.check_loop()
        self._check_sendable()
        queues = await self._router.queues(topic)
        deliveries: list[Delivery] = []
        batches = self._router.batches(queues, values, keys, partition, timestamps_ms)
        for queue, batch in _explaining(batches, partition, timestamps_ms):
            while not self._accumulator.has_room(batch.size):
                await self._room()
            self._accumulator.add_closed(queue, batch)
            deliveries.append(batch.delivery)
            self._on_news(queues)
            await asyncio.sleep(0)
        return deliveries

    async def send_prepared(self, batch: PreparedBatch) -> Delivery:
        """Send a batch that was built elsewhere, with one `Delivery`; waits for memory.

        Batches of a partition are sent in the order of the calls. Raises UnknownTopic, and
        ClientError for a partition that does not exist and for a damaged batch.
        """
        self._connections.check_loop()
        self._check_sendable()
        queues = await self._router.queues(batch.topic)
        queue = self._router.queue_for(queues, None, None, batch.partition)
        while not self._accumulator.has_room(len(batch.content)):
            await self._room()
        queued = self._accumulator.new_batch(queue, 0)
        to_queue(batch, queued, transactional=self._transactions is not None)
        self._accumulator.add_closed(queue, queued)
        self._on_news(queues)
        await asyncio.sleep(0)
        return queued.delivery

    async def flush(self, timeout: float | None = None) -> None:
        """Send all waiting records, and return once all have an outcome; `timeout` in seconds.

        Raises the first DeliveryFailed that neither `on_delivery` nor an awaited `Delivery` has
        reported; RequestTimedOut if records are still unacknowledged.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._settle_all()
        except TimeoutError:
            raise RequestTimedOut(f"not all records were settled within {timeout:g} s") from None
        failed, self._failed = self._failed, []
        for delivery in failed:
            if delivery._unreported_error is not None:
                raise delivery._unreported_error

    async def _settle_all(self) -> None:
        """Send all waiting records; return once their outcome is known."""
        self._connections.check_loop()
        self._close_open()
        for batch in list(self._accumulator.unfinished):
            await (batch.part_of or batch).delivery.settled()

    async def close(self, timeout: float | None = None) -> None:
        """Flush for at most `timeout` seconds, then end.

        By default every record gets its full delivery timeout. An open transaction is aborted.
        Raises the same errors as `flush`; undelivered records fail.
        """
        if self._closed:
            return
        self._connections.check_loop()
        await self._abort_open()
        self._closed = self._must_check = True
        # Records expire by themselves; this limit only guards against bugs.
        limit_s = self._options["delivery_timeout_ms"] / 1000 + 5 if timeout is None else timeout
        try:
            async with asyncio.timeout(limit_s):
                await self.flush()
        except TimeoutError:
            why = f"the producer was closed, and {limit_s:g} s were not enough to deliver them"
            self._sender.fail_all(ErrorCode.REQUEST_TIMED_OUT, why)
            raise DeliveryFailed(ErrorCode.REQUEST_TIMED_OUT, f"records were lost: {why}") from None
        finally:
            if self._linger is not None:
                self._linger.cancel()
            if self._numbering is not None:
                await self._numbering.close()
            await self._sender.close()
            await self._connections.close()

    # -- batches

    def _on_news(self, queues: TopicQueues) -> None:
        self._accumulator.has_news = False
        self._router.move_on(queues)
        self._sender.drain()

    def _on_news_from_elsewhere(self, queues: TopicQueues) -> None:
        """Another thread has opened or closed a batch of `queues`."""
        if self._accumulator.ready_queues:
            self._on_news(queues)
        if self._linger is None and self._accumulator.open_queues:
            self._start_linger()

    def _start_linger(self) -> None:
        loop = asyncio.get_running_loop()
        if self._options["linger_ms"] == 0:
            self._linger = loop.call_soon(self._close_open)
        else:
            self._linger = loop.call_later(self._options["linger_ms"] / 1000, self._on_linger)

    def _on_linger(self) -> None:
        self._linger = None
        now_ms = self._accumulator.clock.monotonic_ms()
        oldest_ms = self._accumulator.close_older(now_ms - self._options["linger_ms"])
        if oldest_ms is not None:
            wait_ms = max(1, oldest_ms + self._options["linger_ms"] - now_ms)
            self._linger = asyncio.get_running_loop().call_later(wait_ms / 1000, self._on_linger)
        self._sender.drain()

    def _close_open(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._accumulator.close_all()
        self._accumulator.has_news = False
        self._sender.drain()

    async def _room(self) -> None:
        """Wait until some memory is free again."""
        if not self._accumulator.unfinished:
            # All batches were delivered after the caller, perhaps another thread, found no room. So
            # no later delivery would wake it.
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_room.append(future)
        self._close_open()
        await future

    def _check_sendable(self) -> None:
        """Raise the error that prevents sending, if there is one."""
        self._check_open()
        if self._transactions is not None:
            self._transactions.check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the producer is closed; make a new one")

    def _on_delivery(self, delivery: Delivery) -> None:
        if delivery._unreported_error is not None and self._user_callback is None:
            self._failed.append(delivery)
        waiting, self._waiting_for_room = self._waiting_for_room, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        if self._user_callback is not None:
            call_callback("on_delivery", self._user_callback, delivery)


def _explaining(batches: Iterator[Cut], partition: object, timestamps_ms: object) -> Iterator[Cut]:
    """Iterate over `batches`, with errors that name arguments of `send_batch`."""
    try:
        yield from batches
    except MISTAKEN as error:
        given = {"partition": partition, "timestamps_ms": timestamps_ms}
        raise (mistake_in(Producer.send_batch, given) or error) from None


def explained(
    error: Exception,
    topic: object,
    partition: object,
    timestamp_ms: object,
    headers: object,
) -> Exception:
    """Return an error that names the wrong argument of `send`; if all are valid, `error`.

    Checked only after a failure, so that valid arguments cost nothing.
    """
    given = {
        "topic": topic,
        "partition": partition,
        "timestamp_ms": timestamp_ms,
        "headers": headers,
    }
    return mistake_in(Producer.send, given) or error
