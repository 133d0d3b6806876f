"""The canary: each broker writes a record to the next one, and reads it back, at an interval.

The brokers form a ring by their ids. The record goes to the partition of `__ottla_canary` whose
preferred leader is the next broker, over the brokers' listener: through TLS, handshake, dispatcher,
log, flush and replication of that broker, with acks=all, and back by a fetch. After every fifth
record an offset is committed to a group that the broker coordinates. So every broker is proven by
another one, which still can say so if it hangs. The clients' listeners and logins are not proven:
`ottla doctor` tries those. A broker that is alone uses its own partition, without a connection.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import cast

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.base.log_lines import Seldom
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.links import Links, idle_ms
from ottla.broker.cluster.peers import Peers
from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.portion import read_portion
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.broker.topics.topics import Topics
from ottla.metadata.canary import CONFIGS, TOPIC, missing, partition_of
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_log = logging.getLogger(__name__)
INTERVAL = "canary.interval.ms"
_ACKS_ALL = -1
_TIMEOUT_MS = 10_000
_FETCH_BYTES = 65_536
_LOG_AGAIN_MS = 60_000
# A commit costs as much as the rest of a proof.
_COMMIT_EVERY = 5
# Of so many names of groups, one usually has its coordinator on a given broker.
_GROUPS = 200


@dataclass(frozen=True, slots=True)
class Latency:
    """How many times something took how long, in ms: all together, and the last time."""

    count: int = 0
    sum_ms: float = 0.0
    last_ms: float = 0.0

    def with_one(self, took_ms: float) -> "Latency":
        return Latency(self.count + 1, self.sum_ms + took_ms, took_ms)


@dataclass(frozen=True, slots=True)
class CanaryStatus:
    """What became of the canary's records; an interval of 0 means that it is off.

    `target` is the broker that is proven, -1 for none yet. `failed` were not acknowledged, or could
    not be read. `lost` were acknowledged, and the broker returned something else at their offset.
    `round_trip` is from the write until the record was read.
    """

    interval_ms: int
    target: int
    sent: int
    failed: int
    lost: int
    produce: Latency
    round_trip: Latency
    commit: Latency


class Canary(BrokerPart):
    """Writes and reads the records of this broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        view: ClusterView,
        peers: Peers,
        partitions: Partitions,
        groups: Groups,
        topics: Topics,
    ) -> None:
        self._interval_ms = settings.integer(INTERVAL)
        self._runtime = runtime
        self._view = view
        self._partitions = partitions
        self._groups = groups
        self._topics = topics
        self._links = Links(peers, idle_ms=idle_ms(settings))
        self._chores = Chores()
        self._errors = Seldom(_LOG_AGAIN_MS)
        self._target = -1
        self._sent = self._failed = self._lost = 0
        self._produce = self._round_trip = self._commit = Latency()

    def begin(self) -> None:
        """Start the canary, if it is on."""
        if self._interval_ms:
            self._chores.every(self._interval_ms, self.prove)

    async def stop(self) -> None:
        await self._chores.stop()
        self._links.close()

    def status(self) -> CanaryStatus:
        return CanaryStatus(
            self._interval_ms,
            self._target,
            self._sent,
            self._failed,
            self._lost,
            self._produce,
            self._round_trip,
            self._commit,
        )

    async def prove(self) -> None:
        """Prove the next broker of the ring once."""
        image = self._view.image
        target = next_in_ring(self._view.broker_id, image)
        topic = image.topic(TOPIC)
        lists = [one.replicas for one in topic.partitions] if topic is not None else []
        index = partition_of(target, lists)
        try:
            async with asyncio.timeout(_TIMEOUT_MS / 1000):
                added = missing(list(image.brokers), lists)
                if added and self._view.broker_id == min(image.brokers):
                    await self._extend(lists, added)
                elif (
                    topic is not None
                    and index is not None
                    and topic.partitions[index].leader == target
                ):
                    # Else it has just started, or stops: it leads again soon.
                    self._target = target
                    await self._round(target, topic, index)
        except (OttlaError, TimeoutError) as error:
            self._failed += self._target == target
            why = (
                error.message if isinstance(error, OttlaError) else f"no answer in {_TIMEOUT_MS} ms"
            )
            self._report(f"no proof of broker {target}: {why}")

    async def _extend(
        self, lists: list[tuple[BrokerId, ...]], added: list[tuple[int, ...]]
    ) -> None:
        """Create the topic, or add partitions for brokers without one."""
        if lists:
            await self._topics.grow(TOPIC, len(lists) + len(added), added)
            return
        new = RequestedTopic(TOPIC, assignments=dict(enumerate(added)), configs=CONFIGS)
        (outcome,) = await self._topics.create([new])
        if outcome.error is not None and outcome.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome.error

    async def _round(self, target: BrokerId, topic: TopicImage, index: int) -> None:
        clock_s = self._runtime.loop.time
        self._sent += 1
        value = b"%d %d %d" % (self._view.broker_id, self._sent, self._runtime.clock.now_ms())
        began_s = clock_s()
        offset = await self._write(target, topic, index, value)
        self._produce = self._produce.with_one((clock_s() - began_s) * 1000)
        if value not in await self._read(target, topic, index, offset):
            self._lost += 1
            self._report(
                f"broker {target} acknowledged offset {offset} of {TOPIC}-{index} and does not"
                f" return the record: `ottla why leader {TOPIC}-{index}`"
            )
            return
        self._round_trip = self._round_trip.with_one((clock_s() - began_s) * 1000)
        group = self._group_of(target) if self._sent % _COMMIT_EVERY == 1 else None
        if group is not None:
            began_s = clock_s()
            await self._commit_offset(target, topic, index, group, offset + 1)
            self._commit = self._commit.with_one((clock_s() - began_s) * 1000)

    async def _write(self, target: BrokerId, topic: TopicImage, index: int, value: bytes) -> int:
        """Write a record with acks=all and return its offset. Raises OttlaError."""
        if target == self._view.broker_id:
            partition = self._partitions.get(TOPIC, index)
            partition.check_led()
            offset, last = partition.append_internal([(None, value)])
            reached: asyncio.Future[ErrorCode] = self._runtime.loop.create_future()
            partition.on_high_watermark(
                last + 1, lambda code: None if reached.done() else reached.set_result(code)
            )
            _check(await reached, target, "refused the record")
            return offset
        batch = BatchBuilder()
        batch.add(self._runtime.clock.now_ms(), None, value)
        part = PartitionProduceData(index=index, records=memoryview(batch.build()))
        data = TopicProduceData(name=TOPIC, topic_id=topic.id, partition_data=[part])
        request = ProduceRequest(acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topic_data=[data])
        answer: ProduceResponse = await self._links.request(target, request, timeout_ms=_TIMEOUT_MS)
        (written,) = answer.responses[0].partition_responses
        _check(written.error_code, target, "refused the record")
        return written.base_offset

    async def _read(self, target: BrokerId, topic: TopicImage, index: int, offset: int) -> bytes:
        """Return the batches from `offset` on. Raises OttlaError."""
        if target == self._view.broker_id:
            partition = self._partitions.get(TOPIC, index)
            return read_portion(partition, offset, _FETCH_BYTES, committed=False).data
        part = FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
        )
        wanted = FetchTopic(topic=TOPIC, topic_id=topic.id, partitions=[part])
        request = FetchRequest(max_wait_ms=_TIMEOUT_MS, min_bytes=1, topics=[wanted])
        answer: FetchResponse = await self._links.request(
            target, request, timeout_ms=2 * _TIMEOUT_MS
        )
        _check(answer.error_code, target, "refused the fetch")
        (found,) = answer.responses[0].partitions
        _check(found.error_code, target, "does not return the record")
        return bytes(cast("memoryview", found.records or b""))

    async def _commit_offset(
        self, target: BrokerId, topic: TopicImage, index: int, group: str, offset: int
    ) -> None:
        """Commit an offset to a group that `target` coordinates. Raises OttlaError."""
        part = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        data = OffsetCommitRequestTopic(name=TOPIC, topic_id=topic.id, partitions=[part])
        request = OffsetCommitRequest(group_id=group, topics=[data])
        answer: OffsetCommitResponse = await self._links.request(
            target, request, timeout_ms=_TIMEOUT_MS
        )
        _check(answer.topics[0].partitions[0].error_code, target, "refused the commit")

    def _group_of(self, target: BrokerId) -> str | None:
        """Return a group that `target`, another broker, coordinates; None if there is none."""
        if target == self._view.broker_id:
            return None
        for name in (f"{TOPIC}-{number}" for number in range(_GROUPS)):
            index = self._groups.partition_index(name)
            state = None if index is None else self._view.image.partition(CONSUMER_OFFSETS, index)
            if state is None:
                return None  # No group has committed anything yet.
            if state.leader == target:
                return name
        return None

    def _report(self, sentence: str) -> None:
        if self._errors.admit(sentence, self._runtime.clock.monotonic_ms()) is not None:
            _log.warning("canary: %s", sentence)


def next_in_ring(broker_id: BrokerId, image: ClusterImage) -> BrokerId:
    """Return the live broker with the next id, the first one after the last."""
    later = [broker for broker in image.brokers if broker > broker_id]
    return min(later or image.brokers, default=broker_id)


def _check(number: int, target: BrokerId, what: str) -> None:
    if number != ErrorCode.NONE:
        code = ErrorCode(number)
        raise OttlaError(code, f"broker {target} {what} ({code.name})")
