"""What a history says of each partition: which values at which offsets."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from verify.history.operation import Operation, Step


@dataclass(slots=True)
class PartitionEvidence:
    """All acknowledgements and reads of one partition."""

    name: str
    # The values at each offset, with the first evidence; more than one is an anomaly.
    values: dict[int, dict[str, Operation]] = field(default_factory=dict)
    # The offsets at which each value was read or acknowledged.
    offsets: dict[str, dict[int, Operation]] = field(default_factory=dict)
    # Offsets that any consumer read.
    read: dict[int, str] = field(default_factory=dict)
    # What a last read found, from its first offset to its end.
    final: dict[int, str] | None = None
    final_begin: int = 0
    final_end: int = 0

    def see(self, step: Step, operation: Operation) -> None:
        """Note that a value stands at an offset."""
        assert step.offset is not None
        self.values.setdefault(step.offset, {}).setdefault(step.value, operation)
        self.offsets.setdefault(step.value, {}).setdefault(step.offset, operation)
        if step.f == "poll":
            self.read.setdefault(step.offset, step.value)


@dataclass(slots=True)
class Evidence:
    """The whole history, by partition and by value."""

    operations: list[Operation]
    partitions: dict[str, PartitionEvidence] = field(default_factory=dict)
    # The operation that sent each value.
    senders: dict[str, Operation] = field(default_factory=dict)

    def partition(self, name: str) -> PartitionEvidence:
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = PartitionEvidence(name)
        return found


def gather(operations: Iterable[Operation]) -> Evidence:
    """Sort a history by partition. Linear."""
    evidence = Evidence(list(operations))
    for operation in evidence.operations:
        for step in operation.steps:
            if step.f == "send":
                evidence.senders.setdefault(step.value, operation)
            if step.offset is not None and (step.f == "poll" or _is_promise(operation)):
                evidence.partition(step.partition).see(step, operation)
        if operation.f == "final" and operation.outcome == "ok":
            _take_final(evidence, operation)
    return evidence


def _is_promise(operation: Operation) -> bool:
    """Whether the offsets of its acknowledgements must hold for ever."""
    return operation.outcome == "ok" and operation.acks == -1


def _take_final(evidence: Evidence, operation: Operation) -> None:
    for name, end in operation.offsets.items():
        found = evidence.partition(name)
        found.final = {}
        found.final_end = end
    for step in operation.polls:
        final = evidence.partition(step.partition).final
        assert final is not None, "a final read tells the end of each partition it read"
        assert step.offset is not None
        final[step.offset] = step.value
    for name in operation.offsets:
        found = evidence.partition(name)
        found.final_begin = min(found.final or (0,))
