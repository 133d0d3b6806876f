"""What happened, as a summary for the terminal and as one HTML page without any other file."""

import html
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from demo.failover import Failover
from demo.plot import Plot
from ottla.lake.verification import Verification

# What the drawing of the leader's death shows around it, in seconds.
_BEFORE_S, _AFTER_S = 3.0, 5.0


@dataclass
class Story:
    """Everything worth telling, in the order it happened."""

    topic: str
    delivered: list[dict[str, Any]] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    marks: list[tuple[str, float]] = field(default_factory=list)
    failover: Failover | None = None
    checks: list[tuple[str, str, str, bool]] = field(default_factory=list)
    verification: Verification | None = None

    def mark(self, what: str, at: float) -> None:
        self.marks.append((what, at))

    @property
    def proven(self) -> bool:
        return bool(self.checks) and all(check[3] for check in self.checks)

    def conclude(
        self,
        proof: dict[str, Any],
        verification: Verification,
        *,
        rows: int,
        source_rows: int,
        differing: int,
    ) -> None:
        """Hold the lake against the source; `differing` replicas are not equal to the first."""
        self.verification = verification
        unexplained = sum(abs(ledger.unexplained) for ledger in verification.ledgers.values())
        self.checks = [
            _check("rows: source and lake", source_rows, rows),
            _check("rows: acknowledged and lake", proof["count"], rows),
            _check("hash: producer's side and lake", proof["hash"], verification.hash),
            _check("rows compared one by one with the topic", rows, verification.compared),
            _check("offsets unexplained by the ledger", 0, unexplained),
            _check("problems found by verify", 0, len(verification.problems)),
            _check("replicas that differ from the first in a byte", 0, differing),
        ]

    def print_summary(self, console: Console) -> None:
        """Print checks and ledger."""
        table = Table(title="Proof", title_justify="left")
        for column in ("", "source", "lake", ""):
            table.add_column(column)
        for what, expected, found, right in self.checks:
            table.add_row(what, expected, found, "[green]equal[/]" if right else "[red]DIFFERS[/]")
        console.print(table)
        ledger_table = Table(title="Ledger", title_justify="left")
        for column in _LEDGER_COLUMNS:
            ledger_table.add_column(column, justify="right")
        for row in self.ledger_rows():
            ledger_table.add_row(*(f"{number:,}" for number in row))
        console.print(ledger_table)
        for problem in self.verification.problems if self.verification else ():
            console.print(f"[red]{problem}[/]")
        seconds = self.delivered[-1]["at"] - self.delivered[0]["at"]
        loads = [load for load in self.loads if load["rows"]]
        told = "loads" if len(loads) != 1 else "load"
        console.print(
            f"{len(loads)} {told}, {self.delivered[-1]['count']:,} records acknowledged in "
            f"{seconds:.0f} s, the longest wait after the leader's death "
            f"{self.failover.gap if self.failover else 'not measured'}: "
            + (
                "[bold green]every flight is in the lake exactly once[/]"
                if self.proven
                else "[bold red]the proof does not hold[/]"
            )
        )

    def ledger_rows(self) -> list[list[int]]:
        """The ledger of each partition, in the order of its columns."""
        ledgers = self.verification.ledgers.values() if self.verification else ()
        return [
            [
                ledger.partition, ledger.start, ledger.end, ledger.loaded, ledger.control,
                ledger.aborted, ledger.compacted, ledger.deleted, ledger.unexplained,
            ]
            for ledger in sorted(ledgers, key=lambda ledger: ledger.partition)
        ]  # fmt: skip


_LEDGER_COLUMNS = (
    "partition", "start", "end", "loaded", "control", "aborted", "compacted", "deleted",
    "unexplained",
)  # fmt: skip


def _check(what: str, expected: object, found: object) -> tuple[str, str, str, bool]:
    return what, _text(expected), _text(found), expected == found


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_report(story: Story, path: Path) -> None:
    """Write the page."""
    verdict = (
        "Every flight is in the lake exactly once."
        if story.proven
        else "The proof does not hold: see the checks."
    )
    checks = "".join(
        f"<tr><td>{html.escape(what)}<td><code>{html.escape(expected)}</code>"
        f"<td><code>{html.escape(found)}</code>"
        f'<td class="{"right" if right else "wrong"}">{"equal" if right else "differs"}'
        for what, expected, found, right in story.checks
    )
    ledger = "".join(
        "<tr>" + "".join(f"<td class=number>{number:,}" for number in row)
        for row in story.ledger_rows()
    )
    heads = "".join(f"<th class=number>{column}" for column in _LEDGER_COLUMNS)
    path.write_text(
        _PAGE.format(
            verdict=verdict,
            made=time.strftime("%Y-%m-%d %H:%M:%S"),
            progress=_progress_plot(story),
            failover=_failover_part(story),
            loads=_loads_plot(story),
            checks=checks,
            heads=heads,
            ledger=ledger,
        ),
        encoding="utf-8",
    )


def _progress_plot(story: Story) -> str:
    """Records acknowledged and rows in the lake over time, with the murders."""
    start = min(story.delivered[0]["at"], story.loads[0]["at"])
    acknowledged = [(told["at"] - start, told["count"]) for told in story.delivered]
    in_lake = [(0.0, 0)]
    for load in story.loads:
        in_lake += [(load["at"] - start, in_lake[-1][1]), (load["at"] - start, load["total"])]
    seconds = max(acknowledged[-1][0], in_lake[-1][0], 1.0)
    plot = Plot(seconds, max(acknowledged[-1][1], in_lake[-1][1], 1))
    plot.axes("seconds", "records")
    plot.line(acknowledged, "acknowledged", "acknowledged to the producer", 0)
    plot.line(in_lake, "lake", "in the lake, committed", 1)
    for row, (what, at) in enumerate(sorted(story.marks, key=lambda mark: mark[1])):
        plot.mark(at - start, what, row)
    return plot.svg("Records over time")


def _failover_plot(story: Story, failover: Failover) -> str:
    """Records acknowledged around the leader's death: of its partitions, and of the others."""
    moved = set(failover.moved)
    points: dict[bool, list[tuple[float, int]]] = {True: [], False: []}
    for told in story.delivered:
        at = told["at"] - failover.at
        if -_BEFORE_S <= at <= _AFTER_S:
            for its, line in points.items():
                count = sum(n for partition, n in told["partitions"] if (partition in moved) is its)
                line.append((at, count))
    lines = {its: [(at, n - line[0][1]) for at, n in line] for its, line in points.items() if line}
    most = max((count for line in lines.values() for _, count in line), default=1)
    plot = Plot(_AFTER_S, max(most, 1), -_BEFORE_S)
    plot.axes("seconds from the death", "records")
    plot.mark(0.0, f"broker {failover.victim} killed (-9)", 0)
    for row, (its, line) in enumerate(lines.items()):
        name = "partitions it led" if its else "the other partitions"
        plot.line(line, "acknowledged" if its else "lake", name, row)
    return plot.svg("Records acknowledged around the death of the leader")


def _failover_part(story: Story) -> str:
    """The chapter about the leader's death."""
    failover = story.failover
    if failover is None:
        return ""
    office = " It was the controller as well." if failover.was_controller else ""
    rows = "".join(
        f"<tr><td class=number>{partition}<td class=number>{leader}"
        f"<td class=number>{failover.after[partition]}"
        f"<td class=number>{failover.wait(partition)}"
        f"<td class=number>{', '.join(map(str, failover.in_sync[partition]))}"
        for partition, leader in failover.before.items()
    )
    return _FAILOVER.format(
        victim=failover.victim,
        office=office,
        elected=f"{failover.elected_s:.2f}",
        gap=failover.gap,
        plot=_failover_plot(story, failover),
        rows=rows,
    )


def _loads_plot(story: Story) -> str:
    """Rows of each load, as bars."""
    loads = [load for load in story.loads if load["rows"]]
    plot = Plot(len(loads) + 1, max(load["rows"] for load in loads))
    every = -(-len(loads) // 20)  # Of many loads not each is numbered.
    plot.axes("load", "rows", range(every, len(loads) + 1, every))
    for number, load in enumerate(loads, start=1):
        plot.bar(
            number, load["rows"], f"load {number}: {load['rows']:,} rows, {load['seconds']:.2f} s"
        )
    return plot.svg("Rows of each load")


_FAILOVER = """<h2>The death of a leader</h2>
<p>Broker {victim} was killed with -9 while the flights flowed.{office} The other two named new
leaders {elected} s later. The producer, an ordinary librdkafka, waited {gap} at most between two
acknowledgements of a partition that lost its leader.</p>{plot}
<div class=wide><table><tr><th class=number>partition<th class=number>leader before
<th class=number>leader after<th class=number>longest wait<th class=number>in sync at the end{rows}
</table></div>"""

_PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Ottla: flights into a lake</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #8a94a3;
  --grid: #e4e8ee; --a: #2563c9; --b: #0f8a5f; --alarm: #c2341d; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c;
  --faint: #8a94a3; --grid: #2a313b; --a: #6aa3ff; --b: #45c896; --alarm: #ff7a61; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 900px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; margin-bottom: 0 }} h2 {{ font-size: 1.1rem; margin-top: 2rem }}
.made {{ color: var(--faint) }} svg {{ width: 100%; height: auto }}
svg text {{ font-size: 12px; fill: var(--ink) }} svg .tick {{ fill: var(--faint) }}
.grid {{ stroke: var(--grid) }} polyline {{ fill: none; stroke-width: 2.5 }}
.acknowledged {{ stroke: var(--a); stroke-width: 2.5 }}
.lake {{ stroke: var(--b); stroke-width: 2.5 }}
line.mark {{ stroke: var(--alarm); stroke-dasharray: 4 3 }} svg text.mark {{ fill: var(--alarm);
  paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round }}
.bar {{ fill: var(--b) }} table {{ border-collapse: collapse; width: 100%; font-size: .92rem }}
td, th {{ text-align: left; padding: .3rem .5rem; border-bottom: 1px solid var(--grid) }}
.number {{ text-align: right; font-variant-numeric: tabular-nums }}
.right {{ color: var(--b) }} .wrong {{ color: var(--alarm); font-weight: bold }}
div.wide {{ overflow-x: auto }}
</style>
<h1>{verdict}</h1><p class=made>336,776 flights from New York, 2013. Made {made}.</p>
<h2>Records over time</h2>{progress}
{failover}
<h2>Rows of each load</h2>{loads}
<h2>Proof: source against lake</h2><div class=wide><table><tr><th><th>source<th>lake<th>{checks}
</table></div>
<h2>Ledger: what became of every offset</h2>
<p>end - start = loaded + control + aborted + compacted + deleted; what none of them explains is
unexplained.</p><div class=wide><table><tr>{heads}{ledger}</table></div>
</html>
"""
