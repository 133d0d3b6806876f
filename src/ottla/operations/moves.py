"""Plans of replica placement in Kafka's file format, carried out a few partitions at a time.

Moves that have begun continue in the cluster when the caller stops waiting. A new plan then has
only the moves that are still to do.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStatus, Reassignment

# The new replica list of each partition that changes, the preferred leader first.
Plan = Mapping[TopicPartition, Sequence[int]]
# The bytes of each partition's log by broker.
Sizes = Mapping[TopicPartition, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Move:
    """A partition's move: its old and new replicas, and the size of one replica."""

    name: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def copied_to(self) -> tuple[int, ...]:
        """Return the brokers that get a new replica."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.copied_to)


@dataclass(frozen=True, slots=True)
class MovePlan:
    """A plan, with the sizes of the partitions that it moves."""

    plan: Plan
    moves: tuple[Move, ...]

    @property
    def copies(self) -> int:
        """Return the number of replicas to copy."""
        return sum(len(move.copied_to) for move in self.moves)

    @property
    def copied_bytes(self) -> int:
        return sum(move.copied_bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """A reassignment in progress: `copied_bytes` of `total_bytes` are on the `adding` brokers."""

    name: TopicPartition
    target: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied_bytes: int
    total_bytes: int

    @property
    def left_bytes(self) -> int:
        return self.total_bytes - self.copied_bytes

    @property
    def copied_percent(self) -> int | None:
        """Return the percentage, rounded down; None if there is nothing to copy."""
        return 100 * self.copied_bytes // self.total_bytes if self.total_bytes else None


def move_plan(plan: Plan, standings: Iterable[PartitionStatus], held: Sizes) -> MovePlan:
    """Return the moves that `plan` requires, by the partitions' states and log sizes."""
    before = {one.name: one.replicas for one in standings}
    return MovePlan(
        plan,
        tuple(
            Move(name, before[name], tuple(replicas), max(held.get(name, {}).values(), default=0))
            for name, replicas in plan.items()
        ),
    )


def progress_of(moves: Mapping[TopicPartition, Reassignment], held: Sizes) -> list[MoveProgress]:
    """Return the progress of each move, by the present log sizes."""
    found: list[MoveProgress] = []
    for name, move in sorted(moves.items()):
        sizes = held.get(name, {})
        whole = max(sizes.values(), default=0)
        copied = sum(min(sizes.get(broker, 0), whole) for broker in move.adding)
        total = whole * len(move.adding)
        found.append(
            MoveProgress(
                name,
                tuple(move.target),
                tuple(move.adding),
                tuple(move.removing),
                copied,
                total,
            )
        )
    return found


def to_json(plan: Plan) -> dict[str, Any]:
    """Convert a plan to the JSON that kafka-reassign-partitions reads and writes."""
    return {
        "version": 1,
        "partitions": [
            {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
            for name, replicas in plan.items()
        ],
    }


def from_json(text: str, origin: str) -> Plan:
    """Parse a plan in that format. Raises OttlaError(INVALID_REQUEST), which names `origin`."""
    try:
        entries = json.loads(text)["partitions"]
        plan = {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): tuple(
                int(broker) for broker in entry["replicas"]
            )
            for entry in entries
        }
    except (ValueError, KeyError, TypeError) as error:
        raise bad_plan(origin, f"{type(error).__name__} {error}") from None
    if len(plan) < len(entries):
        raise bad_plan(origin, "it names a partition twice")
    if not plan:
        raise bad_plan(origin, "it names no partition")
    return plan


def bad_plan(origin: str, why: str) -> OttlaError:
    """Return the error for an invalid plan."""
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{origin} is no plan ({why}); write what `ottla partition plan … -o json` writes",
    )


# Called with (finished partitions, partitions of the plan).
OnDone = Callable[[int, int], None]
# Called with the moves in progress.
OnProgress = Callable[[list[MoveProgress]], None]

_POLL_S = 0.25
# How often the metadata is polled for the elected leaders.
_LOOKS = 40


async def sizes(admin: Admin) -> dict[TopicPartition, dict[int, int]]:
    """Return the bytes of each partition's log by live broker."""
    found: dict[TopicPartition, dict[int, int]] = {}
    for folder in await admin.logs.directories():
        for name, size in folder.partition_bytes.items():
            found.setdefault(name, {})[folder.broker_id] = size
    return found


async def begin(admin: Admin, plan: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begin moves; for None, cancel the partition's move.

    All are requested; then the first refusal is raised.
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
    """Move `at_once` partitions of `plan` at a time, then elect their first replicas.

    Raises the first refusal; moves that have begun by then continue.
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
    """Elect the first replica of each partition, if it is in sync and not the leader."""
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
    """Return the progress of the moves of `names` (None: of all partitions)."""
    moves = await admin.partitions.reassignments(None if names is None else list(names))
    return progress_of(moves, await sizes(admin)) if moves else []


async def leaders_seen(
    admin: Admin, names: Sequence[TopicPartition], wanted: Callable[[PartitionStatus], bool]
) -> dict[TopicPartition, PartitionStatus]:
    """Wait until all of `names` have the `wanted` leader, or some seconds; return their states."""
    topics = sorted({name.topic for name in names})
    for attempt in range(_LOOKS):
        every = {one.name: one for one in await admin.partitions.describe(topics)}
        found = {name: every[name] for name in names if name in every}
        if all(wanted(one) for one in found.values()) or attempt == _LOOKS - 1:
            break
        await asyncio.sleep(_POLL_S)
    return found
