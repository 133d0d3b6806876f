"""The result of one simulated run."""

from collections import Counter
from dataclasses import dataclass, field

from verify.history.anomaly import Anomaly
from verify.simulation.decisions import Choice
from verify.simulation.worlds.profile import Profile


@dataclass(slots=True)
class Report:
    """The result of one run. Equal seeds give equal `digest`s."""

    seed: int | str
    profile: Profile
    decisions: list[Choice]
    digest: str = ""
    # What was violated, in words; empty where all is well.
    failures: list[str] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    sometimes: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    records_acknowledged: int = 0
    unavailable_s: float = 0.0
    virtual_s: float = 0.0
    real_s: float = 0.0
    callbacks_total: int = 0
    history: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.failures and not self.anomalies

    @property
    def speed(self) -> float:
        """Virtual seconds per second."""
        return self.virtual_s / self.real_s if self.real_s else 0.0

    def wrongs(self) -> list[str]:
        """All that was violated, a line each."""
        return [*self.failures, *map(str, self.anomalies)]

    def kinds(self) -> set[str]:
        """What kind of wrong it is: what shrinking holds on to."""
        words = {failure.split(":")[0] for failure in self.failures}
        return words | {anomaly.name for anomaly in self.anomalies}
