"""Formats plans of moves and their progress, for people and for programs."""

from collections.abc import Sequence
from typing import Any

import click

from ottla.base.quantities import counted, size_words
from ottla.operations.moves import Move, MovePlan, MoveProgress, OnDone, OnProgress

COLUMNS = ["partition", "from", "to", "copied_to", "size"]
STATUS_COLUMNS = ["partition", "to", "coming", "going", "copied", "bytes_left"]


def plan_rows(plan: MovePlan) -> list[dict[str, Any]]:
    """Return a row for each partition of the plan: old and new replicas, and bytes to copy."""
    return [_row(move) for move in plan.moves]


def plan_sentence(plan: MovePlan) -> str:
    """Return a sentence with the plan's changes and bytes to copy."""
    count = len(plan.moves)
    changes = f"{count:,} {'partition changes' if count == 1 else 'partitions change'}"
    if not plan.copies:
        return f"{changes}, and nothing is copied"
    replicas = f"{counted(plan.copies, 'replica')} {'is' if plan.copies == 1 else 'are'}"
    return f"{changes}, {replicas} copied, {size_words(plan.copied_bytes)} in all"


def status_rows(moves: Sequence[MoveProgress]) -> list[dict[str, Any]]:
    """Return a row for each move: added and removed replicas, and copied bytes."""
    return [
        {
            "partition": str(move.name),
            "to": list(move.target),
            "coming": list(move.adding),
            "going": list(move.removing),
            "copied": None if move.copied_percent is None else f"{move.copied_percent} %",
            "bytes_left": move.left_bytes,
        }
        for move in moves
    ]


def on_done(form: str) -> OnDone:
    """Return a callback that shows people, not programs, how many partitions are finished."""

    def shown(done: int, total: int) -> None:
        if form == "table":
            click.echo(f"{done:,} of {total:,} are where they shall be", err=True)

    return shown


def on_progress(form: str) -> OnProgress:
    """Return a callback that shows people, not programs, how many bytes are still to copy."""
    before: list[str] = []

    def shown(moves: list[MoveProgress]) -> None:
        words = _left(moves)
        if form == "table" and before[-1:] != [words]:
            click.echo(words, err=True)
            before.append(words)

    return shown


def _row(move: Move) -> dict[str, Any]:
    return {
        "partition": str(move.name),
        "from": list(move.before),
        "to": list(move.after),
        "copied_to": list(move.copied_to),
        "bytes": move.copied_bytes,
        "size": size_words(move.copied_bytes) if move.copied_to else None,
    }


def _left(moves: Sequence[MoveProgress]) -> str:
    left = size_words(sum(move.left_bytes for move in moves))
    noun = "partition moves" if len(moves) == 1 else "partitions move"
    return f"{len(moves):,} {noun}, {left} to go"
