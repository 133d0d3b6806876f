"""Appends dead letters of share groups to dead-letter topics, at this broker or another leader."""

import asyncio
import logging
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.log_lines import Seldom
from ottla.base.settings import BrokerSettings
from ottla.base.settings.resolve import topic_value
from ottla.broker.cluster.links import Links
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import TopicImage
from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.validation import validate
from ottla.share import dead_letters
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

    def close(self) -> None:
        """Close the connections to other brokers: this broker is stopping."""
        self._links.close()

    async def target(self, name: str, source: TopicPartition) -> DeadLetterTarget:
        """The dead-letter partition for a source partition; creates the topic if settings allow it.

        Raises OttlaError; INVALID_CONFIG if a retry fails until a setting is changed.
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
        """Append a batch with acks=all; returns when it is committed. Raises OttlaError."""
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
        """Log `what` happened to `count` records, and why.

        The same error of a group is logged once a minute, with the count since.
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
