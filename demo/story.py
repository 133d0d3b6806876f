"""What happened, and what was found at the end."""

from dataclasses import dataclass, field
from typing import Any

from demo.failover import Failover
from demo.tables import Planes, fingerprint
from ottla.lake.check.report import Verification

FLIGHTS, PLANES = "flights", "planes"


@dataclass(frozen=True, slots=True)
class Check:
    """One figure of the source beside the same figure of a table."""

    table: str
    what: str
    expected: int | str
    found: int | str

    @property
    def right(self) -> bool:
        return self.expected == self.found


@dataclass
class Succession:
    """The death of the loader, and the one that took over."""

    died_at: float
    # When the successor had taken the table over, and when it had committed first.
    took_over_at: float | None = None
    committed_at: float | None = None
    rows: int = 0
    epoch: int = 0


@dataclass
class Story:
    """Everything worth telling, in the order it happened."""

    topic: str
    delivered: list[dict[str, Any]] = field(default_factory=list)
    # Commits of flights, and runs of the changelog of planes.
    commits: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    marks: list[tuple[str, float]] = field(default_factory=list)
    failover: Failover | None = None
    succession: Succession | None = None
    checks: list[Check] = field(default_factory=list)
    verifications: dict[str, Verification] = field(default_factory=dict)
    planes: Planes | None = None
    # (time, acknowledged so far) by partition, in fine steps, around long waits.
    steps: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    # On what it ran: names and texts.
    machine: list[tuple[str, str]] = field(default_factory=list)

    def mark(self, what: str, at: float) -> None:
        self.marks.append((what, at))

    def committed(self, event: dict[str, Any]) -> None:
        """Flights were committed."""
        self.commits.append(event)
        heir = self.succession
        if heir is not None and heir.committed_at is None:
            heir.committed_at, heir.rows, heir.epoch = event["at"], event["rows"], event["epoch"]

    @property
    def proven(self) -> bool:
        return bool(self.checks) and all(check.right for check in self.checks)

    def conclude(
        self,
        proof: dict[str, Any],
        verified: tuple[Verification, Verification],
        read_back: tuple[int, str],
        planes: Planes,
        *,
        source_rows: int,
        differing: int,
    ) -> None:
        """Hold both tables against the source.

        `read_back` are rows and hash of flights by another program; `differing` replicas are not
        equal to the first.
        """
        of_flights, of_planes = verified
        self.verifications = {FLIGHTS: of_flights, PLANES: of_planes}
        self.planes = planes
        rows, hash_read = read_back
        epoch = self.commits[-1]["epoch"] if self.commits else 0
        keyless = sum(ledger.keyless for ledger in of_planes.ledgers.values())
        applied = sum(ledger.loaded for ledger in of_planes.ledgers.values())
        self.checks = [
            Check(FLIGHTS, "rows: source, and table read by delta-rs", source_rows, rows),
            Check(FLIGHTS, "rows: acknowledged, and table read by delta-rs", proof["count"], rows),
            Check(FLIGHTS, "hash: producer, and table read by delta-rs", proof["hash"], hash_read),
            Check(FLIGHTS, "hash: producer, and verify", proof["hash"], of_flights.hash),
            Check(FLIGHTS, "rows compared with the topic", rows, of_flights.compared),
            Check(FLIGHTS, "writer epoch: the successor's", 2, epoch),
            *self._verified(FLIGHTS, of_flights),
            Check(FLIGHTS, "replicas that differ in a byte", 0, differing),
            Check(PLANES, "planes: replay, and table read by delta-rs",
                  len(planes.expected), planes.rows),
            Check(PLANES, "hash of keys and values: replay, and table",
                  fingerprint(planes.expected), fingerprint(planes.found)),
            Check(PLANES, "planes that differ from the replay", 0, planes.differing),
            Check(PLANES, "changes: sent, and applied", sum(planes.sent.values()), applied),
            Check(PLANES, "flights without a tail number: sent, and left out",
                  planes.keyless, keyless),
            *self._verified(PLANES, of_planes),
        ]  # fmt: skip

    def _verified(self, table: str, verification: Verification) -> list[Check]:
        unexplained = sum(abs(ledger.unexplained) for ledger in verification.ledgers.values())
        return [
            Check(table, "offsets unexplained by the ledger", 0, unexplained),
            Check(table, "problems found by verify", 0, len(verification.problems)),
        ]

    def ledger(self, table: str) -> tuple[list[str], list[list[int]]]:
        """Columns and rows of a table's ledger, without terms that are 0 in each partition."""
        ledgers = sorted(self.verifications[table].ledgers.values(), key=lambda one: one.partition)
        terms = [name for name in TERMS if any(getattr(one, name) for one in ledgers)]
        names = ["partition", "start", "end", *terms, "unexplained"]
        rows = [[getattr(one, name) for name in names] for one in ledgers]
        return [name.replace("_", " ") for name in names], rows


# What becomes of an offset.
TERMS = (
    "loaded", "control", "aborted", "compacted", "deleted", "unreadable", "absent",
    "dead_letters", "keyless",
)  # fmt: skip
