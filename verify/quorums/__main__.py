"""`python -m verify.quorums`: print the tables that `docs/explanation/replication.md` shows."""

import argparse
import sys

from verify.quorums.failures import of_in_sync, of_majority
from verify.quorums.model import Model, Scene

RECORDS = 20_000
SCENES = (
    Scene("three copies, all well"),
    Scene("five copies, all well", copies=5, min_isr=3),
    Scene("one flush in 1,000 takes 50 ms longer", hiccup_ms=50.0),
    Scene("one follower's disk is 10 times slower", slower=10.0),
    Scene("one follower stands still for 200 ms", still_at_ms=5_000.0, still_ms=200.0),
    Scene("one follower stands still for good", still_at_ms=5_000.0, still_ms=1e9),
)


def failures_table() -> list[str]:
    """Copies and minimum, and how many failures each rule tolerates."""
    lines = ["copies  rule              writes go on  a leader has all  copies lost for ever"]
    for copies, minimum in ((2, 1), (3, 2), (4, 2), (5, 3)):
        rows = (
            (f"ISR, minimum {minimum}", of_in_sync(copies, minimum)),
            ("majority", of_majority(copies)),
        )
        for rule, told in rows:
            lines.append(
                f"{copies:<6}  {rule:<16}  {told.writes:>12}  {told.leader:>16}"
                f"  {told.copies_lost:>20}"
            )
    return lines


def latencies_table(seed: int, records: int) -> list[str]:
    """Each scene, and how long a record took to be committed by either rule."""
    lines = [f"{'milliseconds to commit':<40}  rule          p50     p99   p99.9  longest"]
    for scene in SCENES:
        outcome = Model(scene, seed).run(records)
        for rule, latencies in (("ISR", outcome.in_sync), ("majority", outcome.majority)):
            shown = "  ".join(f"{value:>6.1f}" for value in quantiles(latencies))
            lines.append(f"{scene.name:<40}  {rule:<9}  {shown}")
    return lines


def quantiles(latencies: list[float]) -> tuple[float, float, float, float]:
    """p50, p99, p99.9 and the longest."""
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return ordered[last // 2], ordered[last * 99 // 100], ordered[last * 999 // 1000], ordered[-1]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m verify.quorums", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=RECORDS)
    told = parser.parse_args()
    lines = [*failures_table(), "", *latencies_table(told.seed, told.records)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
