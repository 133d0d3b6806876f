"""Sends closed batches to the leaders, in order, and reports their outcome.

Order and idempotence: a partition has at most `max_in_flight` batches in flight. When one fails,
the partition sends nothing more until all its batches in flight are answered; then they are sent
again in their original order, one at a time until one succeeds. Sequences are assigned at the first
sending and kept on every retry, so that a broker recognises a batch it already has.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import DeliveryFailed, Needs, code_of, remedy_for
from ottla.client.connection.background import Background
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.connection import Connection
from ottla.client.connection.view import NO_LEADER
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.encoded_batch import encode, restamp, split
from ottla.client.producer.options import ProducerOptions, acks_number, backoff
from ottla.client.producer.producer_id import ProducerIds
from ottla.client.producer.queues import Batch, PartitionQueue
from ottla.client.producer.transaction_requests import SOON_S
from ottla.client.producer.transaction_state import Transactions
from ottla.record.compression import Compression
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_log = logging.getLogger(__name__)

# If retries of any batch last longer than _PATIENCE_MS, a warning is logged, and repeated at
# intervals of _REMINDER_MS.
_PATIENCE_MS = 2_000
_REMINDER_MS = 10_000
_PURPOSE = "produce"
_SEQUENCE_MASK = 0x7FFFFFFF
_PRODUCER_EPOCH_MAX = 32767

# The broker lacks the previous sequence, or the producer epoch is fenced.
_SEQUENCE_LOST = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class Sender:
    """The I/O half of the producer. All methods run on the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        numbering: ProducerIds | Transactions | None,
        options: ProducerOptions,
        clock: Clock,
        on_delivery: Callable[[Delivery], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._transactions = numbering if isinstance(numbering, Transactions) else None
        self._producer_ids = numbering if isinstance(numbering, ProducerIds) else None
        self._options = options
        self._acks = acks_number(options["acks"])
        self._compression = Compression[options["compression_type"].upper()]
        self._backoff = backoff(options)
        self._clock = clock
        self._on_delivery = on_delivery
        self._in_flight: dict[int, int] = {}
        self._connecting: set[int] = set()
        self._background = Background(cluster, self.drain)
        self._connect_attempts = 0
        self._silent_until_ms = 0

    # -- sending

    def drain(self) -> None:
        """Send every closed batch that may be sent now; timers and answers trigger the rest."""
        queues = self._accumulator.ready_queues
        if not queues:
            return
        if self._transactions is not None and self._transactions.is_failed:
            self.drop_unsent(ErrorCode.TRANSACTION_ABORTABLE, "their transaction has failed")
            return
        may_send = self._has_producer_id()
        now_ms = self._clock.monotonic_ms()
        by_leader: dict[int, list[PartitionQueue]] = {}
        leader_unknown = False
        # Run again in any case, because unsendable batches must expire.
        wait_ms = 1_000
        for queue in list(queues):
            self._expire(queue, now_ms)
            if not queue.closed or not may_send or not self._is_admitted(queue):
                continue
            if queue.not_before_ms > now_ms:
                wait_ms = min(wait_ms, queue.not_before_ms - now_ms)
                continue
            if queue.in_flight and (
                queue.recovering or queue.closed[0].attempts or queue.must_wait
            ):
                continue
            leader = self._cluster.view.leader(queue.topic, queue.index)
            if leader == NO_LEADER or leader not in self._cluster.view.brokers:
                leader_unknown = True
            elif not queue.in_flight or queue.leader_in_flight == leader:
                by_leader.setdefault(leader, []).append(queue)
        for leader, waiting in by_leader.items():
            self._send_to(leader, waiting)
        if leader_unknown:
            self._background.refresh(pause=True)
        if queues:
            self._drain_later(wait_ms)

    def _send_to(self, leader: int, queues: list[PartitionQueue]) -> None:
        in_flight = self._in_flight.get(leader, 0)
        connection = self._cluster.open_connection(leader, _PURPOSE)
        if connection is None:
            self._connect(leader)
            return
        start = 0
        while in_flight < self._options["max_in_flight_requests_per_connection"] and start < len(
            queues
        ):
            if not connection.is_writable:
                connection.when_writable(self.drain)
                return
            chosen: list[PartitionQueue] = []
            size = 0
            while start < len(queues) and (
                not chosen
                or size + queues[start].closed[0].size <= self._options["max_request_size"]
            ):
                size += queues[start].closed[0].size
                chosen.append(queues[start])
                start += 1
            self._send_request(connection, leader, chosen)
            in_flight = self._in_flight.get(leader, 0)
            if start == len(queues):
                # A request has one batch of a partition. The next one takes further batches.
                queues = [q for q in queues if q.closed and not (q.recovering or q.must_wait)]
                start = 0

    def _send_request(
        self, connection: Connection, leader: int, queues: list[PartitionQueue]
    ) -> None:
        options = self._options
        batches = [self._take(queue, leader) for queue in queues]
        transactions = self._transactions
        request = ProduceRequest(
            transactional_id=None if transactions is None else transactions.transactional_id,
            acks=self._acks,
            timeout_ms=options["request_timeout_ms"],
            topic_data=_by_topic(batches),
        )
        if self._acks == 0:
            try:
                connection.send_unanswered(request)
            except OttlaError as error:
                self._on_failure(queues, batches, error.code, error.message)
                return
            for queue, batch in zip(queues, batches, strict=True):
                self._settle(queue, batch, -1, -1)
            return
        oldest_ms = min(batch.created_ms for batch in batches)
        left_ms = oldest_ms + options["delivery_timeout_ms"] - self._clock.monotonic_ms()
        timeout_s = max(1, min(left_ms, options["request_timeout_ms"] + 1_000)) / 1000
        try:
            at_most = None if transactions is None else transactions.produce_version_max
            answer = connection.submit(request, timeout_s, at_most)
        except OttlaError as error:
            self._on_failure(queues, batches, error.code, error.message)
            return
        self._in_flight[leader] = self._in_flight.get(leader, 0) + 1
        answer.add_done_callback(lambda done: self._on_answer(done, leader, queues, batches))

    def _take(self, queue: PartitionQueue, leader: int) -> Batch:
        """Move a queue's first closed batch to those in flight; encode it and assign sequences."""
        batch = queue.closed.popleft()
        # Other queues come first, even if this queue has more batches.
        del self._accumulator.ready_queues[queue]
        if queue.closed:
            self._accumulator.ready_queues[queue] = None
        queue.in_flight.append(batch)
        queue.leader_in_flight = leader
        is_numbered = self._producer_ids is not None or self._transactions is not None
        if is_numbered and batch.base_sequence < 0:
            self._number(queue, batch)
        if batch.head is None:
            level = self._options["compression_level"]
            is_transactional = self._transactions is not None
            encode(batch, self._compression, level, transactional=is_transactional)
        batch.attempts += 1
        return batch

    def _number(self, queue: PartitionQueue, batch: Batch) -> None:
        if self._transactions is not None:
            self._transactions.enter(queue)
        elif queue.producer_id < 0:
            assert self._producer_ids is not None
            queue.producer_id = self._producer_ids.current
        batch.producer_id = queue.producer_id
        batch.producer_epoch = queue.epoch
        batch.base_sequence = queue.next_sequence
        queue.next_sequence = (queue.next_sequence + batch.record_count) & _SEQUENCE_MASK
        queue.window.append(batch)
        if batch.head is not None:
            restamp(batch)

    # -- answers

    def _on_answer(
        self,
        done: "asyncio.Future[ProduceResponse]",
        leader: int,
        queues: list[PartitionQueue],
        batches: list[Batch],
    ) -> None:
        self._in_flight[leader] -= 1
        if done.cancelled():
            self._on_failure(queues, batches, ErrorCode.NETWORK_EXCEPTION, "the client was closed")
            return
        error = done.exception()
        if error is not None:
            assert isinstance(error, OttlaError), error
            self._on_failure(queues, batches, error.code, error.message)
            return
        answers = {
            (topic.name, partition.index): partition
            for topic in done.result().responses
            for partition in topic.partition_responses
        }
        for queue, batch in zip(queues, batches, strict=True):
            answer = answers.get((queue.topic, queue.index))
            if answer is None:
                self._retry_or_fail(
                    queue, batch, ErrorCode.UNKNOWN_SERVER_ERROR, "the answer left it out"
                )
            else:
                self._on_partition_answer(queue, batch, answer)
        self.drain()

    def _on_partition_answer(
        self, queue: PartitionQueue, batch: Batch, answer: PartitionProduceResponse
    ) -> None:
        code = code_of(answer.error_code)
        match code:
            case ErrorCode.NONE:
                self._settle(queue, batch, answer.base_offset, answer.log_append_time_ms)
            case ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                # The broker has it from an earlier attempt, but no longer knows its offset.
                self._settle(queue, batch, -1, -1)
            case ErrorCode.MESSAGE_TOO_LARGE if batch.record_count > 1:
                self._split(queue, batch)
            case _:
                self._retry_or_fail(queue, batch, code, answer.error_message or "")

    def _on_failure(
        self, queues: Iterable[PartitionQueue], batches: Iterable[Batch], code: ErrorCode, why: str
    ) -> None:
        for queue, batch in zip(queues, batches, strict=True):
            self._retry_or_fail(queue, batch, code, why)
        self._drain_later(0)

    def _settle(
        self, queue: PartitionQueue, batch: Batch, base_offset: int, timestamp_ms: int
    ) -> None:
        queue.in_flight.remove(batch)
        queue.recovering = False
        queue.is_known = True
        self._accumulator.release(batch)
        batch.delivery._complete(base_offset, timestamp_ms)
        self._report(batch)

    def _retry_or_fail(
        self, queue: PartitionQueue, batch: Batch, code: ErrorCode, why: str
    ) -> None:
        # True if no earlier batch of the partition is in flight or waiting for a retry.
        was_first = queue.in_flight[0] is batch and (
            not queue.closed or queue.closed[0].order > batch.order
        )
        queue.in_flight.remove(batch)
        sequence_lost = self._producer_ids is not None and code in _SEQUENCE_LOST
        now_ms = self._clock.monotonic_ms()
        expired = now_ms - batch.created_ms >= self._options["delivery_timeout_ms"]
        if expired and code is ErrorCode.REQUEST_TIMED_OUT and batch.last_failure is not None:
            # The last attempt had no time left; the previous error is more informative.
            code, why = batch.last_failure
        # If the transaction can no longer be committed, its batches need not be delivered.
        is_void = self._transactions is not None and self._transactions.is_failed
        if expired or is_void or not (code.retriable or sequence_lost):
            self._give_up(batch, code, why)
            return
        if code.stale_metadata or code is ErrorCode.REQUEST_TIMED_OUT:
            self._background.refresh(pause=True)
        queue.recovering = True
        if code is not ErrorCode.REQUEST_TIMED_OUT or batch.last_failure is None:
            batch.last_failure = (code, why)
        self._warn_of_delay(batch, now_ms)
        _put_back(queue, batch)
        self._accumulator.ready_queues[queue] = None
        if sequence_lost and batch.producer_epoch != queue.epoch:
            # The batch has sequences of an abandoned epoch.
            batch.base_sequence = -1
        elif sequence_lost and was_first:
            # The first batch is refused, so the broker has lost the producer's state (KIP-360).
            self._start_term(queue)
        delay_s = self._backoff.delay_s(batch.attempts - 1, self._cluster.chance)
        if code is ErrorCode.CONCURRENT_TRANSACTIONS:
            # The markers of the last transaction are still being written.
            delay_s = SOON_S
        queue.not_before_ms = now_ms + int(delay_s * 1000)

    def _warn_of_delay(self, batch: Batch, now_ms: int) -> None:
        """Log at intervals why records are retried repeatedly."""
        if now_ms - batch.created_ms < _PATIENCE_MS or now_ms < self._silent_until_ms:
            return
        self._silent_until_ms = now_ms + _REMINDER_MS
        assert batch.last_failure is not None
        code, why = batch.last_failure
        _log.warning(
            "%d record(s) for %s-%d are not delivered after %d attempts, and are sent again: %s"
            " (%s)",
            batch.record_count,
            batch.topic,
            batch.partition,
            batch.attempts,
            why or "the broker gives no reason",
            code.name,
        )

    def _give_up(self, batch: Batch, code: ErrorCode, why: str) -> None:
        # Only the broker knows whether it has the sequences of this batch. So the next batch keeps
        # its sequences, and if the broker refuses it, a new epoch begins.
        self._accumulator.release(batch)
        remedy = remedy_for(code, [Needs("write", "topic", batch.topic)])
        error = DeliveryFailed(
            code,
            f"{batch.record_count} record(s) for {batch.topic}-{batch.partition} were not "
            f"delivered after {batch.attempts} attempts ({why or code.name})"
            + (f"; {remedy}" if remedy else ""),
        )
        batch.delivery._fail(error)
        if self._transactions is not None:
            self._transactions.fail(error)
        self._report(batch)

    def _report(self, batch: Batch) -> None:
        whole = batch.part_of
        if whole is None:
            self._on_delivery(batch.delivery)
            return
        first = whole.delivery
        if first.base_offset < 0:
            first.base_offset = batch.delivery.base_offset
        first.error = first.error or batch.delivery.error
        whole.parts_left -= 1
        if whole.parts_left == 0:
            first._finish()
            self._report(whole)

    def _start_term(self, queue: PartitionQueue) -> None:
        """Renumber the partition's waiting batches with the next producer epoch.

        Batches in flight keep their numbers until they fail.
        """
        assert self._producer_ids is not None
        if queue.epoch == _PRODUCER_EPOCH_MAX:
            queue.producer_id, queue.epoch = -1, 0
            self._producer_ids.renew()
        else:
            queue.epoch += 1
        queue.next_sequence = 0
        queue.is_known = False
        queue.window.clear()
        for batch in queue.closed:
            batch.base_sequence = -1
        queue.recovering = True

    def _split(self, queue: PartitionQueue, batch: Batch) -> None:
        """Split a batch that is too large for the topic into two, with the same sequences."""
        queue.in_flight.remove(batch)
        halves = split(batch)
        for half in reversed(halves):
            _put_back(queue, half)
            queue.window.append(half)
        self._accumulator.replace(batch, halves)
        self._accumulator.ready_queues[queue] = None
        queue.recovering = True

    def _expire(self, queue: PartitionQueue, now_ms: int) -> None:
        limit_ms = self._options["delivery_timeout_ms"]
        while queue.closed and now_ms - queue.closed[0].created_ms >= limit_ms:
            if queue.in_flight:
                return
            batch = queue.closed.popleft()
            if not queue.closed:
                del self._accumulator.ready_queues[queue]
            code, why = batch.last_failure or (ErrorCode.REQUEST_TIMED_OUT, "never sent")
            self._give_up(batch, code, f"delivery_timeout_ms has passed; last: {why or code.name}")

    # -- waiting before sending

    def _is_admitted(self, queue: PartitionQueue) -> bool:
        transactions = self._transactions
        return transactions is None or transactions.admits(queue, self.drain)

    def _has_producer_id(self) -> bool:
        if self._producer_ids is None or self._producer_ids.current >= 0:
            return True
        self._producer_ids.when_known(self.drain)
        return False

    def _connect(self, leader: int) -> None:
        if leader not in self._connecting:
            self._connecting.add(leader)
            self._background.run(self._connect_and_drain(leader))

    async def _connect_and_drain(self, leader: int) -> None:
        try:
            await self._cluster.connection(leader, _PURPOSE)
            self._connect_attempts = 0
        except OttlaError:
            # The leader is gone or unreachable; perhaps another one has been elected.
            await self._cluster.pause(self._connect_attempts)
            self._connect_attempts += 1
            self._background.refresh(pause=True)
        finally:
            self._connecting.discard(leader)
        self.drain()

    def _drain_later(self, delay_ms: int) -> None:
        self._background.until(asyncio.get_running_loop().time() + delay_ms / 1000)

    def fail_all(self, code: ErrorCode, why: str) -> None:
        """Fail all undelivered batches, because the producer is being closed."""
        for batch in list(self._accumulator.unfinished):
            if not batch.delivery.done():
                self._accumulator.release(batch)
                batch.delivery._fail(DeliveryFailed(code, why))
                self._report(batch)

    def drop_unsent(self, code: ErrorCode, why: str) -> None:
        """Fail all batches that are not in flight, because their transaction is being aborted."""
        self._accumulator.close_all()
        for queue in list(self._accumulator.ready_queues):
            del self._accumulator.ready_queues[queue]
            while queue.closed:
                self._give_up(queue.closed.popleft(), code, why)

    async def close(self) -> None:
        """Stop timers and tasks."""
        await self._background.close()


def _put_back(queue: PartitionQueue, batch: Batch) -> None:
    """Put a batch back into the queue, before all batches that were closed later."""
    later = []
    while queue.closed and queue.closed[0].order < batch.order:
        later.append(queue.closed.popleft())
    queue.closed.appendleft(batch)
    queue.closed.extendleft(reversed(later))


def _by_topic(batches: list[Batch]) -> list[TopicProduceData]:
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        topic = topics.get(batch.topic)
        if topic is None:
            topic = topics[batch.topic] = TopicProduceData(name=batch.topic)
        assert batch.head is not None
        topic.partition_data.append(
            PartitionProduceData(index=batch.partition, records=[batch.head, batch.payload])
        )
    return list(topics.values())
