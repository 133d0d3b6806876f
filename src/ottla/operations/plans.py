"""Plans of replica placement: their changes and costs, and Kafka's file format. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import PartitionStanding, Reassignment

# The new replica list of each partition that changes, the preferred leader first.
Plan = Mapping[TopicPartition, Sequence[int]]
# The bytes of each partition's log by broker.
Sizes = Mapping[TopicPartition, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Move:
    """A partition of a plan: its old and new replicas, and the size of one."""

    name: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def copied_to(self) -> tuple[int, ...]:
        """Brokers that get a new replica."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.copied_to)


@dataclass(frozen=True, slots=True)
class MovePlan:
    """A plan, with the data of the partitions it moves."""

    plan: Plan
    moves: tuple[Move, ...]

    @property
    def copies(self) -> int:
        """The number of replicas to copy."""
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
        """Rounded down; None if there is nothing to copy."""
        return 100 * self.copied_bytes // self.total_bytes if self.total_bytes else None


def move_plan(plan: Plan, standings: Iterable[PartitionStanding], held: Sizes) -> MovePlan:
    """The changes of `plan`, from the partitions' state and log sizes."""
    before = {one.name: one.replicas for one in standings}
    return MovePlan(
        plan,
        tuple(
            Move(name, before[name], tuple(replicas), max(held.get(name, {}).values(), default=0))
            for name, replicas in plan.items()
        ),
    )


def progress_of(moves: Mapping[TopicPartition, Reassignment], held: Sizes) -> list[MoveProgress]:
    """The progress of each move, from the present log sizes."""
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
    """The plan in the form that kafka-reassign-partitions reads and writes."""
    return {
        "version": 1,
        "partitions": [
            {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
            for name, replicas in plan.items()
        ],
    }


def from_json(text: str, origin: str) -> Plan:
    """Parse a plan in that form. Raises OttlaError(INVALID_REQUEST) that names `origin`."""
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
    """The error for an invalid plan."""
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{origin} is no plan ({why}); write what `ottla partition plan … -o json` writes",
    )
