"""What happened, as a summary for the terminal and as one HTML page without any other file."""

import html
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from demo.failover import Failover
from demo.page import FAILOVER, PAGE
from ottla.lake.pipeline.plots import Plot, figure
from ottla.lake.verifying.report import Verification

# What the drawing of the leader's death shows around it, in seconds.
_BEFORE_S, _AFTER_S = 3.0, 5.0
# The close look at the longest wait is so many times as long as the wait, and at least this.
_CLOSE_TIMES, _CLOSE_MS_MIN = 4.0, 400.0


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
    # (time, acknowledged so far) by partition, in fine steps, around long waits.
    steps: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    # On what it ran: names and texts.
    machine: list[tuple[str, str]] = field(default_factory=list)

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
                ledger.aborted, ledger.compacted, ledger.deleted, ledger.unreadable,
                ledger.unexplained,
            ]
            for ledger in sorted(ledgers, key=lambda ledger: ledger.partition)
        ]  # fmt: skip


_LEDGER_COLUMNS = (
    "partition", "start", "end", "loaded", "control", "aborted", "compacted", "deleted",
    "unreadable", "unexplained",
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
        f"<tr><td>{html.escape(what)}<td><code>{_breakable(expected)}</code>"
        f"<td><code>{_breakable(found)}</code>"
        f'<td class="{"right" if right else "wrong"}">{"equal" if right else "differs"}'
        for what, expected, found, right in story.checks
    )
    ledger = "".join(
        "<tr>" + "".join(f"<td class=number>{number:,}" for number in row)
        for row in story.ledger_rows()
    )
    heads = "".join(f"<th class=number>{column}" for column in _LEDGER_COLUMNS)
    machine = "".join(
        f"<tr><th>{html.escape(name)}<td>{html.escape(text)}" for name, text in story.machine
    )
    path.write_text(
        PAGE.format(
            verdict=verdict,
            made=time.strftime("%Y-%m-%d %H:%M:%S"),
            progress=_progress_plot(story),
            failover=_failover_part(story),
            loads=_loads_plot(story),
            checks=checks,
            heads=heads,
            ledger=ledger,
            machine=machine,
        ),
        encoding="utf-8",
    )


def _breakable(text: str) -> str:
    """Long words, hashes, may be broken; numbers are not."""
    parts = [text[at : at + 8] for at in range(0, len(text), 8)]
    return "<wbr>".join(map(html.escape, parts)) if len(text) > 16 else html.escape(text)


def _progress_plot(story: Story) -> str:
    """Records acknowledged and rows in the lake over time, with the murders."""
    start = min(story.delivered[0]["at"], story.loads[0]["at"])
    acknowledged = [(told["at"] - start, told["count"]) for told in story.delivered]
    in_lake = [(0.0, 0)]
    for load in story.loads:
        in_lake += [(load["at"] - start, in_lake[-1][1]), (load["at"] - start, load["total"])]
    seconds = max(acknowledged[-1][0], in_lake[-1][0], 1.0)
    marks = [(at - start, what) for what, at in sorted(story.marks, key=lambda mark: mark[1])]

    def draw(width: int) -> Plot:
        plot = Plot(width, seconds, max(acknowledged[-1][1], in_lake[-1][1], 1))
        plot.axes("seconds", "records")
        plot.line(acknowledged, "acknowledged")
        plot.line(in_lake, "lake")
        for number, (at, _) in enumerate(marks, start=1):
            plot.mark(at, number)
        return plot

    return figure(
        "Records over time",
        draw,
        (("acknowledged", "acknowledged to the producer"), ("lake", "in the lake, committed")),
        [f"{what}, after {at:.1f} s" for at, what in marks],
    )


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

    def draw(width: int) -> Plot:
        plot = Plot(width, _AFTER_S, max(most, 1), -_BEFORE_S)
        plot.axes("seconds from the death", "records")
        plot.mark(0.0, 1)
        for its, line in lines.items():
            plot.line(line, "acknowledged" if its else "lake")
        return plot

    return figure(
        "Records acknowledged around the death of the leader",
        draw,
        (("acknowledged", "partitions it led"), ("lake", "the other partitions")),
        [f"broker {failover.victim} killed (-9)"],
    )


def _wait_plot(story: Story, failover: Failover) -> str:
    """The longest wait from close by: of one partition, each acknowledgement, in milliseconds."""
    partition = failover.longest
    if partition is None or not story.steps.get(partition):
        return ""
    wait_ms = failover.waits_s[partition] * 1000
    began_ms = (failover.began_at[partition] - failover.at) * 1000
    # On a busy machine the longest wait near the death need not be the one across it.
    spans = [(began_ms, wait_ms)]
    across = failover.across.get(partition)
    if across is not None and across[0] != failover.began_at[partition]:
        spans.append(((across[0] - failover.at) * 1000, across[1] * 1000))
    room_ms = max(_CLOSE_TIMES * wait_ms, _CLOSE_MS_MIN) - wait_ms
    # The death is to be seen, though another wait after it may have been the longest.
    first_ms = min(began_ms, 0.0) - room_ms * 0.3
    last_ms = began_ms + wait_ms + room_ms * 0.6
    steps = [((at - failover.at) * 1000, count) for at, count in story.steps[partition]]
    shown = [(at, count) for at, count in steps if first_ms <= at <= last_ms]
    base = shown[0][1] if shown else 0
    line = [(at, count - base) for at, count in shown]
    most = max((count for _, count in line), default=1)
    moments = [(0.0, f"broker {failover.victim} killed (-9)")]
    moments.append((failover.elected_s * 1000, "the others name new leaders"))
    marks = [(at, what) for at, what in moments if first_ms <= at <= last_ms]

    def draw(width: int) -> Plot:
        plot = Plot(width, last_ms, max(most, 1), first_ms)
        plot.axes("milliseconds from the death", "records")
        for at, lasted_ms in spans:
            plot.span(at, at + lasted_ms, f"{lasted_ms:,.0f} ms")
        plot.steps(line, "acknowledged")
        for number, (at, _) in enumerate(marks, start=1):
            plot.mark(at, number)
        return plot

    return figure(
        f"The longest wait, {wait_ms:,.0f} milliseconds",
        draw,
        (
            ("acknowledged", f"acknowledged, partition {partition}"),
            ("span", "nothing acknowledged: " + " and ".join(f"{ms:,.0f} ms" for _, ms in spans)),
        ),
        [f"{what}, at {at:,.0f} ms" for at, what in marks],
    )


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
    return FAILOVER.format(
        victim=failover.victim,
        office=office,
        elected=f"{failover.elected_s:.2f}",
        gap=failover.gap,
        plot=_failover_plot(story, failover),
        close=_wait_plot(story, failover),
        rows=rows,
    )


def _loads_plot(story: Story) -> str:
    """Rows of each load, as bars."""
    loads = [load for load in story.loads if load["rows"]]

    def draw(width: int) -> Plot:
        plot = Plot(width, len(loads) + 1, max(load["rows"] for load in loads))
        plot.axes("load", "rows")
        for number, load in enumerate(loads, start=1):
            title = f"load {number}: {load['rows']:,} rows, {load['seconds']:.2f} s"
            plot.bar(number, load["rows"], title)
        return plot

    return figure("Rows of each load", draw)
