"""The cluster itself: brokers, disks, offsets, producers; and deleting records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.arguments import Partitions, partition_list
from ottla.client.errors import check, refused
from ottla.client.offsets import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    list_offsets,
)
from ottla.client.view import NO_LEADER, BrokerView
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

# `delete_records` up to here: everything below the high watermark.
UP_TO_END = -1


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Who belongs to the cluster. `controller_id` -1: none is known."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerView, ...]


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A broker's data folder. Sizes in bytes, -1 where the broker does not tell."""

    broker_id: int
    path: str
    error: ErrorCode
    partition_bytes: dict[TopicPartition, int]
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer that the leader of a partition remembers. Time in ms; -1 where there is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int


class ClusterCalls(Calls):
    """Calls about brokers and their logs."""

    async def describe_cluster(self) -> ClusterDescription:
        """Brokers, controller and id, from any broker."""

        async def ask() -> ClusterDescription:
            await self.cluster.ask_any(MetadataRequest(topics=[]), MetadataResponse)
            await self.cluster.refresh()
            view = self.cluster.view
            brokers = tuple(view.brokers[broker_id] for broker_id in sorted(view.brokers))
            return ClusterDescription(view.cluster_id, view.controller_id, brokers)

        return await self.retried(ask)

    async def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker that is gone for good.

        Raises BrokerRefused BROKER_ID_NOT_REGISTERED, or INVALID_REQUEST where it is alive.
        """
        request = UnregisterBrokerRequest(broker_id=broker_id)
        answer = await self.cluster.ask_any(request, UnregisterBrokerResponse)
        check(answer.error_code, f"remove broker {broker_id}", answer.error_message)

    async def log_directories(self, broker_ids: Iterable[int] | None = None) -> list[LogDirectory]:
        """Data folders of the brokers (default: all) with the size of each partition's log."""

        async def ask() -> list[LogDirectory]:
            live = await self.brokers()
            wanted = live if broker_ids is None else broker_ids
            found: list[LogDirectory] = []
            for broker_id in wanted:
                request = DescribeLogDirsRequest(topics=None)
                answer = await self.cluster.ask(broker_id, request, DescribeLogDirsResponse)
                check(answer.error_code, "describe its log directories")
                found += [
                    LogDirectory(
                        broker_id,
                        result.log_dir,
                        ErrorCode(result.error_code),
                        {
                            TopicPartition(topic.name, entry.partition_index): entry.partition_size
                            for topic in result.topics
                            for entry in topic.partitions
                        },
                        result.total_bytes,
                        result.usable_bytes,
                    )
                    for result in answer.results
                ]
            return found

        return await self.retried(ask)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Per partition the offset for EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms."""
        level = READ_COMMITTED if read_committed else READ_UNCOMMITTED
        return await list_offsets(self.cluster, wanted, level)

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Delete all records below an offset (UP_TO_END: all there are).

        Returns the log start offsets afterwards. Raises BrokerRefused OFFSET_OUT_OF_RANGE
        where an offset lies beyond the high watermark.
        """
        found: dict[TopicPartition, int] = {}

        async def delete() -> None:
            for leader, partitions in (await self._by_leader(before)).items():
                topics: dict[str, DeleteRecordsTopic] = {}
                for topic, index in partitions:
                    topics.setdefault(topic, DeleteRecordsTopic(name=topic)).partitions.append(
                        DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(topic, index)]
                        )
                    )
                request = DeleteRecordsRequest(
                    topics=list(topics.values()),
                    timeout_ms=self.cluster.options.request_timeout_ms,
                )
                answer = await self.cluster.ask(leader, request, DeleteRecordsResponse)
                for told in answer.topics:
                    for entry in told.partitions:
                        partition = TopicPartition(told.name, entry.partition_index)
                        check(entry.error_code, f"delete records of {partition}")
                        found[partition] = entry.low_watermark

        await self.retried(delete)
        return found

    async def describe_producers(
        self, partitions: Partitions
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        """Idempotent and transactional producers whose sequences the leaders remember."""
        wanted = partition_list(partitions)
        found: dict[TopicPartition, list[ProducerDescription]] = {}

        async def ask() -> None:
            for leader, led in (await self._by_leader(wanted)).items():
                topics: dict[str, TopicRequest] = {}
                for topic, index in led:
                    entry = topics.setdefault(topic, TopicRequest(name=topic))
                    entry.partition_indexes.append(index)
                request = DescribeProducersRequest(topics=list(topics.values()))
                answer = await self.cluster.ask(leader, request, DescribeProducersResponse)
                for told in answer.topics:
                    for part in told.partitions:
                        partition = TopicPartition(told.name, part.partition_index)
                        what = f"describe the producers of {partition}"
                        check(part.error_code, what, part.error_message)
                        found[partition] = [
                            ProducerDescription(
                                one.producer_id,
                                one.producer_epoch,
                                one.last_sequence,
                                one.last_timestamp,
                                one.coordinator_epoch,
                                one.current_txn_start_offset,
                            )
                            for one in part.active_producers
                        ]

        await self.retried(ask)
        return found

    async def _by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            await self.cluster.topic(partition.topic)
            leader = self.cluster.view.leader(*partition)
            if leader == NO_LEADER:
                raise refused(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"work on {partition}: it has no leader, or does not exist",
                )
            by_leader.setdefault(leader, []).append(partition)
        return by_leader
