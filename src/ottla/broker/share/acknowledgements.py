"""The acknowledgements in one ShareFetch or ShareAcknowledge, over all its partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.share.share_partitions import SharePartitions
from ottla.share.deliveries import Acknowledged
from ottla.share.session import MemberKey, SessionSlot
from ottla.share.states import Acknowledge

Results = dict[SessionSlot, tuple[ErrorCode, str | None]]


class AcknowledgedBatch(Protocol):
    """An acknowledgement batch of ShareFetch or ShareAcknowledge."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Part(Protocol):
    """A partition of ShareFetch or ShareAcknowledge."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[AcknowledgedBatch]: ...


class Topic(Protocol):
    """A topic of ShareFetch or ShareAcknowledge."""

    topic_id: UUID

    @property
    def partitions(self) -> Sequence[Part]: ...


def acknowledgements(topics: Iterable[Topic]) -> dict[SessionSlot, list[Acknowledged]]:
    """The acknowledgements in a request, by partition; partitions without any are left out."""
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
    """Apply acknowledgements; `on_done` is called as each partition's part is written or fails."""
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
