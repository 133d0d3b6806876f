"""The producer as plain calls: records are accepted on the caller's thread."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from time import time
from typing import Any, Self, Unpack

from ottla import _compiled
from ottla.base.errors import OttlaError
from ottla.client.common.other_names import OtherNames
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.producer import MISTAKEN, explained
from ottla.client.producer.producer import Producer as AsyncProducer
from ottla.client.producer.queues import Headers, TopicQueues
from ottla.client.sync.loop_thread import LoopThread, waits
from ottla.record import builder


def _is_add_atomic() -> bool:
    """Whether adding a record is atomic among threads: the builder is compiled, and has a GIL."""
    has_gil = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
    return has_gil and _compiled.status().get(builder.__name__, False)


class Producer(OtherNames):
    """`ottla.client.Producer` as plain calls; `with Producer("host:9092") as producer`.

    `on_delivery` is called on the background thread, once per batch, and must not block.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        *,
        on_delivery: Callable[[Delivery], None] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._thread = LoopThread("ottla-producer")
        self._closed = False
        # Appending and closing batches happen on two threads.
        self._lock = threading.Lock()
        self._twin = self._thread.make(
            lambda: AsyncProducer(bootstrap_servers, on_delivery=on_delivery, **options)
        )
        self._accumulator = self._twin._accumulator
        self._accumulator.lock = self._lock
        self._router = self._twin._router
        self._is_quick = self._router.is_default and _is_add_atomic()
        self._must_check = self._twin._must_check
        self._to_key, self._to_value = self._twin._to_key, self._twin._to_value
        self._wake = self._twin._on_news_from_elsewhere

    def __repr__(self) -> str:
        return repr(self._twin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Hot: see bench/client.py for the cost per record.
    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Accept one record; wait only while the producer's memory is full.

        See `ottla.client.Producer.send`. `result()` of the returned delivery waits for the outcome.
        """
        try:
            queues = self._router.known.get(topic)
            if queues is None or self._must_check:
                self._twin._check_sendable()
                queues = queues or self._thread.call(self._router.queues(topic))
            if value.__class__ is not bytes:
                value = self._to_value(value)
            if key is not None:
                key = self._to_key(key)
            if timestamp_ms is None:
                timestamp_ms = int(time() * 1000)
            if partition is None and headers is None and self._is_quick:
                # The common case, inlined: there is room in the open batch. No lock is needed,
                # because `add` is atomic among threads, and refuses records once the batch is
                # closed.
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
                    self._thread.call(self._twin._room())
            if accumulator.has_opened or accumulator.has_news:
                self._on_news(queues)
            return batch.delivery
        except MISTAKEN as error:
            raise explained(error, topic, partition, timestamp_ms, headers) from None

    def _on_news(self, queues: TopicQueues) -> None:
        if self._accumulator.has_news:
            self._router.move_on(queues)
        self._accumulator.has_opened = self._accumulator.has_news = False
        self._thread.loop.call_soon_threadsafe(self._wake, queues)

    send_and_wait = waits(AsyncProducer.send_and_wait)
    send_batch = waits(AsyncProducer.send_batch)
    send_prepared = waits(AsyncProducer.send_prepared)
    partitions_for = waits(AsyncProducer.partitions_for)

    flush = waits(AsyncProducer.flush)

    init_transactions = waits(AsyncProducer.init_transactions)
    begin_transaction = waits(AsyncProducer.begin_transaction)
    send_offsets_to_transaction = waits(AsyncProducer.send_offsets_to_transaction)
    commit_transaction = waits(AsyncProducer.commit_transaction)
    abort_transaction = waits(AsyncProducer.abort_transaction)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """`with producer.transaction():` commits at its end, and aborts after an error."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(OttlaError):
                self.abort_transaction()
            raise

    def close(self, timeout: float | None = None) -> None:
        """Flush for at most `timeout` seconds, then end; an open transaction is aborted."""
        if self._closed:
            return
        self._closed = self._must_check = True
        self._thread.end(self._twin.close(timeout))
