"""Laws of a log: an offset holds one value, for ever, and what was acknowledged stays."""

from collections.abc import Iterator

from verify.history.anomaly import Anomaly
from verify.history.evidence import Evidence, PartitionEvidence
from verify.history.operation import Operation, Step


def inconsistent_offsets(evidence: Evidence) -> Iterator[Anomaly]:
    """Two values were seen at one offset."""
    for partition in evidence.partitions.values():
        for offset, values in partition.values.items():
            if len(values) > 1:
                told = ", ".join(f"{value!r} by {op.process}" for value, op in values.items())
                yield Anomaly("inconsistent-offsets", partition.name, f"offset {offset}: {told}")


def duplicates(evidence: Evidence) -> Iterator[Anomaly]:
    """A value that an idempotent producer sent once stands at two offsets."""
    for partition in evidence.partitions.values():
        for value, offsets in partition.offsets.items():
            sender = evidence.senders.get(value)
            if len(offsets) > 1 and (sender is None or sender.idempotent):
                where = ", ".join(map(str, sorted(offsets)))
                yield Anomaly("duplicate", partition.name, f"{value!r} at offsets {where}")


def lost_writes(evidence: Evidence) -> Iterator[Anomaly]:
    """Acknowledged, and not there although what comes after it is (or all was read)."""
    for operation in evidence.operations:
        if operation.outcome != "ok" or operation.acks != -1:
            continue
        for step in operation.sends:
            anomaly = _fate(evidence.partition(step.partition), step, operation)
            if anomaly is not None:
                yield anomaly


def _fate(partition: PartitionEvidence, step: Step, operation: Operation) -> Anomaly | None:
    offset = step.offset
    if offset is None:
        return None
    told = f"{step.value!r}, acknowledged to {operation.process} at offset {offset}"
    if partition.final is not None:
        found = partition.final.get(offset)
        if offset < partition.final_begin or found == step.value:
            return None
        why = "is not there" if found is None else f"gave way to {found!r}"
        return Anomaly("lost-write", partition.name, f"{told}, {why} in the end")
    if partition.read.get(offset) is not None:
        return None
    highest = max(partition.read, default=-1)
    if offset <= highest:
        return Anomaly("lost-write", partition.name, f"{told}: read up to {highest}, never it")
    return Anomaly("unseen", partition.name, f"{told}, was never read")


def aborted_reads(evidence: Evidence) -> Iterator[Anomaly]:
    """A consumer read a value whose write has failed for certain (G1a)."""
    for operation in evidence.operations:
        if not operation.committed:
            continue
        for step in operation.polls:
            sender = evidence.senders.get(step.value)
            if sender is not None and sender.outcome == "fail":
                told = f"{operation.process} read {step.value!r}, which {sender.process} gave up"
                yield Anomaly("G1a", step.partition, f"{told} (offset {step.offset})")


def unknown_values(evidence: Evidence) -> Iterator[Anomaly]:
    """A consumer read a value that no producer sent, or sent to another partition."""
    told: set[tuple[str, int]] = set()
    for operation in evidence.operations:
        for step in operation.polls:
            if step.value in evidence.senders or (step.partition, step.offset) in told:
                continue
            assert step.offset is not None
            told.add((step.partition, step.offset))
            what = f"{operation.process} read {step.value!r} at {step.offset}, which nobody sent"
            yield Anomaly("unknown-value", step.partition, what)


def realtime_order(evidence: Evidence) -> Iterator[Anomaly]:
    """A write that began after another was acknowledged stands before it (G0-realtime)."""
    moments: dict[str, list[tuple[float, int, int, str, str]]] = {}
    for operation in evidence.operations:
        if operation.acks != -1 or operation.outcome == "fail":
            continue
        for step in operation.sends:
            offset = _offset_of(evidence, step)
            if offset is None:
                continue
            events = moments.setdefault(step.partition, [])
            events.append((operation.begin_s, 0, offset, step.value, operation.process))
            if operation.outcome == "ok":
                events.append((operation.end_s, 1, offset, step.value, operation.process))
    for name, events in moments.items():
        highest, holder = -1, ""
        for _, kind, offset, value, process in sorted(events):
            if kind == 1:
                if offset > highest:
                    highest, holder = offset, value
            elif offset < highest:
                told = f"{process} began to send {value!r} (offset {offset}) after {holder!r}"
                yield Anomaly("G0-realtime", name, f"{told} was acknowledged at {highest}")


def stale_reads(evidence: Evidence) -> Iterator[Anomaly]:
    """A high watermark read after an acknowledgement is not above its offset."""
    acknowledged: dict[str, list[tuple[float, int]]] = {}
    for operation in evidence.operations:
        if operation.outcome == "ok" and operation.acks == -1:
            for step in operation.sends:
                if step.offset is not None:
                    ends = acknowledged.setdefault(step.partition, [])
                    ends.append((operation.end_s, step.offset))
    asked: dict[str, list[tuple[float, int, str]]] = {}
    for operation in evidence.operations:
        if operation.f == "end" and operation.outcome == "ok":
            for name, end in operation.offsets.items():
                asked.setdefault(name, []).append((operation.begin_s, end, operation.process))
    for name, questions in asked.items():
        ends = sorted(acknowledged.get(name, ()))
        position, highest = 0, -1
        for begin_s, end, process in sorted(questions):
            while position < len(ends) and ends[position][0] < begin_s:
                highest = max(highest, ends[position][1])
                position += 1
            if end <= highest:
                told = f"{process} was told the end is {end} at {begin_s:.3f} s"
                yield Anomaly("stale-read", name, f"{told}; {highest} was acknowledged before")


def _offset_of(evidence: Evidence, step: Step) -> int | None:
    if step.offset is not None:
        return step.offset
    partition = evidence.partitions.get(step.partition)
    seen = None if partition is None else partition.offsets.get(step.value)
    return None if not seen else min(seen)
