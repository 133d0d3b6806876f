"""What happened, as a summary for the terminal and as one HTML page without any other file."""

import html
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.drawings import commits_plot, failover_plot, planes_plot, progress_plot, wait_plot
from demo.page import FAILOVER, LATEST, PAGE, SUCCESSION
from demo.story import FLIGHTS, PLANES, Check, Story

_TITLES = {
    FLIGHTS: "Table flights: every record (Delta)",
    PLANES: "Table planes: the latest record of each (changelog, Delta)",
}
# Digits of a hash that a terminal shows.
_DIGITS = 16
_HOLDS = "every flight is in its table exactly once, and every plane has its latest"


def print_summary(story: Story, console: Console) -> None:
    """Print checks and ledgers of both tables."""
    for table, title in _TITLES.items():
        proof = Table(title=title, title_justify="left", title_style="bold")
        for column in ("", "source", "lake", ""):
            proof.add_column(column)
        for check in story.checks:
            if check.table == table:
                verdict = "[green]equal[/]" if check.right else "[red]DIFFERS[/]"
                proof.add_row(check.what, *map(_short, (check.expected, check.found)), verdict)
        console.print(proof)
        columns, rows = story.ledger(table)
        ledger = Table(title=f"Ledger of {table}", title_justify="left")
        for column in columns:
            ledger.add_column(column, justify="right")
        for row in rows:
            ledger.add_row(*(f"{number:,}" for number in row))
        console.print(ledger)
        for problem in story.verifications[table].problems:
            console.print(f"[red]{problem}[/]")
    seconds = story.delivered[-1]["at"] - story.delivered[0]["at"]
    commits = sum(commit["rows"] > 0 for commit in story.commits)
    runs = sum(run["changes"] > 0 for run in story.runs)
    console.print(
        f"{story.delivered[-1]['count']:,} records acknowledged in {seconds:.0f} s, the longest "
        f"wait after the leader's death {story.failover.gap if story.failover else 'not measured'};"
        f" {commits} commits of flights, {runs} of planes: "
        + (f"[bold green]{_HOLDS}[/]" if story.proven else "[bold red]the proof does not hold[/]")
    )


def _short(value: int | str) -> str:
    """For a narrow column: of a hash, the first digits."""
    text = _text(value)
    return f"{text[:_DIGITS]}…" if len(text) > _DIGITS else text


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_report(story: Story, path: Path) -> None:
    """Write the page."""
    verdict = (
        f"{_HOLDS[0].upper()}{_HOLDS[1:]}."
        if story.proven
        else "The proof does not hold: see the checks."
    )
    machine = "".join(
        f"<tr><th>{html.escape(name)}<td>{html.escape(text)}" for name, text in story.machine
    )
    path.write_text(
        PAGE.format(
            verdict=verdict,
            made=time.strftime("%Y-%m-%d %H:%M:%S"),
            progress=progress_plot(story),
            failover=_failover_part(story),
            succession=_succession_part(story),
            commits=commits_plot(story),
            planes=planes_plot(story),
            latest=_latest_part(story),
            flights_proof=_proof_part(story, FLIGHTS),
            planes_proof=_proof_part(story, PLANES),
            machine=machine,
        ),
        encoding="utf-8",
    )


def _proof_part(story: Story, table: str) -> str:
    """Checks and ledger of one table."""
    checks = "".join(_check_row(check) for check in story.checks if check.table == table)
    part = f"<table class=checks><tr><th><th>source<th>lake<th>{checks}</table>"
    if table not in story.verifications:
        return part
    columns, rows = story.ledger(table)
    return f"{part}<h3>Ledger of {table}</h3>{_wide(columns, rows)}"


def _check_row(check: Check) -> str:
    expected, found = _breakable(_text(check.expected)), _breakable(_text(check.found))
    kind, verdict = ("right", "equal") if check.right else ("wrong", "differs")
    return (
        f"<tr><td>{html.escape(check.what)}<td><code>{expected}</code><td><code>{found}</code>"
        f"<td class={kind}>{verdict}"
    )


def _wide(columns: Sequence[str], rows: Iterable[Sequence[int]]) -> str:
    """A table of numbers, which scrolls where it is too wide."""
    heads = "".join(f"<th class=number>{column}" for column in columns)
    heads = heads.replace("unexplained", "unex&shy;plained")
    body = "".join(
        "<tr>" + "".join(f"<td class=number>{number:,}" for number in row) for row in rows
    )
    return f"<div class=wide><table><tr>{heads}{body}</table></div>"


def _breakable(text: str) -> str:
    """Long words, hashes, may be broken; numbers are not."""
    parts = [text[at : at + 8] for at in range(0, len(text), 8)]
    return "<wbr>".join(map(html.escape, parts)) if len(text) > 16 else html.escape(text)


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
        plot=failover_plot(story, failover),
        close=wait_plot(story, failover),
        rows=rows,
    )


def _succession_part(story: Story) -> str:
    """The chapter about the loader's death."""
    heir = story.succession
    if heir is None or heir.took_over_at is None or heir.committed_at is None:
        return ""
    return SUCCESSION.format(
        took_over=f"{heir.took_over_at - heir.died_at:.1f}",
        committed=f"{heir.committed_at - heir.died_at:.1f}",
        rows=f"{heir.rows:,}",
        epoch=heir.epoch,
        before=heir.epoch - 1,
    )


def _latest_part(story: Story) -> str:
    """Some rows of the table of planes."""
    if story.planes is None:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(plane)}<td class=number>{sent:,}<td>{html.escape(flight)}"
        f"<td>{html.escape(route)}<td>{html.escape(day)}"
        for plane, flight, route, day, sent in story.planes.shown()
    )
    return LATEST.format(
        planes=f"{story.planes.rows:,}",
        flights=f"{sum(story.planes.sent.values()):,}",
        keyless=f"{story.planes.keyless:,}",
        rows=rows,
    )
