"""The logs of partitions: directories, offsets, producers, retention, deletion, ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition, by_topic
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Partitions, checks_calls, partition_list
from ottla.client.common.errors import BrokerRefused, Needs, check, code_of
from ottla.client.common.offset_account import OffsetAccount, account_of, filled
from ottla.client.consumer.offsets import (
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    list_offsets,
)
from ottla.wire.messages.log_cleaning import (
    RetentionStandingRequest,
    RetentionStandingResponse,
)
from ottla.wire.messages.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest, OffsetLedgerResponse
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.messages.transaction_listings import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """How long the record at `offset` stays at least, and the setting that decides it.

    `left_ms` is None if no setting deletes the record, or if nothing is written at `offset`
    yet. It is 0 if the record may be deleted at any time.
    """

    offset: int
    left_ms: int | None
    setting: str | None


@dataclass(frozen=True, slots=True)
class RetentionStatus:
    """A partition's retention, from its leader. Sizes in bytes, times in ms, -1 for no limit.

    `readers` are the groups that delay deletion, with their committed offsets (-1: none or
    unknown). `held_bytes` are kept only for them, since `held_since_ms` (-1: nothing is kept).
    """

    name: TopicPartition
    broker_id: int
    log_start_offset: int
    log_end_offset: int
    size_bytes: int
    bytes_per_second: float
    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    hold_max_bytes: int
    hold_max_ms: int
    times_left: tuple[TimeLeft, ...]
    readers: Mapping[str, int]
    held_bytes: int
    held_since_ms: int


# Passed to `delete_records` as an offset: delete everything below the high watermark.
UP_TO_END = -1
_HIGH_WATERMARK = -1


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A broker's data directory. Sizes in bytes, -1 if the broker does not report them."""

    broker_id: int
    path: str
    error: ErrorCode
    partition_bytes: dict[TopicPartition, int]
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer that the leader of a partition remembers. Time in ms; -1 means none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int


# Reasons for DeleteRecords, whose answer contains no message of the broker.
_NOT_DELETED = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "it is an internal topic, whose records belong to the brokers; they compact it themselves"
    ),
    ErrorCode.POLICY_VIOLATION: (
        "the topic is compacted only; set its cleanup.policy to compact,delete first"
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "the offset lies beyond the last committed record; `ottla topic offsets` shows where the"
        " log ends"
    ),
}


def _check_deleted(partition: TopicPartition, number: int) -> None:
    """Raise BrokerRefused if DeleteRecords failed for a partition."""
    code = code_of(number)
    if code in _NOT_DELETED:
        raise BrokerRefused(
            code, f"the broker refused to delete records of {partition}: {_NOT_DELETED[code]}"
        )
    needed = [Needs("delete", "topic", partition.topic)]
    check(number, f"delete records of {partition}", None, needed)


@checks_calls()
class Logs:
    """`admin.logs`: the logs of partitions on their brokers."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def directories(
        self, broker_ids: Iterable[int] | None = None, *, patience_s: float | None = None
    ) -> list[LogDirectory]:
        """Return the brokers' data directories (default: all), with the size of each log.

        With `patience_s` each broker is asked once, and brokers that do not answer within that time
        are left out; without it the call raises an error if a broker does not answer.
        """
        chosen = None if broker_ids is None else list(broker_ids)

        async def ask() -> list[LogDirectory]:
            live = await self._calls.brokers()
            wanted = live if chosen is None else chosen
            if patience_s is not None:
                answers = await self._calls.each_in_time(wanted, self._directories, patience_s)
            else:
                answers = [await self._directories(broker_id) for broker_id in wanted]
            return [directory for directories in answers for directory in directories]

        return await self._calls.retried(ask)

    async def _directories(self, broker_id: int) -> list[LogDirectory]:
        request = DescribeLogDirsRequest(topics=None)
        answer = await self._calls.cluster.ask(broker_id, request, DescribeLogDirsResponse)
        return directories_in(answer, broker_id)

    async def offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return per partition the offset for EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms."""
        level = READ_COMMITTED if read_committed else READ_UNCOMMITTED
        return await list_offsets(self._calls.cluster, wanted, level)

    async def stable_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (last stable offset, high watermark), the end offsets per isolation level."""
        ends = [
            (await list_offsets(self._calls.cluster, {partition: LATEST}, level))[partition].offset
            for level in (READ_COMMITTED, READ_UNCOMMITTED)
        ]
        return ends[0], ends[1]

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Delete all records below an offset (UP_TO_END: up to the high watermark).

        Returns the new log start offsets. Raises BrokerRefused OFFSET_OUT_OF_RANGE if an offset is
        above the high watermark.
        """
        found: dict[TopicPartition, int] = {}

        async def delete() -> None:
            for leader, partitions in (await self._calls.by_leader(before)).items():
                topics = [
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(
                                partition_index=index, offset=before[TopicPartition(topic, index)]
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(partitions).items()
                ]
                request = DeleteRecordsRequest(
                    topics=topics, timeout_ms=self._calls.cluster.options.request_timeout_ms
                )
                answer = await self._calls.cluster.ask(leader, request, DeleteRecordsResponse)
                for result in answer.topics:
                    for entry in result.partitions:
                        partition = TopicPartition(result.name, entry.partition_index)
                        _check_deleted(partition, entry.error_code)
                        found[partition] = entry.low_watermark

        await self._calls.retried(delete)
        return found

    async def producers(
        self, partitions: Partitions
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        """Return the idempotent and transactional producers that the leaders remember."""
        wanted = partition_list(partitions)
        found: dict[TopicPartition, list[ProducerDescription]] = {}

        async def ask() -> None:
            for leader, led in (await self._calls.by_leader(wanted)).items():
                topics = [
                    TopicRequest(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(led).items()
                ]
                request = DescribeProducersRequest(topics=topics)
                answer = await self._calls.cluster.ask(leader, request, DescribeProducersResponse)
                for result in answer.topics:
                    for part in result.partitions:
                        partition = TopicPartition(result.name, part.partition_index)
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

        await self._calls.retried(ask)
        return found

    async def account(
        self, partition: TopicPartition, start: int = 0, end: int | None = None
    ) -> OffsetAccount:
        """Explain each of the offsets [start, end) of `partition`; `end` None: the high watermark.

        Raises UnknownTopic, ConnectionFailed, OffsetOutOfRange for offsets that the log never
        contained, UnsupportedByBroker if the leader is not Ottla's.
        """
        request = OffsetLedgerRequest(
            topic=partition.topic,
            partition=partition.partition,
            start=start,
            end=_HIGH_WATERMARK if end is None else end,
        )

        def read(answer: OffsetLedgerResponse) -> OffsetAccount:
            check(answer.error_code, f"account for {partition}", answer.error_message)
            return account_of(partition, answer)

        return await self._calls.ask_leader_ottla(
            partition, request, OffsetLedgerResponse, read, "keeps no ledger of offsets"
        )

    async def retention(
        self, partition: TopicPartition, offsets: Sequence[int] = (), *, group_id: str = ""
    ) -> RetentionStatus:
        """Return the retention of a partition, and how long the records at `offsets` stay.

        With `group_id`, the times take into account that retention waits for this group.

        Raises UnknownTopic, ConnectionFailed, UnsupportedByBroker if the leader is not Ottla's.
        """
        request = RetentionStandingRequest(
            topic=partition.topic,
            partition=partition.partition,
            offsets=list(offsets),
            group_id=group_id,
        )

        def read(answer: RetentionStandingResponse) -> RetentionStatus:
            check(answer.error_code, f"ask for the retention of {partition}", answer.error_message)
            return filled(
                RetentionStatus,
                answer,
                name=partition,
                times_left=tuple(
                    TimeLeft(one.offset, None if one.left_ms < 0 else one.left_ms, one.setting)
                    for one in answer.deadlines
                ),
                readers={one.group_id: one.committed for one in answer.readers},
            )

        return await self._calls.ask_leader_ottla(
            partition, request, RetentionStandingResponse, read, "does not describe its retention"
        )


def directories_in(answer: DescribeLogDirsResponse, broker_id: int) -> list[LogDirectory]:
    """Return the directories in a broker's answer. Raises BrokerRefused if the request was refused.

    Up to version 2 the answer has no field for an error of the whole request. Every broker has
    at least one directory, so an answer without directories means a refusal, as in Kafka's client.
    """
    code = answer.error_code
    if not answer.results and code == ErrorCode.NONE:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    check(code, "describe its log directories")
    return [
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
