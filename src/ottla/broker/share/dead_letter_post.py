"""Brings dead letters of share groups to their topics, which other brokers may lead."""

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings.resolve import topic_value
from ottla.broker.transactions.links import Links, idle_ms
from ottla.metadata.image import TopicImage
from ottla.metadata.topic_plan import NewTopic
from ottla.record.validation import validate
from ottla.share import dead_letters
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

_log = logging.getLogger(__name__)

_ACKS_ALL = -1
_TIMEOUT_MS = 30_000
# The same trouble of a group is told so often at most.
_TELL_AGAIN_MS = 60_000
_GROUPS_MAX = 1000


class Target(NamedTuple):
    """A partition of a dead-letter topic, and how large a batch for it may be."""

    topic: TopicImage
    number: int
    max_bytes: int


class DeadLetterPost:
    """All dead letters that this broker writes, as the leader of partitions they come from."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._links = Links(broker.peers, idle_ms=idle_ms(broker.settings))
        # By group: what trouble was told last, when, and of how many records not yet.
        self._told: dict[str, tuple[str, int, int]] = {}

    def close(self) -> None:
        """The broker stops."""
        self._links.close()

    async def target(self, name: str, source: TopicPartition) -> Target:
        """Where dead letters of a partition go; the topic is made where brokers may do that.

        Raises OttlaError, INVALID_CONFIG where nothing will come of it before something is set.
        """
        settings = self._broker.settings
        dead_letters.check_name(name, settings.text(dead_letters.NAME_PREFIX))
        topic = self._broker.image.topic(name)
        if topic is None:
            topic = await self._create(name)
        dead_letters.check_topic(name, topic.configs, source.topic)
        max_bytes = topic_value("max.message.bytes", topic.configs, settings).value
        assert isinstance(max_bytes, int)
        number = dead_letters.destination(source.partition, len(topic.partitions))
        return Target(topic, number, max_bytes)

    async def send(self, target: Target, batch: bytearray) -> None:
        """Write a batch; it is on all replicas in sync then. Raises OttlaError."""
        leader = target.topic.partitions[target.number].leader
        if leader == self._broker.broker_id:
            try:
                async with asyncio.timeout(_TIMEOUT_MS / 1000):
                    await self._append(target, batch)
            except TimeoutError:
                raise OttlaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{target.topic.name}-{target.number} has no replicas in sync to commit it: "
                    "ottla cluster health",
                ) from None
            return
        if leader not in self._broker.image.brokers:
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
        (told,) = answer.responses[0].partition_responses
        if told.error_code != ErrorCode.NONE:
            code = ErrorCode(told.error_code)
            raise OttlaError(code, told.error_message or f"broker {leader}: {code.name}")

    def tell(self, group_id: str, count: int, what: str, trouble: str) -> None:
        """Log what became of so many records, and why: the same not again for a minute."""
        now_ms = self._broker.clock.monotonic_ms()
        before, at_ms, untold = self._told.get(group_id, ("", now_ms, 0))
        count += untold if before == trouble else 0
        if before == trouble and now_ms - at_ms < _TELL_AGAIN_MS:
            self._told[group_id] = (trouble, at_ms, count)
            return
        if len(self._told) >= _GROUPS_MAX:
            self._told.clear()
        self._told[group_id] = (trouble, now_ms, 0)
        _log.error("share group %s: %d record(s) %s: %s", group_id, count, what, trouble)

    async def _create(self, name: str) -> TopicImage:
        broker = self._broker
        if not broker.settings.flag(dead_letters.AUTO_CREATE):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"topic {name} does not exist: ottla topic create {name} --set "
                f"{dead_letters.TOPIC_ENABLE}=true, or have brokers create such topics with "
                f"{dead_letters.AUTO_CREATE}=true",
            )
        (outcome,) = await broker.topics.create([NewTopic(name, configs=dead_letters.CREATED_WITH)])
        if outcome.topic is None:
            assert outcome.error is not None
            raise outcome.error
        # Its leaders are not told of it before the controller has seen it.
        return broker.image.topic(name) or outcome.topic

    async def _append(self, target: Target, batch: bytearray) -> None:
        """As a producer's batch that asks for all replicas in sync."""
        partition = self._broker.partitions.get(target.topic.name, target.number)
        partition.check_led()
        partition.check_in_sync()
        now_ms = self._broker.clock.now_ms()
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
