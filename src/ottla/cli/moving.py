"""Carries out plans of where replicas are to lie, a few partitions at a time, and tells how far.

What was begun goes on in the cluster by itself, whatever becomes of this command; who is asked
again sees what is still to do.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.consequences import size_words
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStanding, Reassignment

Plan = Mapping[TopicPartition, Sequence[int]]
Sizes = dict[TopicPartition, dict[int, int]]
Tell = Callable[[str], None]

PLAN_COLUMNS = ["partition", "from", "to", "copied_to", "size"]
at_once = click.option(
    "--at-once",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many partitions move at a time.",
)
_POLL_S = 0.25
# How often a leader is looked for after its election before what is seen is told.
_LOOKS = 40


async def sizes(admin: Admin) -> Sizes:
    """Bytes of each partition's log by broker; brokers that are down tell none."""
    found: Sizes = {}
    for folder in await admin.logs.directories():
        for name, size in folder.partition_bytes.items():
            found.setdefault(name, {})[folder.broker_id] = size
    return found


def plan_rows(
    plan: Plan, standings: Iterable[PartitionStanding], held: Sizes
) -> list[dict[str, Any]]:
    """A row per partition of the plan: where it lies, where it shall, what has to be copied."""
    before = {one.name: one.replicas for one in standings}
    rows: list[dict[str, Any]] = []
    for name, replicas in plan.items():
        new = [broker for broker in replicas if broker not in before[name]]
        size = max(held.get(name, {}).values(), default=0)
        rows.append(
            {
                "partition": str(name),
                "from": list(before[name]),
                "to": list(replicas),
                "copied_to": new,
                "bytes": size * len(new),
                "size": size_words(size * len(new)) if new else None,
            }
        )
    return rows


def plan_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows come to."""
    copied = sum(len(row["copied_to"]) for row in rows)
    total = size_words(sum(row["bytes"] for row in rows))
    noun = "partition changes" if len(rows) == 1 else "partitions change"
    if not copied:
        return f"{len(rows):,} {noun}, and nothing is copied"
    replicas = "1 replica is" if copied == 1 else f"{copied:,} replicas are"
    return f"{len(rows):,} {noun}, {replicas} copied, {total} in all"


def plan_text(plan: Plan) -> dict[str, Any]:
    """The plan as Kafka's kafka-reassign-partitions reads and writes it."""
    return {
        "version": 1,
        "partitions": [
            {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
            for name, replicas in plan.items()
        ],
    }


def read_plan(path: Path) -> Plan:
    """A plan from a file in that form. Raises OttlaError."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["partitions"]
        plan = {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): tuple(
                int(broker) for broker in entry["replicas"]
            )
            for entry in entries
        }
    except OSError as error:
        raise _bad_plan(path, error.strerror or "it cannot be read") from None
    except (ValueError, KeyError, TypeError) as error:
        raise _bad_plan(path, f"{type(error).__name__} {error}") from None
    if len(plan) < len(entries):
        raise _bad_plan(path, "it names a partition twice")
    if not plan:
        raise _bad_plan(path, "it names no partition")
    return plan


def _bad_plan(path: Path, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{path} is no plan ({why}); write what `ottla partition plan … -o json` writes",
    )


async def begin(admin: Admin, plan: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begin the moves, or cancel them for None. Raises the first refusal, when all are asked."""
    refusals = [
        error for error in (await admin.partitions.reassign(plan)).values() if error is not None
    ]
    if refusals:
        raise refusals[0]


async def carry_out(admin: Admin, plan: Plan, tell: Tell, at_once: int) -> None:
    """Move all of `plan`, `at_once` partitions at a time, and let the first replicas lead.

    Raises the first refusal; what was begun by then goes on.
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
            tell(f"{done:,} of {len(plan):,} are where they shall be")
        elif moving:
            await asyncio.sleep(_POLL_S)


async def lead_first(admin: Admin, names: Sequence[TopicPartition]) -> None:
    """Elect the first replica of each as leader where it is not, and can be."""
    outcomes = await admin.partitions.elect_leaders(ElectionKind.PREFERRED, names)
    for error in outcomes.values():
        if error is not None and error.code not in (
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ):
            raise error


async def wait(admin: Admin, names: Iterable[TopicPartition] | None, tell: Tell) -> None:
    """Return when none of `names` (None: nothing) moves any more; tell how far it is."""
    wanted = None if names is None else list(names)
    before = ""
    while moves := await admin.partitions.reassignments(wanted):
        told = _left(status_rows(moves, await sizes(admin)))
        if told != before:
            tell(told)
            before = told
        await asyncio.sleep(_POLL_S)


def status_rows(moves: Mapping[TopicPartition, Reassignment], held: Sizes) -> list[dict[str, Any]]:
    """A row per move: who comes, who goes, and how much is copied."""
    rows: list[dict[str, Any]] = []
    for name, move in sorted(moves.items()):
        size = max(held.get(name, {}).values(), default=0)
        there = [min(held.get(name, {}).get(broker, 0), size) for broker in move.adding]
        total = size * len(there)
        rows.append(
            {
                "partition": str(name),
                "to": list(move.target),
                "coming": list(move.adding),
                "going": list(move.removing),
                "copied": f"{100 * sum(there) // total} %" if total else None,
                "bytes_left": total - sum(there),
            }
        )
    return rows


def _left(rows: Sequence[Mapping[str, Any]]) -> str:
    left = size_words(sum(row["bytes_left"] for row in rows))
    return (
        f"{len(rows):,} {'partition moves' if len(rows) == 1 else 'partitions move'}, {left} to go"
    )


async def leaders_seen(
    admin: Admin, names: Sequence[TopicPartition], wanted: Callable[[PartitionStanding], bool]
) -> dict[TopicPartition, PartitionStanding]:
    """How `names` stand once `wanted` holds of all, or after some seconds."""
    topics = sorted({name.topic for name in names})
    for attempt in range(_LOOKS):
        every = {one.name: one for one in await admin.partitions.standings(topics)}
        found = {name: every[name] for name in names if name in every}
        if all(wanted(one) for one in found.values()) or attempt == _LOOKS - 1:
            break
        await asyncio.sleep(_POLL_S)
    return found


def teller(form: str) -> Tell:
    """Where progress goes: to people on standard error, and nowhere where programs read."""
    return _to_stderr if form == "table" else _nowhere


def _to_stderr(text: str) -> None:
    click.echo(text, err=True)


def _nowhere(_text: str) -> None:
    """Nobody is told."""
