"""OffsetFetch: the committed offsets of a group."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition, by_topic
from ottla.group.model.group import AnyGroup
from ottla.group.model.pending_offsets import PendingOffsets

# The offset on the wire where none is committed.
NO_OFFSET = -1
NO_LEADER_EPOCH = -1


class FetchedOffset(NamedTuple):
    """One partition of an answer."""

    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    error_code: ErrorCode


class FetchedTopic(NamedTuple):
    """One topic of an answer."""

    topic: str
    partitions: list[FetchedOffset]


# A topic and the partitions asked for.
WantedTopic = tuple[str, Sequence[int]]


def fetch(group: AnyGroup | None, wanted: Sequence[WantedTopic] | None) -> list[FetchedTopic]:
    """The committed offsets of the partitions in `wanted`, or all of them if it is None.

    A partition without one gets offset -1, a group that does not exist has none.
    """
    offsets = {} if group is None else group.offsets
    if wanted is None:
        wanted = [(topic, sorted(each)) for topic, each in sorted(by_topic(offsets).items())]
    answer = []
    for topic, indexes in wanted:
        fetched = []
        for index in indexes:
            committed = offsets.get(TopicPartition(topic, index))
            if committed is None:
                fetched.append(nothing_committed(index, ErrorCode.NONE))
            else:
                fetched.append(
                    FetchedOffset(
                        index,
                        committed.offset,
                        committed.leader_epoch,
                        committed.metadata,
                        ErrorCode.NONE,
                    )
                )
        answer.append(FetchedTopic(topic, fetched))
    return answer


def without_pending(
    fetched: list[FetchedTopic], group_id: str, pending: PendingOffsets
) -> list[FetchedTopic]:
    """UNSTABLE_OFFSET_COMMIT for offsets that a transaction may still change: retriable."""
    return [
        FetchedTopic(
            topic,
            [
                nothing_committed(each.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if pending.is_pending(group_id, TopicPartition(topic, each.partition))
                else each
                for each in partitions
            ],
        )
        for topic, partitions in fetched
    ]


def nothing_committed(partition: int, code: ErrorCode) -> FetchedOffset:
    """The answer for a partition without an offset, or with an error."""
    return FetchedOffset(partition, NO_OFFSET, NO_LEADER_EPOCH, "", code)
