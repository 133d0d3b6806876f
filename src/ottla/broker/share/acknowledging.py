"""What a member says of records in one request, over all its partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.deliveries import Acknowledged
from ottla.share.session import MemberKey, Slot
from ottla.share.states import Acknowledge

if TYPE_CHECKING:
    from ottla.broker.share.sharing import Sharing

Results = dict[Slot, tuple[ErrorCode, str | None]]


class Batch(Protocol):
    """An acknowledgement batch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Part(Protocol):
    """A partition of either request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Batch]: ...


class Topic(Protocol):
    """A topic of either request."""

    topic_id: UUID

    @property
    def partitions(self) -> Sequence[Part]: ...


def said(topics: Iterable[Topic]) -> dict[Slot, list[Acknowledged]]:
    """What a request says of each partition, those without a word left out."""
    return {
        Slot(topic.topic_id, part.partition_index): [
            Acknowledged(each.first_offset, each.last_offset, each.acknowledge_types)
            for each in part.acknowledgement_batches
        ]
        for topic in topics
        for part in topic.partitions
        if part.acknowledgement_batches
    }


def require_renew_told(batches: Mapping[Slot, list[Acknowledged]], *, is_renew: bool) -> None:
    """Raises OttlaError (INVALID_REQUEST) where locks are renewed and the request denies it."""
    if not is_renew and any(
        Acknowledge.RENEW in batch.types for each in batches.values() for batch in each
    ):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "the request renews locks, and does not say so: IsRenewAck is false",
        )


def acknowledge_all(
    sharing: "Sharing",
    member: MemberKey,
    batches: Mapping[Slot, list[Acknowledged]],
    on_done: Callable[[Results], None],
) -> None:
    """Take in what a member says; `on_done` is told when all of it is written, or in vain."""
    results: Results = {}
    # One more, so that nothing ends before everything began.
    left = len(batches) + 1

    def done(slot: Slot | None, code: ErrorCode, message: str | None) -> None:
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
