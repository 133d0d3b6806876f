"""Laws of one client: what it reads and writes goes forward, without gaps."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from verify.history.anomaly import Anomaly
from verify.history.evidence import Evidence
from verify.history.operation import Operation, Step

# After these a client may read on from anywhere.
_JUMPS = frozenset({"assign", "seek", "subscribe"})


def poll_order(evidence: Evidence) -> Iterator[Anomaly]:
    """Between polls a consumer goes back, or leaves out what is there (also within one)."""
    known = {name: sorted(found.values) for name, found in evidence.partitions.items()}
    positions: dict[str, dict[str, int]] = {}
    subscribed: set[str] = set()
    for operation in sorted(evidence.operations, key=_end):
        if operation.f in _JUMPS:
            positions[operation.process] = {}
            if operation.f == "subscribe":
                subscribed.add(operation.process)
        elif operation.f in ("poll", "txn") and operation.outcome == "ok":
            mine = positions.setdefault(operation.process, {})
            inside: dict[str, int] = {}
            for step in operation.polls:
                assert step.offset is not None
                yield from _follows(step, inside, known, operation, "int-")
                if step.partition not in inside and operation.process not in subscribed:
                    yield from _follows(step, mine, known, operation, "")
                inside[step.partition] = step.offset
            mine.update(inside)


def _end(operation: Operation) -> float:
    return operation.end_s


def _follows(
    step: Step,
    positions: dict[str, int],
    known: dict[str, list[int]],
    operation: Operation,
    prefix: str,
) -> Iterator[Anomaly]:
    before = positions.get(step.partition)
    offset = step.offset
    if before is None or offset is None:
        return
    if offset <= before:
        told = f"{operation.process} read {offset} after {before}"
        yield Anomaly(f"{prefix}nonmonotonic-poll", step.partition, told)
        return
    offsets = known[step.partition]
    skipped = offsets[bisect_left(offsets, before + 1) : bisect_left(offsets, offset)]
    if skipped:
        told = f"{operation.process} read {offset} after {before}, not {skipped[0]}"
        yield Anomaly(f"{prefix}poll-skip", step.partition, told)


def send_order(evidence: Evidence) -> Iterator[Anomaly]:
    """A producer's writes stand in another order than it made them."""
    last: dict[tuple[str, str], int] = {}
    for operation in evidence.operations:
        if operation.outcome != "ok" or operation.acks != -1 or not operation.idempotent:
            continue
        inside: dict[str, int] = {}
        for step in operation.sends:
            if step.offset is None:
                continue
            yield from _rises(step, inside.get(step.partition), operation, "int-")
            key = (operation.process, step.partition)
            if step.partition not in inside:
                yield from _rises(step, last.get(key), operation, "")
            inside[step.partition] = last[key] = step.offset


def _rises(step: Step, before: int | None, operation: Operation, prefix: str) -> Iterator[Anomaly]:
    if before is None or step.offset is None:
        return
    if step.offset <= before:
        told = f"{operation.process} wrote {step.value!r} at {step.offset} after {before}"
        yield Anomaly(f"{prefix}nonmonotonic-send", step.partition, told)
    elif step.offset > before + 1 and prefix:
        told = f"{operation.process} wrote at {before}, then at {step.offset}"
        yield Anomaly("int-send-skip", step.partition, told)


def commits(operations: Iterable[Operation]) -> Iterator[Anomaly]:
    """A group's committed offset, asked for after a commit was acknowledged, is below it."""
    moments: list[tuple[float, int, int, Operation]] = []
    for number, operation in enumerate(operations):
        if operation.outcome == "ok" and operation.f == "commit":
            moments.append((operation.end_s, 0, number, operation))
        elif operation.outcome == "ok" and operation.f == "committed":
            moments.append((operation.begin_s, 1, number, operation))
    highest: dict[tuple[str, str], int] = {}
    for _, kind, _, operation in sorted(moments, key=lambda moment: moment[:3]):
        for name, offset in operation.offsets.items():
            key = (operation.group, name)
            if kind == 0:
                highest[key] = max(offset, highest.get(key, -1))
            elif offset < highest.get(key, -1):
                told = f"{operation.process} was told {offset}, after {highest[key]}"
                yield Anomaly("lost-commit", name, f"group {operation.group}: {told} was committed")
