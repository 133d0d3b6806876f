"""Explains when retention deletes records, which groups delay it, and what was lost."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import span_words
from ottla.client.admin import Admin
from ottla.client.admin.decisions import DecisionRecord
from ottla.client.admin.logs import RetentionStatus
from ottla.client.common.errors import UnsupportedByBroker
from ottla.client.common.offset_account import CompactedBy, OffsetAccount
from ottla.metadata.decisions import DecisionKind

_MINUTE_MS = 60_000
# Requests in flight at the same time.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """The records that a group lost to retention, and the time until the next deletion.

    `time_left_ms` is None if no setting deletes the next record, and 0 if it may be deleted at
    any time.
    """

    log_start_offset: int
    deleted_unread: int
    time_left_ms: int | None

    @property
    def words(self) -> str | None:
        """Return `12 deleted unread, in 2 hours`; None if nothing is or will be lost."""
        words = [f"{self.deleted_unread} deleted unread"] if self.deleted_unread else []
        if self.time_left_ms is not None:
            words.append(in_words(self.time_left_ms))
        return ", ".join(words) or None


@dataclass(frozen=True, slots=True)
class ReaderStanding:
    """A group that retention waits for.

    `committed` is None if it is unknown, or if the group has no committed offset.
    """

    group_id: str
    committed: int | None
    unread: int
    time_left_ms: int | None


@dataclass(frozen=True, slots=True)
class RetentionDiagnosis:
    """The retention of a partition, the groups that delay it, and the unread records it deleted."""

    standing: RetentionStatus
    readers: tuple[ReaderStanding, ...]
    deleted_unread: tuple[DecisionRecord, ...]


async def retention_of(admin: Admin, name: TopicPartition) -> RetentionDiagnosis:
    """Return when records of `name` are deleted, and which groups delay that.

    Raises UnsupportedByBroker if the cluster is not Ottla's.
    """
    first = await admin.logs.retention(name)
    offsets = [first.log_start_offset, *first.readers.values()]
    story = await admin.decisions.describe(name)
    unread = tuple(one for one in story.records if one.kind == DecisionKind.DELETED_UNREAD)
    # If there are readers, ask for the times that apply to them.
    reader = next(iter(first.readers), "")
    standing = await admin.logs.retention(name, offsets, group_id=reader)
    return RetentionDiagnosis(standing, readers_of(standing), unread)


def readers_of(standing: RetentionStatus) -> tuple[ReaderStanding, ...]:
    """Return the readers of a partition, each with the time until it loses a record.

    In `times_left`, the first time is the oldest record's, and one for each reader comes after it.
    A reader that was added after the times were requested has none, and is left out.
    """
    return tuple(
        ReaderStanding(
            group_id,
            None if committed < 0 else committed,
            standing.log_end_offset - max(committed, standing.log_start_offset),
            left.left_ms,
        )
        for (group_id, committed), left in zip(
            standing.readers.items(), standing.times_left[1:], strict=False
        )
    )


async def group_losses(
    admin: Admin, group_id: str, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, GroupLoss]:
    """Return a group's losses by partition; an empty dict if the brokers are Kafka's.

    Partitions that do not exist or have no leader are left out.
    """
    found: dict[TopicPartition, GroupLoss] = {}
    names = sorted(committed)
    for first in range(0, len(names), _AT_ONCE):
        part = names[first : first + _AT_ONCE]
        asked = (admin.logs.retention(name, [committed[name]], group_id=group_id) for name in part)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for name, answer in zip(part, answers, strict=True):
            if isinstance(answer, RetentionStatus):
                found[name] = loss_of(answer, committed[name])
            elif isinstance(answer, UnsupportedByBroker):
                return {}
            elif not isinstance(answer, OttlaError):
                raise answer
    return found


def loss_of(standing: RetentionStatus, offset: int) -> GroupLoss:
    """Return the loss of a group with this committed offset; `standing` has one time, for it."""
    (left,) = standing.times_left
    deleted = max(0, standing.log_start_offset - offset)
    return GroupLoss(standing.log_start_offset, deleted, left.left_ms)


def in_words(left_ms: int) -> str:
    """Return `now` or `in 2 hours 5 minutes`; from one minute on, in whole minutes."""
    if not left_ms:
        return "now"
    if left_ms >= _MINUTE_MS:
        left_ms -= left_ms % _MINUTE_MS
    return f"in {span_words(left_ms)}"


@dataclass(frozen=True, slots=True)
class OffsetLoss:
    """Offsets that were lost for one reason. `at_ms` is -1 if the time is unknown."""

    term: str
    offsets: int
    cause: str
    at_ms: int


def losses(account: OffsetAccount) -> list[OffsetLoss]:
    """Return each loss in a ledger, in the order compacted, deleted, lost, replaced."""
    found = [
        OffsetLoss("compacted", one.count, _pass(one), one.at_ms) for one in account.compacted_by
    ]
    found += [
        OffsetLoss("deleted", count, f"{cause.words}, {one.start} to {one.end}", one.last_ms)
        for one in account.deleted_by
        for cause, count in one.counts.items()
    ]
    found += [
        OffsetLoss(
            "lost",
            one.end - one.start,
            f"election of epoch {one.leader_epoch}, {one.start} to {one.end}",
            one.at_ms,
        )
        for one in account.lost_by
    ]
    if account.replaced:
        cause = "lost offsets that are other records now, counted as those"
        found.append(OffsetLoss("replaced", account.replaced, cause, -1))
    return found


def _pass(one: CompactedBy) -> str:
    if one.number == 0:
        return "a leader, before this replica was copied from it"
    if one.number < 0:
        return "before the ledger was kept"
    if one.since < one.number:
        return f"passes {one.since} to {one.number}"
    return f"pass {one.number}"
