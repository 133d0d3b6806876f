"""Says what is wrong with a group of any client, the worst first, each with its remedy."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted, iso, span_words
from ottla.client.admin import Admin
from ottla.client.admin.clients import ClientDelays, ClientFailure, ClientUse
from ottla.client.admin.groups import SHARE, GroupDescription
from ottla.client.common.errors import UnsupportedByBroker
from ottla.diagnosis.clients import failure_words
from ottla.diagnosis.groups import GroupPosition, listed_group, positions, total_lag
from ottla.diagnosis.rebalances import first_cause
from ottla.diagnosis.retention import in_words
from ottla.diagnosis.transactions import BlockingTransaction, blocking_transactions
from ottla.wire.messages.decisions import DescribedRebalance

# A member that has not fetched a topic for so long is stuck; clients wait for half a second.
_SILENT_MS = 60_000
_SOON_MS = 3_600_000
_LATELY_MS = 600_000
_OFTEN = 5


class GroupSeverity(IntEnum):
    """How bad a finding is; the worst is the first."""

    LOSING = 0
    STUCK = 1
    DISTURBED = 2
    NOTE = 3


@dataclass(frozen=True, slots=True)
class GroupTrouble:
    """Something that is wrong with a group, and what helps."""

    severity: GroupSeverity
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """A group's state and lag, and what is wrong with it, the worst first."""

    group: GroupDescription
    lag: int | None
    positions: tuple[GroupPosition, ...]
    troubles: tuple[GroupTrouble, ...]


async def group_troubles(admin: Admin, group_id: str, now_ms: int) -> GroupDiagnosis:
    """Examine a group. Kafka's brokers report less: no failures, no last fetches, no rebalances.

    Raises OttlaError GROUP_ID_NOT_FOUND, naming a similar group, and INVALID_GROUP_ID for a share
    group.
    """
    listing = await listed_group(admin, group_id)
    if listing.kind.lower() == SHARE:
        raise OttlaError(
            ErrorCode.INVALID_GROUP_ID,
            f"{group_id} is a share group: `ottla group describe {group_id}` and `ottla dlq list` "
            "show its state",
        )
    group = await admin.groups.describe(group_id)
    found = await positions(admin, group)
    topics = sorted({one.name.topic for one in found})
    is_lagging = any(one.lag for one in found)
    blocking = await blocking_transactions(admin, topics) if is_lagging else []
    delays = _NO_DELAYS
    uses: tuple[ClientUse, ...] = ()
    rebalances: list[DescribedRebalance] = []
    with contextlib.suppress(UnsupportedByBroker):
        delays = await admin.clients.delays({one.client_id for one in group.members})
        uses = (await admin.clients.usage(topics)).uses
        rebalances = [one for _, one in (await admin.rebalances.describe(group_id)).rebalances]
    lag = total_lag(one.lag for one in found)
    troubles = judged(group, found, blocking, delays, uses, rebalances, now_ms)
    return GroupDiagnosis(group, lag, tuple(found), troubles)


_NO_DELAYS: Final = ClientDelays((), (), (), {})


def judged(
    group: GroupDescription,
    found: Sequence[GroupPosition],
    blocking: Iterable[BlockingTransaction],
    delays: ClientDelays,
    uses: Iterable[ClientUse],
    rebalances: Sequence[DescribedRebalance],
    now_ms: int,
) -> tuple[GroupTrouble, ...]:
    """Return what is wrong with a group, the worst first."""
    group_id = group.group_id
    troubles = [
        *_of_state(group, found),
        *_of_positions(group_id, found),
        *_of_transactions(group_id, blocking),
        *_of_failures(group_id, delays, now_ms),
        *_of_members(group, uses, now_ms),
        *_of_rebalances(group_id, rebalances, now_ms),
    ]
    return tuple(sorted(troubles, key=lambda one: one.severity))


def _of_state(group: GroupDescription, found: Sequence[GroupPosition]) -> Iterator[GroupTrouble]:
    if group.state == "Empty":
        behind = total_lag(one.lag for one in found) or 0
        if behind:
            yield GroupTrouble(
                GroupSeverity.STUCK,
                f"it has no members, and {counted(behind, 'record')} to read",
                "start its consumers; if they run, `ottla why rebalance "
                f"{group.group_id}` says why they left",
            )
    elif "Rebalance" in group.state:
        yield GroupTrouble(
            GroupSeverity.DISTURBED,
            f"it rebalances now ({group.state}): its members wait for each other",
            f"`ottla why rebalance {group.group_id}` names the member that it waits for",
        )


def _of_positions(group_id: str, found: Iterable[GroupPosition]) -> Iterator[GroupTrouble]:
    for one in found:
        loss, name = one.loss, one.name
        if one.end_offset is None:
            yield GroupTrouble(
                GroupSeverity.STUCK,
                f"{name} has no leader, or does not exist",
                f"`ottla why leader {name}`",
            )
        if loss is not None and loss.deleted_unread:
            yield GroupTrouble(
                GroupSeverity.LOSING,
                f"{counted(loss.deleted_unread, 'record')} of {name} were deleted before it had "
                "read them",
                f"`ottla why retention {name}`; raise retention.ms, or name the group in "
                "ottla.retention.hold.groups",
            )
        elif (
            loss is not None
            and loss.time_left_ms is not None
            and loss.time_left_ms <= _SOON_MS
            and one.lag
        ):
            yield GroupTrouble(
                GroupSeverity.LOSING,
                f"its next record of {name} is deleted {in_words(loss.time_left_ms)}, and it "
                f"has {counted(one.lag, 'record')} to read",
                f"`ottla config set topic {name.topic} "
                f"ottla.retention.hold.groups={group_id}` makes retention wait",
            )
        if one.beyond_end:
            yield GroupTrouble(
                GroupSeverity.STUCK,
                f"its committed offset {one.committed} of {name} is {one.beyond_end} beyond the "
                "end of the log",
                f"`ottla group reset {group_id} --to-latest --topic {name.topic}:{name.partition}`",
            )
        if one.owner is not None and one.committed is None and one.end_offset:
            yield GroupTrouble(
                GroupSeverity.NOTE,
                f"client {one.owner.client_id} reads {name} and has not committed any offset",
                "look at its enable.auto.commit, or at its calls of commit; after a restart it "
                "begins where auto.offset.reset says",
            )


def _of_transactions(
    group_id: str, blocking: Iterable[BlockingTransaction]
) -> Iterator[GroupTrouble]:
    for one in blocking:
        if group_id in one.groups:
            yield GroupTrouble(
                GroupSeverity.STUCK,
                f"a transaction in {one.opened.partition}, open since {iso(one.since_ms)}, hides "
                f"{counted(one.held_back, 'offset')} from read_committed consumers",
                one.remedy,
            )


def _of_failures(group_id: str, delays: ClientDelays, now_ms: int) -> Iterator[GroupTrouble]:
    for one in delays.failures:
        if now_ms - one.last_ms > _LATELY_MS or one.code in _USUAL:
            continue
        yield GroupTrouble(
            GroupSeverity.STUCK if one.code in _STUCK else GroupSeverity.NOTE,
            f"client {one.client_id}: {failure_words(one)}; since {iso(one.first_ms)}",
            _remedy(group_id, one),
        )


# Errors that clients get in usual times and handle by themselves.
_USUAL = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
_DENIED = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED})
_STUCK = _DENIED | {ErrorCode.OFFSET_OUT_OF_RANGE}


def _remedy(group_id: str, one: ClientFailure) -> str:
    if one.code is ErrorCode.OFFSET_OUT_OF_RANGE and one.place is not None:
        place = f"{one.place.topic}:{one.place.partition}"
        return (
            "set its auto.offset.reset, or stop it and "
            f"`ottla group reset {group_id} --to-earliest --topic {place}`"
        )
    if one.code in _DENIED:
        return "`ottla acl explain` names the rule that is missing"
    return f"`ottla why slow --client-id {one.client_id}` shows all its failures"


def _of_members(
    group: GroupDescription, uses: Iterable[ClientUse], now_ms: int
) -> Iterator[GroupTrouble]:
    last_ms: dict[tuple[str, str], int] = {}
    for use in uses:
        if use.direction == "fetch":
            key = (use.topic, use.client_id)
            last_ms[key] = max(use.last_ms, last_ms.get(key, -1))
    for member in group.members:
        for topic in sorted({name.topic for name in member.partitions}):
            fetched_ms = last_ms.get((topic, member.client_id))
            if fetched_ms is not None and now_ms - fetched_ms > _SILENT_MS:
                yield GroupTrouble(
                    GroupSeverity.STUCK,
                    f"client {member.client_id} at {member.host.removeprefix('/')} owns "
                    f"partitions of {topic}, and has not fetched since {iso(fetched_ms)}",
                    "its process hangs between two polls, or has paused them: look at its stack",
                )


def _of_rebalances(
    group_id: str, rebalances: Sequence[DescribedRebalance], now_ms: int
) -> Iterator[GroupTrouble]:
    lately = [one for one in rebalances if now_ms - one.began_ms <= _LATELY_MS]
    if len(lately) >= _OFTEN:
        cause = first_cause(lately[-1])
        yield GroupTrouble(
            GroupSeverity.DISTURBED,
            f"it rebalanced {len(lately)} times in {span_words(_LATELY_MS)}"
            + (f", last because {cause}" if cause else ""),
            f"`ottla why rebalance {group_id}`",
        )
