"""What happened, as a summary for the terminal and as one HTML page without any other file."""

import html
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ottla.lake.verification import Verification

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 860, 300, 70, 36


@dataclass
class Story:
    """Everything worth telling, in the order it happened."""

    topic: str
    delivered: list[tuple[float, int]] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    marks: list[tuple[str, float]] = field(default_factory=list)
    gap_s: float | None = None
    checks: list[tuple[str, str, str, bool]] = field(default_factory=list)
    verification: Verification | None = None

    def mark(self, what: str, at: float) -> None:
        self.marks.append((what, at))

    @property
    def proven(self) -> bool:
        return bool(self.checks) and all(check[3] for check in self.checks)

    def conclude(
        self, proof: dict[str, Any], verification: Verification, *, rows: int, source_rows: int
    ) -> None:
        """Hold the lake against the source."""
        self.verification = verification
        unexplained = sum(abs(ledger.unexplained) for ledger in verification.ledgers.values())
        self.checks = [
            _check("rows: source and lake", source_rows, rows),
            _check("rows: acknowledged and lake", proof["count"], rows),
            _check("hash: producer's side and lake", proof["hash"], verification.hash),
            _check("rows compared one by one with the topic", rows, verification.compared),
            _check("offsets unexplained by the ledger", 0, unexplained),
            _check("problems found by verify", 0, len(verification.problems)),
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
        for row in self._ledger_rows():
            ledger_table.add_row(*(f"{number:,}" for number in row))
        console.print(ledger_table)
        for problem in self.verification.problems if self.verification else ():
            console.print(f"[red]{problem}[/]")
        seconds = self.delivered[-1][0] - self.delivered[0][0] if self.delivered else 0.0
        loads = [load for load in self.loads if load["rows"]]
        told = "loads" if len(loads) != 1 else "load"
        console.print(
            f"{len(loads)} {told}, {self.delivered[-1][1]:,} records acknowledged in "
            f"{seconds:.0f} s, broker away for {self.gap_s or 0:.2f} s: "
            + (
                "[bold green]every flight is in the lake exactly once[/]"
                if self.proven
                else "[bold red]the proof does not hold[/]"
            )
        )

    def _ledger_rows(self) -> list[list[int]]:
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
        for row in story._ledger_rows()
    )
    heads = "".join(f"<th class=number>{column}" for column in _LEDGER_COLUMNS)
    path.write_text(
        _PAGE.format(
            verdict=verdict,
            made=time.strftime("%Y-%m-%d %H:%M:%S"),
            progress=_progress_plot(story),
            loads=_loads_plot(story),
            checks=checks,
            heads=heads,
            ledger=ledger,
        ),
        encoding="utf-8",
    )


def _progress_plot(story: Story) -> str:
    """Records acknowledged and rows in the lake over time, with the murders."""
    start = min(story.delivered[0][0], story.loads[0]["at"])
    acknowledged = [(at - start, count) for at, count in story.delivered]
    in_lake = [(0.0, 0)]
    for load in story.loads:
        in_lake += [(load["at"] - start, in_lake[-1][1]), (load["at"] - start, load["total"])]
    seconds = max(acknowledged[-1][0], in_lake[-1][0], 1.0)
    most = max(acknowledged[-1][1], in_lake[-1][1], 1)
    plot = _Plot(seconds, most)
    plot.axes("seconds", "records")
    plot.line(acknowledged, "acknowledged", "acknowledged to the producer", 0)
    plot.line(in_lake, "lake", "in the lake, committed", 1)
    for row, (what, at) in enumerate(sorted(story.marks, key=lambda mark: mark[1])):
        plot.mark(at - start, what, row)
    return plot.svg("Records over time")


def _loads_plot(story: Story) -> str:
    """Rows of each load, as bars."""
    loads = [load for load in story.loads if load["rows"]]
    plot = _Plot(len(loads) + 1, max(load["rows"] for load in loads))
    plot.axes("load", "rows")
    for number, load in enumerate(loads, start=1):
        plot.bar(
            number, load["rows"], f"load {number}: {load['rows']:,} rows, {load['seconds']:.2f} s"
        )
    return plot.svg("Rows of each load")


class _Plot:
    """A small drawing in SVG: x from 0 to `x_max`, y from 0 to `y_max`."""

    def __init__(self, x_max: float, y_max: float) -> None:
        self._x_max, self._y_max = x_max, y_max
        self._parts: list[str] = []

    def _x(self, value: float) -> float:
        return _LEFT + value / self._x_max * (_WIDTH - _LEFT - 20)

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._y_max * (_HEIGHT - _BOTTOM - 40)

    def axes(self, x_name: str, y_name: str) -> None:
        step = _round_step(self._y_max / 4)
        value = 0.0
        while value <= self._y_max:
            y = self._y(value)
            self._parts.append(
                f"<line class=grid x1={_LEFT} x2={_WIDTH - 20} y1={y:.1f} y2={y:.1f} />"
                f"<text class=tick text-anchor=end x={_LEFT - 8} y={y + 4:.1f}>{value:,.0f}</text>"
            )
            value += step
        step = _round_step(self._x_max / 8)
        value = 0.0
        while value <= self._x_max:
            self._parts.append(
                f"<text class=tick text-anchor=middle x={self._x(value):.1f} "
                f"y={_HEIGHT - _BOTTOM + 18}>{value:,.0f}</text>"
            )
            value += step
        self._parts.append(
            f"<text class=tick text-anchor=end x={_WIDTH - 20} y={_HEIGHT - 4}>{x_name}</text>"
            f"<text class=tick text-anchor=start x=4 y=14>{y_name}</text>"
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str, name: str, row: int) -> None:
        level = 30 + 18 * row
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        self._parts.append(
            f'<polyline class="{kind}" points="{path}" />'
            f'<line class="{kind}" x1={_LEFT + 14} x2={_LEFT + 38} y1={level} y2={level} />'
            f"<text x={_LEFT + 44} y={level + 4}>{html.escape(name)}</text>"
        )

    def mark(self, x: float, what: str, row: int) -> None:
        at = self._x(x)
        right = at > _WIDTH * 0.6
        self._parts.append(
            f"<line class=mark x1={at:.1f} x2={at:.1f} y1=24 y2={_HEIGHT - _BOTTOM} />"
            f"<text class=mark text-anchor={'end' if right else 'start'} "
            f"x={at + (-5 if right else 5):.1f} y={_HEIGHT - _BOTTOM - 10 - 18 * row}>"
            f"{html.escape(what)}</text>"
        )

    def bar(self, number: int, value: float, title: str) -> None:
        width = max(4.0, (self._x(1) - self._x(0)) * 0.7)
        self._parts.append(
            f"<rect class=bar x={self._x(number) - width / 2:.1f} y={self._y(value):.1f} "
            f"width={width:.1f} height={self._y(0) - self._y(value):.1f}>"
            f"<title>{html.escape(title)}</title></rect>"
        )

    def svg(self, label: str) -> str:
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="{html.escape(label)}">'
            + "".join(self._parts)
            + "</svg>"
        )


def _round_step(rough: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, at least `rough`, at least 1."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if step * factor >= rough:
                return step * factor
        step *= 10


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
line.mark {{ stroke: var(--alarm); stroke-dasharray: 4 3 }} text.mark {{ fill: var(--alarm) }}
.bar {{ fill: var(--b) }} table {{ border-collapse: collapse; width: 100%; font-size: .92rem }}
td, th {{ text-align: left; padding: .3rem .5rem; border-bottom: 1px solid var(--grid) }}
.number {{ text-align: right; font-variant-numeric: tabular-nums }}
.right {{ color: var(--b) }} .wrong {{ color: var(--alarm); font-weight: bold }}
div.wide {{ overflow-x: auto }}
</style>
<h1>{verdict}</h1><p class=made>336,776 flights from New York, 2013. Made {made}.</p>
<h2>Records over time</h2>{progress}
<h2>Rows of each load</h2>{loads}
<h2>Proof: source against lake</h2><div class=wide><table><tr><th><th>source<th>lake<th>{checks}
</table></div>
<h2>Ledger: what became of every offset</h2>
<p>end - start = loaded + control + aborted + compacted + deleted; what none of them explains is
unexplained.</p><div class=wide><table><tr>{heads}{ledger}</table></div>
</html>
"""
