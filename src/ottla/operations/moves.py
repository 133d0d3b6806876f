"""Carries out plans of replica placement, a few partitions at a time.

A move that has begun goes on in the cluster even when the caller stops waiting for it; a plan made
anew then holds what is still to do.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStanding
from ottla.operations.plans import MoveProgress, Plan, progress_of

# Called with (finished partitions, partitions of the plan).
OnDone = Callable[[int, int], None]
# Called with the moves in progress.
OnProgress = Callable[[list[MoveProgress]], None]

_POLL_S = 0.25
# How often partitions are polled after an election until they have the elected leader.
_LOOKS = 40


async def sizes(admin: Admin) -> dict[TopicPartition, dict[int, int]]:
    """The bytes of each partition's log by live broker."""
    found: dict[TopicPartition, dict[int, int]] = {}
    for folder in await admin.logs.directories():
        for name, size in folder.partition_bytes.items():
            found.setdefault(name, {})[folder.broker_id] = size
    return found


async def begin(admin: Admin, plan: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begin the moves, or cancel those with None.

    Raises the first refusal, after all were requested.
    """
    refusals = [
        error for error in (await admin.partitions.reassign(plan)).values() if error is not None
    ]
    if refusals:
        raise refusals[0]


async def cancel(admin: Admin, names: Iterable[TopicPartition] | None) -> list[TopicPartition]:
    """Cancel the moves of `names` (None: all) in progress; return the partitions concerned."""
    wanted = None if names is None else list(names)
    moves = sorted(await admin.partitions.reassignments(wanted))
    if moves:
        await begin(admin, dict.fromkeys(moves))
    return moves


async def carry_out(admin: Admin, plan: Plan, at_once: int, on_done: OnDone) -> None:
    """Carry out `plan`, `at_once` partitions at a time, and elect the first replicas.

    Raises the first refusal; moves that had begun by then go on.
    """
    waiting = list(plan)
    done = 0
    moving: set[TopicPartition] = set()
    while waiting or moving:
        started, waiting = waiting[: at_once - len(moving)], waiting[at_once - len(moving) :]
        if started:
            await begin(admin, {name: plan[name] for name in started})
            moving |= set(started)
        under_way = await admin.partitions.reassignments(moving)
        ended = moving - set(under_way)
        moving -= ended
        done += len(ended)
        if ended:
            await lead_first(admin, sorted(ended))
            on_done(done, len(plan))
        elif moving:
            await asyncio.sleep(_POLL_S)


async def lead_first(admin: Admin, names: Sequence[TopicPartition]) -> None:
    """Elect the first replica of each partition as leader, if it is not and can be."""
    outcomes = await admin.partitions.elect_leaders(ElectionKind.PREFERRED, names)
    for error in outcomes.values():
        if error is not None and error.code not in (
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ):
            raise error


async def wait(
    admin: Admin, names: Iterable[TopicPartition] | None, on_progress: OnProgress
) -> None:
    """Wait until none of `names` (None: all partitions) is moving."""
    wanted = None if names is None else list(names)
    while moves := await admin.partitions.reassignments(wanted):
        on_progress(progress_of(moves, await sizes(admin)))
        await asyncio.sleep(_POLL_S)


async def under_way(admin: Admin, names: Iterable[TopicPartition] | None) -> list[MoveProgress]:
    """The progress of the moves of `names` (None: all partitions)."""
    moves = await admin.partitions.reassignments(None if names is None else list(names))
    return progress_of(moves, await sizes(admin)) if moves else []


async def leaders_seen(
    admin: Admin, names: Sequence[TopicPartition], wanted: Callable[[PartitionStanding], bool]
) -> dict[TopicPartition, PartitionStanding]:
    """The state of `names` once all have the `wanted` leader, or after some seconds."""
    topics = sorted({name.topic for name in names})
    for attempt in range(_LOOKS):
        every = {one.name: one for one in await admin.partitions.standings(topics)}
        found = {name: every[name] for name in names if name in every}
        if all(wanted(one) for one in found.values()) or attempt == _LOOKS - 1:
            break
        await asyncio.sleep(_POLL_S)
    return found
