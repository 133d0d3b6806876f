"""One thing a client did: when it began and ended, how, and what it wrote and read.

A line of a history is a JSON object. `type` is `invoke`, or how that ended: `ok`, `fail` (it has
certainly not happened), `info` (not known). `process` does one operation at a time per `op`;
`f` says what it does; `t` is in seconds. `steps` are `["send", partition, offset or null, value]`
and `["poll", partition, offset, value]`, in their order.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Outcome = Literal["ok", "fail", "info"]

# The end of an operation that was never answered.
NEVER = float("inf")


class Step(NamedTuple):
    """One record sent or read. `partition` is `topic-number`; the offset None if not known."""

    f: Literal["send", "poll"]
    partition: str
    offset: int | None
    value: str


@dataclass(slots=True)
class Operation:
    """An invocation with its end.

    `f` is `send`, `poll`, `txn` (both, all or nothing), `assign`, `subscribe`, `seek`, `commit`,
    `committed` (asks what is), `end` (asks for the high watermark), `final` (reads it all, at
    the end). `offsets` by partition belong to the last six.
    """

    process: str
    f: str
    begin_s: float
    end_s: float = NEVER
    outcome: Outcome = "info"
    steps: list[Step] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    # -1 is all; with fewer, what was acknowledged may be lost.
    acks: int = -1
    idempotent: bool = True
    # Whether it reads only what is committed.
    committed: bool = True
    group: str = ""

    @property
    def sends(self) -> Iterator[Step]:
        return (step for step in self.steps if step.f == "send")

    @property
    def polls(self) -> Iterator[Step]:
        return (step for step in self.steps if step.f == "poll")


def to_line(fields: dict[str, Any]) -> str:
    """One line of a history."""
    return json.dumps(fields, separators=(",", ":"))


def from_lines(lines: Iterable[str]) -> list[Operation]:
    """Pair invocations with their ends. Operations are in the order of their invocations."""
    operations: list[Operation] = []
    open_ones: dict[tuple[str, int], Operation] = {}
    for line in lines:
        if not line.strip():
            continue
        fields: dict[str, Any] = json.loads(line)
        key = (fields["process"], fields.get("op", 0))
        if fields["type"] == "invoke":
            operation = Operation(fields["process"], fields["f"], fields["t"])
            open_ones[key] = operation
            operations.append(operation)
        else:
            operation = open_ones.pop(key)
            operation.end_s = fields["t"]
            operation.outcome = fields["type"]
        _take(operation, fields)
    return operations


def _take(operation: Operation, fields: dict[str, Any]) -> None:
    if "steps" in fields:
        operation.steps = [Step(*step) for step in fields["steps"]]
    operation.offsets = fields.get("offsets", operation.offsets)
    operation.acks = fields.get("acks", operation.acks)
    operation.idempotent = fields.get("idempotent", operation.idempotent)
    operation.committed = fields.get("committed", operation.committed)
    operation.group = fields.get("group", operation.group)
