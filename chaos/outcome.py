"""What a run showed, and its table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from verify.history.checker import HistoryVerdict

from chaos.gaps import Moment
from chaos.guard_verdict import GuardVerdict
from rig.zookeeper import TICK_MS


@dataclass(frozen=True, slots=True)
class Plan:
    """Which faults, how often each, and under which load (records per second and producer)."""

    faults: Sequence[str]
    cycles: int
    seed: int
    rate: int
    store: str = "sqlite"
    # ZooKeeper's tickTime: it ends no session before two ticks are over.
    tick_ms: int = TICK_MS
    # How many of librdkafka's producers want to go on quickly after a death, beside two others.
    writers_wanted: int = 2
    # Whether a Java producer writes beside librdkafka's.
    java: bool = False
    # Whether acknowledged records are on disks (`group`), or with the systems of several (`os`).
    flush: str = "group"
    # `min.insync.replicas`: with 1 a leader acknowledges alone while the others are dead.
    min_isr: int = 2
    # After this time no more faults are made, however many were wanted.
    at_most_s: float = float("inf")
    # How long a fault stays that would stay longer of itself.
    broken_at_most_s: float = 60.0
    # With TLS and logins on all listeners, and ACLs and passwords that change.
    is_secure: bool = False

    @property
    def writers(self) -> list[str]:
        """The names of the producers whose waits are measured."""
        return [f"writer{number}" for number in range(self.writers_wanted)]


@dataclass(slots=True)
class Outcome:
    """What happened, and what was found."""

    plan: Plan
    moments: list[Moment] = field(default_factory=list)
    # The longest gap of each moment, in seconds: of a partition, and of one writer to it.
    gaps_s: list[float] = field(default_factory=list)
    writer_gaps_s: list[float] = field(default_factory=list)
    verdict: HistoryVerdict = field(default_factory=HistoryVerdict)
    different: list[str] = field(default_factory=list)
    # Fatal errors of idempotent producers: each ends the producer, and none is to be had.
    fatal: list[str] = field(default_factory=list)
    # What brokers called unexpected, by their logs.
    unexpected: list[str] = field(default_factory=list)
    # Whether brokers went by the newest ACLs, where the run had any.
    guard: GuardVerdict = field(default_factory=GuardVerdict)
    # Whether the first fault was made.
    has_begun: bool = False
    # Whether it came to its end, and was judged.
    is_whole: bool = False

    @property
    def made(self) -> Counter[str]:
        """How often each fault was made."""
        return Counter(moment.name for moment in self.moments)

    @property
    def is_good(self) -> bool:
        right = self.verdict.is_valid and not self.different and not self.fatal
        return self.is_whole and right and self.guard.is_good

    @property
    def is_odd(self) -> bool:
        """Whether somebody should look at the logs, though nothing was lost."""
        failed, made = (self.verdict.operations[f"commit {how}"] for how in ("info", "ok"))
        return bool(self.unexpected) or failed > made // 10

    def table(self) -> str:
        """The figures, one a line."""
        verdict = self.verdict
        rows = [
            f"{'fault':<16} {'times':>5}  {'gap p50':>8} {'gap max':>8} "
            f"{'a writer':>8} {'back max':>9}"
        ]
        for name, count in sorted(self.made.items()):
            gaps, writers = self.of(name, self.gaps_s), self.of(name, self.writer_gaps_s)
            back = max(m.end_s - m.healed_s for m in self.moments if m.name == name)
            rows.append(
                f"{name:<16} {count:>5}  {median(gaps):>6.2f} s {max(gaps):>6.2f} s "
                f"{max(writers):>6.2f} s {back:>7.1f} s"
            )
        rows += [
            f"{'records acknowledged':<28} {verdict.records_acknowledged:,}",
            f"{'operations':<28} "
            + ", ".join(f"{name} {n:,}" for name, n in sorted(verdict.operations.items())),
            f"{'anomalies':<28} {len(verdict.anomalies)} {' '.join(verdict.names())}",
            f"{'replicas that differ':<28} {len(self.different)} {' '.join(self.different)}",
            f"{'fatal errors of producers':<28} {len(self.fatal)}",
            *(f"  {line}" for line in self.fatal[:10]),
            f"{'unexpected in broker logs':<28} {len(self.unexpected)}",
        ]
        rows += [f"  {line}" for line in self.unexpected[:10]]
        if self.plan.is_secure:
            rows += self.guard.rows()
        return "\n".join([*rows, *(str(anomaly) for anomaly in verdict.anomalies[:20])])

    def of(self, name: str, figures: Sequence[float]) -> list[float]:
        """Of one figure for each moment, those of the moments at which this fault was made."""
        pairs = zip(self.moments, figures, strict=True)
        return [figure for moment, figure in pairs if moment.name == name]
