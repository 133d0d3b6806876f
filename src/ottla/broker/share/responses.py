"""Builds the parts of ShareFetch and ShareAcknowledge responses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.share.deliveries import Acquired
from ottla.share.session import SessionSlot
from ottla.wire.messages import share_records


@dataclass(slots=True)
class SlotResult:
    """The result for one partition of a request."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    acknowledged: ErrorCode = ErrorCode.NONE
    acknowledge_message: str | None = None
    data: bytes = b""
    acquired: list[Acquired] = field(default_factory=list)


def fetch_topics(
    results: Mapping[SessionSlot, SlotResult],
) -> list[share_records.ShareFetchableTopicResponse]:
    """The parts of a ShareFetch response."""
    topics: dict[UUID, list[share_records.PartitionData]] = {}
    for slot, result in results.items():
        topics.setdefault(slot.topic_id, []).append(
            share_records.PartitionData(
                partition_index=slot.partition,
                error_code=result.code,
                error_message=result.message,
                acknowledge_error_code=result.acknowledged,
                acknowledge_error_message=result.acknowledge_message,
                current_leader=share_records.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
                records=result.data,
                acquired_records=[
                    share_records.AcquiredRecords(
                        first_offset=first, last_offset=last, delivery_count=count
                    )
                    for first, last, count in result.acquired
                ],
            )
        )
    return [
        share_records.ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]


def acknowledge_topics(
    results: Iterable[tuple[SessionSlot, ErrorCode, str | None]],
) -> list[share_records.ShareAcknowledgeTopicResponse]:
    """The parts of a ShareAcknowledge response."""
    topics: dict[UUID, list[share_records.AcknowledgePartitionData]] = {}
    for slot, code, message in results:
        topics.setdefault(slot.topic_id, []).append(
            share_records.AcknowledgePartitionData(
                partition_index=slot.partition,
                error_code=code,
                error_message=message,
                current_leader=share_records.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
            )
        )
    return [
        share_records.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]
