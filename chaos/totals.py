"""What all runs together showed: one line of JSON for each, kept for ever, and the table of all."""

import json
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from chaos.outcome import Outcome

FILE = Path("out") / "chaos.jsonl"
# The faults that the table counts in columns of their own.
_COUNTED: dict[str, tuple[str, ...]] = {
    "kill -9": ("kill", "kill-controller", "kill-two", "kill-all"),
    "stop": ("stop", "stop-all"),
    "partition": ("partition", "one-way", "swizzle-clog"),
    "power": ("power", "power-all"),
}


def note(outcome: Outcome, failure: str | None, file: Path = FILE) -> None:
    """Add a run, also one that failed before it could be judged (`failure` says how)."""
    plan, verdict = outcome.plan, outcome.verdict
    found = Counter(anomaly.name for anomaly in verdict.anomalies)
    line = {
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(["python", "-m", "chaos", *sys.argv[1:]]),
        "commit": _commit(),
        "seed": plan.seed,
        "store": plan.store,
        "clients": ["librdkafka", "java"] if plan.java else ["librdkafka"],
        "flush": plan.flush,
        "secure": plan.is_secure,
        "rules": outcome.guard.changes,
        "stale": len(outcome.guard.stale),
        # Nobody knows what was kept in cycles that were not judged.
        "cycles": dict(outcome.made) if outcome.is_whole else {},
        "acknowledged": verdict.records_acknowledged,
        "lost": found["lost-write"],
        "duplicated": found["duplicate"],
        "divergent": len(outcome.different),
        "anomalies": dict(found),
        "fatal": len(outcome.fatal),
        "unexpected": len(outcome.unexpected),
        "gaps_s": _by_fault(outcome, outcome.gaps_s),
        "writer_gaps_s": _by_fault(outcome, outcome.writer_gaps_s),
        "failure": failure,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(line) + "\n")


def table(file: Path = FILE) -> str:
    """The runs noted so far: what was broken and found by store, gaps by fault."""
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    stores = sorted({run["store"] for run in runs})
    rows = [
        f"{'store':<11}{'runs':>5}{'kill -9':>8}{'stop':>6}{'partition':>10}{'power':>6}"
        f"{'others':>7}{'records':>12}{'lost':>6}{'twice':>6}{'differ':>7}{'other':>6}"
        f"{'fatal':>6}{'failed':>7}"
    ]
    rows += [_row(store, [run for run in runs if run["store"] == store]) for store in stores]
    rows += [_row("all", runs), ""]
    with_java = sum("java" in run["clients"] for run in runs)
    in_os = sum(run["flush"] == "os" for run in runs)
    ended = sum(_was_ended(run) for run in runs)
    rows.append(f"{with_java} runs with a Java producer beside librdkafka's, {in_os} in os mode")
    secure = sum(run.get("secure", False) for run in runs)
    rules, stale = (sum(run.get(figure, 0) for run in runs) for figure in ("rules", "stale"))
    rows.append(f"{secure} runs with security on: {rules} changes of rules, {stale} stale answers")
    rows.append(f"{ended} runs were ended from outside, and their cycles are not counted")
    rows.append("")
    rows.append(
        f"{'fault':<16}{'store':<11}{'times':>6}{'gap p50':>10}{'p95':>8}{'max':>8}{'a writer':>9}"
    )
    for fault in sorted({fault for run in runs for fault in run["gaps_s"]}):
        for store in stores:
            rows += _gaps(fault, store, [run for run in runs if run["store"] == store])
    return "\n".join(rows)


def _row(name: str, runs: Sequence[dict[str, Any]]) -> str:
    made = Counter[str]()
    for run in runs:
        made.update(run["cycles"])
    counts = {column: sum(made[fault] for fault in of) for column, of in _COUNTED.items()}
    others = made.total() - sum(counts.values())
    return (
        f"{name:<11}{len(runs):>5}{counts['kill -9']:>8}{counts['stop']:>6}"
        f"{counts['partition']:>10}{counts['power']:>6}{others:>7}"
        f"{_sum(runs, 'acknowledged'):>12,}{_sum(runs, 'lost'):>6}{_sum(runs, 'duplicated'):>6}"
        f"{_sum(runs, 'divergent'):>7}{_others(runs):>6}"
        f"{sum(run.get('fatal', 0) for run in runs):>6}{sum(_failed(run) for run in runs):>7}"
    )


def _was_ended(run: dict[str, Any]) -> bool:
    """Whether somebody asked it to end before it could be judged."""
    return (run["failure"] or "").startswith("SystemExit")


def _failed(run: dict[str, Any]) -> bool:
    """Whether it could not be judged of itself: a client gave up, or replicas stayed away."""
    return run["failure"] is not None and not _was_ended(run)


def _gaps(fault: str, store: str, runs: Iterable[dict[str, Any]]) -> list[str]:
    gaps = sorted(gap for run in runs for gap in run["gaps_s"].get(fault, ()))
    if not gaps:
        return []
    of_writers = max(gap for run in runs for gap in run["writer_gaps_s"].get(fault, ()))
    return [
        f"{fault:<16}{store:<11}{len(gaps):>6}{median(gaps):>8.2f} s"
        f"{gaps[len(gaps) * 95 // 100]:>6.2f} s{gaps[-1]:>6.2f} s{of_writers:>7.2f} s"
    ]


def _sum(runs: Iterable[dict[str, Any]], figure: str) -> int:
    return sum(run[figure] for run in runs)


def _others(runs: Iterable[dict[str, Any]]) -> int:
    """Anomalies that are neither a loss nor a duplicate."""
    named = ("lost-write", "duplicate")
    return sum(n for run in runs for name, n in run["anomalies"].items() if name not in named)


def _by_fault(outcome: Outcome, figures: Sequence[float]) -> dict[str, list[float]]:
    if len(figures) != len(outcome.moments):
        return {}
    return {n: [round(s, 3) for s in outcome.of(n, figures)] for n in sorted(outcome.made)}


def _commit() -> str:
    """The commit of these sources, with a plus where they were changed since."""
    asked = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
