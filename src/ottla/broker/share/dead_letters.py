"""Writes the dead letters of a share partition, then archives their source records.

Records that wait for a dead letter are in flight, so `share.partition.max.record.locks` limits
them. A dead letter is written between the record's states ARCHIVING and ARCHIVED. If the leader
changes in between, the new leader writes it again (`adr/0012-dead-letters.md`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.log_lines import Seldom
from ottla.base.settings import BrokerSettings
from ottla.base.settings.resolve import topic_value
from ottla.broker.cluster.links import Links
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.portion import PORTION_BYTES, read_portion
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import TopicImage
from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.codec import Record
from ottla.record.reader import CorruptBatch, batches, records
from ottla.record.validation import validate
from ottla.share import dead_letters
from ottla.share.dead_letters import TOPIC_NAME, Origin, write_letters
from ottla.share.deliveries import Dead
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_log = logging.getLogger(__name__)

_ACKS_ALL = -1
_TIMEOUT_MS = 30_000
# The same error of a group is logged at most once per this interval.
_LOG_AGAIN_MS = 60_000


class DeadLetterTarget(NamedTuple):
    """A partition of a dead-letter topic, and its `max.message.bytes`."""

    topic: TopicImage
    number: int
    max_bytes: int


class DeadLetterSender:
    """Sends the dead letters of the share partitions that this broker leads."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
        topics: Topics,
        links: Links,
    ) -> None:
        self._view = view
        self._clock = runtime.clock
        self._settings = settings
        self._partitions = partitions
        self._topics = topics
        self._links = links
        self._errors = Seldom(_LOG_AGAIN_MS)
        # Records written as dead letters since the start, and records that could not be.
        self.written = self.failed = 0

    def close(self) -> None:
        """Close the connections to other brokers: this broker is stopping."""
        self._links.close()

    async def target(self, name: str, source: TopicPartition) -> DeadLetterTarget:
        """Return the dead-letter partition for a source partition.

        Creates the topic if settings allow it. Raises OttlaError, with INVALID_CONFIG if retries
        are useless until a setting is changed.
        """
        settings = self._settings
        dead_letters.check_name(name, settings.text(dead_letters.NAME_PREFIX))
        topic = self._view.image.topic(name)
        if topic is None:
            topic = await self._create(name)
        dead_letters.check_topic(name, topic.configs, source.topic)
        max_bytes = topic_value("max.message.bytes", topic.configs, settings).value
        assert isinstance(max_bytes, int)
        number = dead_letters.destination(source.partition, len(topic.partitions))
        return DeadLetterTarget(topic, number, max_bytes)

    async def send(self, target: DeadLetterTarget, batch: bytearray) -> None:
        """Append a batch with acks=all; return when it is committed. Raises OttlaError."""
        leader = target.topic.partitions[target.number].leader
        if leader == self._view.broker_id:
            try:
                async with asyncio.timeout(_TIMEOUT_MS / 1000):
                    await self._append(target, batch)
            except TimeoutError:
                raise OttlaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{target.topic.name}-{target.number}: its in-sync replicas did not replicate "
                    f"the batch within {_TIMEOUT_MS} ms: ottla cluster health",
                ) from None
            return
        if leader not in self._view.image.brokers:
            raise OttlaError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                f"{target.topic.name}-{target.number} has no leader: ottla cluster health",
            )
        part = PartitionProduceData(index=target.number, records=memoryview(batch))
        topic = TopicProduceData(
            name=target.topic.name, topic_id=target.topic.id, partition_data=[part]
        )
        request = ProduceRequest(acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topic_data=[topic])
        answer: ProduceResponse = await self._links.request(
            leader, request, timeout_ms=_TIMEOUT_MS + 5_000
        )
        (part_answer,) = answer.responses[0].partition_responses
        if part_answer.error_code != ErrorCode.NONE:
            code = ErrorCode(part_answer.error_code)
            raise OttlaError(code, part_answer.error_message or f"broker {leader}: {code.name}")

    def report(self, group_id: str, count: int, what: str, trouble: str) -> None:
        """Log `what` happened to `count` records, and the reason `trouble`.

        The same error of a group is logged once a minute, with the number of records since then.
        """
        now_ms = self._clock.monotonic_ms()
        unlogged = self._errors.admit((group_id, trouble), now_ms, count)
        if unlogged is not None:
            count += unlogged
            _log.error("share group %s: %d record(s) %s: %s", group_id, count, what, trouble)

    async def _create(self, name: str) -> TopicImage:
        if not self._settings.flag(dead_letters.AUTO_CREATE):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"dead-letter topic {name} does not exist: ottla topic create {name} --set "
                f"{dead_letters.TOPIC_ENABLE}=true, or set {dead_letters.AUTO_CREATE}=true on the "
                "brokers so that they create it",
            )
        (outcome,) = await self._topics.create(
            [RequestedTopic(name, configs=dead_letters.CREATED_WITH)]
        )
        if outcome.topic is None:
            assert outcome.error is not None
            raise outcome.error
        # The image has the partitions' leaders once the controller has elected them.
        return self._view.image.topic(name) or outcome.topic

    async def _append(self, target: DeadLetterTarget, batch: bytearray) -> None:
        """Append the batch to a partition that this broker leads; return when it is committed."""
        partition = self._partitions.get(target.topic.name, target.number)
        partition.check_led()
        partition.check_in_sync()
        now_ms = self._clock.now_ms()
        valid = validate(memoryview(batch), partition.log.config, now_ms)
        appended = partition.append(valid.buffer, valid.header, now_ms)
        reached: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def on_reached(code: ErrorCode) -> None:
            if not reached.done():
                reached.set_result(code)

        partition.on_high_watermark(appended.last_offset + 1, on_reached)
        code = await reached
        if code is not ErrorCode.NONE:
            raise OttlaError(code, f"{partition.topic_partition}: {code.name}")


# How long a batch is retried after retriable errors.
_PATIENCE_MS = 120_000
# How long it is retried after other errors, since this broker may learn of a changed setting late.
_GRACE_MS = 2_000
_LOST = "get no dead letter"
_BARE = "get dead letters without key and value"
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
# Codes to retry in addition to Kafka's retriable codes.
_PASSING = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class DeadLetterWriter:
    """Writes the dead letters of one share partition, in order, with retries.

    `on_done` is called with the first and last offset of records whose dead letters were written or
    given up.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: ShareGroupSettings,
        sender: DeadLetterSender,
        group_id: str,
        partition: Partition,
        on_done: Callable[[int, int], None],
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._sender = sender
        self._partition = partition
        self._origin = Origin(group_id, partition.topic, partition.index)
        self._on_done = on_done
        # Records without a dead letter yet, each with the time it was added (monotonic ms).
        self._waiting: deque[tuple[Dead, int]] = deque()
        self._closed = False
        self._running = False
        # The error message of the last batch given up. The same error has no grace period again.
        self._refused = ""

    @property
    def is_idle(self) -> bool:
        """Whether no record waits for a dead letter."""
        return not self._waiting

    def add(self, dead: Iterable[Dead]) -> None:
        """Queue dead letters for these records."""
        now_ms = self._runtime.clock.monotonic_ms()
        self._waiting.extend((each, now_ms) for each in dead)
        if self._waiting and not self._running and not self._closed:
            self._running = True
            self._runtime.spawn(self._write_all())

    def close(self) -> None:
        """Stop writing, because the share partition is closed; the next leader writes the rest."""
        self._closed = True
        self._waiting.clear()

    async def _write_all(self) -> None:
        try:
            tries = 0
            while self._waiting:
                dead, since_ms = self._waiting[0]
                last = await self._settle(dead, since_ms)
                if last is None:
                    await asyncio.sleep(_BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)])
                    tries += 1
                    continue
                tries = 0
                if self._closed:
                    return
                self._pass(dead, since_ms, last)
        finally:
            self._running = False

    async def _settle(self, dead: Dead, since_ms: int) -> int | None:
        """Try to write `dead`; return the last offset written or given up, None to retry."""
        try:
            last = await self._write_some(dead)
        except OttlaError as error:
            if self._closed or self._is_worth_trying(error, since_ms):
                return None
            self._refused = error.message
            self._sender.failed += dead.last - dead.first + 1
            self._report(dead.last - dead.first + 1, _LOST, error.message)
            return dead.last
        self._refused = ""
        return last

    def _pass(self, dead: Dead, since_ms: int, last: int) -> None:
        self._waiting.popleft()
        if last < dead.last:
            self._waiting.appendleft((dead._replace(first=last + 1), since_ms))
        self._on_done(dead.first, last)

    def _is_worth_trying(self, error: OttlaError, since_ms: int) -> bool:
        waited_ms = self._runtime.clock.monotonic_ms() - since_ms
        if error.code.retriable or error.code in _PASSING:
            return waited_ms < _PATIENCE_MS
        return waited_ms < _GRACE_MS and error.message != self._refused

    async def _write_some(self, dead: Dead) -> int:
        """Write as many dead letters as fit into one batch; return their last source offset."""
        config = self._settings.config(self._origin.group_id)
        if not config.letters:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"the group's {TOPIC_NAME} is not set any more: set it to the dead-letter topic",
            )
        source = self._partition.topic_partition
        target = await self._sender.target(config.letters, source)
        found, upto = self._found(dead, target.max_bytes) if config.copies else ({}, dead.last)
        letters = write_letters(
            self._origin,
            dead,
            found,
            upto=upto,
            now_ms=self._runtime.clock.now_ms(),
            max_bytes=target.max_bytes,
        )
        await self._sender.send(target, letters.batch)
        self._sender.written += letters.last - dead.first + 1
        if letters.bare:
            why = f"topic {target.topic.name} takes batches of at most {target.max_bytes} bytes"
            self._report(letters.bare, _BARE, f"{why}: raise its max.message.bytes")
        return letters.last

    def _found(self, dead: Dead, enough_bytes: int) -> tuple[dict[int, Record], int]:
        """Read source records to fill a batch; return them by offset, and the last offset read."""
        partition = self._partition
        first = max(dead.first, partition.log_start_offset)
        found: dict[int, Record] = {}
        upto, left_bytes = dead.last, enough_bytes
        try:
            portion = read_portion(partition, first, PORTION_BYTES, committed=False)
            for position, header in batches(portion.data):
                upto = header.last_offset
                for record in records(portion.data, position, header):
                    if first <= record.offset <= dead.last:
                        found[record.offset] = record
                        left_bytes -= len(record.value or b"")
                if left_bytes <= 0:
                    break
        except (CorruptBatch, OttlaError) as error:
            self._report(min(upto, dead.last) - first + 1, _BARE, error.message)
        return found, upto

    def _report(self, count: int, what: str, trouble: str) -> None:
        self._sender.report(self._origin.group_id, count, what, trouble)
