"""Anomalies in a history."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One violation: its name, where, and the evidence in a sentence."""

    name: str
    partition: str
    evidence: str

    def __str__(self) -> str:
        where = f" in {self.partition}" if self.partition else ""
        return f"{self.name}{where}: {self.evidence}"


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """Which anomalies this history must not have; the others are allowed.

    Jepsen's defaults: consumers that subscribe may skip and go back, write cycles are allowed.
    """

    # Whether a high watermark read after an acknowledgement must be above its offset.
    recency: bool = False
    allowed: frozenset[str] = field(
        default_factory=lambda: frozenset({"int-send-skip", "G0", "unseen"})
    )
