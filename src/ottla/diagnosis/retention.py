"""Explains when retention deletes records, which readers it waits for, and what is lost or gone."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import span_words
from ottla.client.admin import Admin
from ottla.client.admin.decisions import DecisionRecord
from ottla.client.admin.logs import RetentionStanding
from ottla.client.common.errors import UnsupportedByBroker
from ottla.client.common.offset_account import CompactedBy, OffsetAccount
from ottla.metadata.decisions import DecisionKind

_MINUTE_MS = 60_000
# Requests in flight at the same time.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """The records that a group lost to retention, and the time of the next deletion.

    `time_left_ms` None: nothing deletes it as the settings are; 0: it may go at any time.
    """

    log_start_offset: int
    deleted_unread: int
    time_left_ms: int | None

    @property
    def words(self) -> str | None:
        """`12 deleted unread, in 2 hours`; None if nothing is or will be lost."""
        words = [f"{self.deleted_unread} deleted unread"] if self.deleted_unread else []
        if self.time_left_ms is not None:
            words.append(in_words(self.time_left_ms))
        return ", ".join(words) or None


@dataclass(frozen=True, slots=True)
class ReaderStanding:
    """A group that retention waits for.

    `committed` is None if nothing is committed or it is unknown.
    """

    group_id: str
    committed: int | None
    unread: int
    time_left_ms: int | None


@dataclass(frozen=True, slots=True)
class RetentionDiagnosis:
    """The retention state of a partition, its readers, and their losses."""

    standing: RetentionStanding
    readers: tuple[ReaderStanding, ...]
    deleted_unread: tuple[DecisionRecord, ...]


async def retention_of(admin: Admin, name: TopicPartition) -> RetentionDiagnosis:
    """When records of `name` are deleted, and which groups delay that.

    Raises UnsupportedByBroker where the cluster is no Ottla.
    """
    first = await admin.logs.retention(name)
    offsets = [first.log_start_offset, *first.readers.values()]
    story = await admin.decisions.about(name)
    unread = tuple(one for one in story.records if one.kind == DecisionKind.DELETED_UNREAD)
    # The times are those for a reader that retention waits for, if there is one.
    reader = next(iter(first.readers), "")
    standing = await admin.logs.retention(name, offsets, group_id=reader)
    return RetentionDiagnosis(standing, readers_of(standing), unread)


def readers_of(standing: RetentionStanding) -> tuple[ReaderStanding, ...]:
    """The readers of a partition; `times_left` has the oldest record's time, then theirs.

    A reader that was added since the times were asked for has none, and is left out.
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
    """A group's losses by partition, and when it loses the next record; {} from Kafka's brokers.

    Partitions that are gone or have no leader are left out.
    """
    found: dict[TopicPartition, GroupLoss] = {}
    names = sorted(committed)
    for first in range(0, len(names), _AT_ONCE):
        part = names[first : first + _AT_ONCE]
        asked = (admin.logs.retention(name, [committed[name]], group_id=group_id) for name in part)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for name, answer in zip(part, answers, strict=True):
            if isinstance(answer, RetentionStanding):
                found[name] = loss_of(answer, committed[name])
            elif isinstance(answer, UnsupportedByBroker):
                return {}
            elif not isinstance(answer, OttlaError):
                raise answer
    return found


def loss_of(standing: RetentionStanding, offset: int) -> GroupLoss:
    """The loss of a group that has committed `offset`, the only one with a time in `standing`."""
    (left,) = standing.times_left
    deleted = max(0, standing.log_start_offset - offset)
    return GroupLoss(standing.log_start_offset, deleted, left.left_ms)


def in_words(left_ms: int) -> str:
    """`now`, or `in 2 hours 5 minutes`: in minutes at the finest, if it is more than one."""
    if not left_ms:
        return "now"
    if left_ms >= _MINUTE_MS:
        left_ms -= left_ms % _MINUTE_MS
    return f"in {span_words(left_ms)}"


@dataclass(frozen=True, slots=True)
class OffsetLoss:
    """Offsets lost to one cause. `at_ms` -1: the time is unknown."""

    term: str
    offsets: int
    cause: str
    at_ms: int


def losses(account: OffsetAccount) -> list[OffsetLoss]:
    """Each loss of offsets that the account names, by term: compacted, deleted, lost, replaced."""
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
