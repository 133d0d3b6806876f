"""Checks a history for all anomalies, in time n log n of its length."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from verify.history import log_checks, process_checks, transaction_checks
from verify.history.anomaly import Anomaly, HistoryRules
from verify.history.evidence import gather
from verify.history.operation import Operation

_CHECKS = (
    log_checks.inconsistent_offsets,
    log_checks.duplicates,
    log_checks.lost_writes,
    log_checks.aborted_reads,
    log_checks.unknown_values,
    log_checks.realtime_order,
    process_checks.poll_order,
    process_checks.send_order,
    transaction_checks.precommitted_reads,
    transaction_checks.torn_transactions,
    transaction_checks.circles,
)
_DEFAULT = HistoryRules()


@dataclass(slots=True)
class HistoryVerdict:
    """The anomalies found, and the size of the history."""

    anomalies: list[Anomaly] = field(default_factory=list)
    # Anomalies that the rules allow, by name.
    allowed: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    records_acknowledged: int = 0
    # The longest time without any acknowledgement, between the first and the last.
    unavailable_s: float = 0.0

    @property
    def is_valid(self) -> bool:
        return not self.anomalies

    def names(self) -> list[str]:
        """Names of the anomalies, each once, in order."""
        return sorted({anomaly.name for anomaly in self.anomalies})


def check(operations: Iterable[Operation], rules: HistoryRules = _DEFAULT) -> HistoryVerdict:
    """Check a whole history, with its last reads (`final`)."""
    evidence = gather(operations)
    verdict = HistoryVerdict()
    found = [anomaly for law in _CHECKS for anomaly in law(evidence)]
    found += process_checks.commits(evidence.operations)
    if rules.recency:
        found += log_checks.stale_reads(evidence)
    for anomaly in found:
        if anomaly.name in rules.allowed:
            verdict.allowed[anomaly.name] += 1
        else:
            verdict.anomalies.append(anomaly)
    _count(verdict, evidence.operations)
    return verdict


def _count(verdict: HistoryVerdict, operations: Iterable[Operation]) -> None:
    ends: list[float] = []
    for operation in operations:
        verdict.operations[f"{operation.f} {operation.outcome}"] += 1
        sent = sum(1 for _ in operation.sends)
        if sent and operation.outcome == "ok":
            verdict.records_acknowledged += sent
            ends.append(operation.end_s)
    ends.sort()
    gaps = [later - earlier for earlier, later in pairwise(ends)]
    verdict.unavailable_s = max(gaps, default=0.0)
