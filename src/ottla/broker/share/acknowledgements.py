"""Applies the acknowledgements in a ShareFetch or ShareAcknowledge, and builds the responses."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.share.share_partitions import SharePartitions
from ottla.share.deliveries import Acknowledged, Acquired
from ottla.share.session import MemberKey, SessionSlot
from ottla.share.states import Acknowledge
from ottla.wire.messages import share_records

Results = dict[SessionSlot, tuple[ErrorCode, str | None]]


def acknowledgements(
    topics: Iterable[share_records.FetchTopic],
) -> dict[SessionSlot, list[Acknowledged]]:
    """Return the acknowledgements in a request by partition, without empty ones."""
    return {
        SessionSlot(topic.topic_id, part.partition_index): [
            Acknowledged(each.first_offset, each.last_offset, each.acknowledge_types)
            for each in part.acknowledgement_batches
        ]
        for topic in topics
        for part in topic.partitions
        if part.acknowledgement_batches
    }


def check_renewals(batches: Mapping[SessionSlot, list[Acknowledged]], *, is_renew: bool) -> None:
    """Raise OttlaError (INVALID_REQUEST) if a batch renews locks and `is_renew` is False."""
    if not is_renew and any(
        Acknowledge.RENEW in batch.types for each in batches.values() for batch in each
    ):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "the request has acknowledge type 4 (renew) but IsRenewAck is false: set IsRenewAck",
        )


def acknowledge_all(
    sharing: SharePartitions,
    member: MemberKey,
    batches: Mapping[SessionSlot, list[Acknowledged]],
    on_done: Callable[[Results], None],
) -> None:
    """Apply acknowledgements; `on_done` is called once all are written or have failed."""
    results: Results = {}
    # One more than the partitions, so that `on_done` is not called before the loop ends.
    left = len(batches) + 1

    def done(slot: SessionSlot | None, code: ErrorCode, message: str | None) -> None:
        nonlocal left
        if slot is not None:
            results[slot] = (code, message)
        left -= 1
        if left == 0:
            on_done(results)

    for slot, acknowledged in batches.items():
        try:
            served = sharing.served(member.group_id, slot.topic_id, slot.partition)
        except OttlaError as error:
            done(slot, error.code, error.message)
            continue
        served.acknowledge(member.member_id, acknowledged, partial(done, slot))
    done(None, ErrorCode.NONE, None)


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
    """Build the topics of a ShareFetch response."""
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
    """Build the topics of a ShareAcknowledge response."""
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
