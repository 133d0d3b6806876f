"""Renders a table's report as one HTML page: commits, delays, ledger, files. Pure.

The page loads nothing and runs no script. It fits wide and narrow screens, in light and dark
colours.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.quantities import counted, iso, size_words
from ottla.lake.edges.commits import TERMS, Commit, terms_of
from ottla.lake.edges.page import PAGE
from ottla.lake.edges.status import TableStatus
from ottla.lake.job.progress import brief
from ottla.lake.model.manifest import DataFile
from ottla.ledger.partition import PartitionLedger

# How many commits are shown: the newest ones.
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Delay:
    """The age of a commit's oldest and newest row at the time of the commit."""

    version: int
    oldest_s: float
    newest_s: float


def report_page(
    status: TableStatus,
    commits: Sequence[Commit],
    ledgers: Mapping[int, PartitionLedger],
    delays: Sequence[Delay],
    files: Sequence[DataFile],
    now_ms: int,
) -> str:
    """Return the page. `files` are the live ones, `delays` are those of the newest commits."""
    shown = commits[-SHOWN:]
    return PAGE.format(
        title=html.escape(f"{status.topic or 'no topic yet'} in the lake"),
        made=iso(now_ms)[:19].replace("T", " ") + " UTC",
        table=html.escape(status.table),
        numbers=_numbers(status),
        commits=_commits(shown, delays),
        older=f"<p class=faint>The newest {SHOWN} of {len(commits):,} commits.</p>"
        if len(commits) > SHOWN
        else "",
        ledger=_ledger(ledgers),
        files=_files(files),
        record=_record(commits),
        partitions=_partitions(status),
    )


def _numbers(status: TableStatus) -> str:
    lag = "not asked"
    if status.lag_offsets is not None:
        lag = counted(status.lag_offsets, "offset") if status.lag_offsets else "none"
        if status.lag_offsets and status.lag_s:
            lag += f", {brief(status.lag_s)}"
    last = "never" if status.last_load_ms is None else iso(status.last_load_ms)[:16]
    cards = {
        "rows": f"{status.rows:,}",
        "files": f"{status.files:,}",
        "size": size_words(status.size_bytes),
        "commits": f"{status.commits:,}",
        "last load (UTC)": last.replace("T", " "),
        "behind the topic": lag,
        "format": status.format,
        **({"event time": status.complete} if status.complete else {}),
        "overridden problems": f"{len(status.overridden):,}",
    }
    return "".join(f"<div><dt>{html.escape(k)}<dd>{html.escape(v)}</div>" for k, v in cards.items())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of numbers; the first column names the row."""
    head = "".join(f"<th class=number>{html.escape(name)}" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td class=number>{html.escape(cell)}" for cell in row) for row in rows
    )
    return f"<div class=wide><table><tr>{head}{body}</table></div>"


def _commits(commits: Sequence[Commit], delays: Sequence[Delay]) -> str:
    """Return the newest commits, the newest first, with the age of their rows."""
    if not commits:
        return _nothing("No commit yet.")
    ages = {one.version: f"{brief(one.newest_s)} to {brief(one.oldest_s)}" for one in delays}
    rows = (
        (
            f"{one.version:,}",
            iso(one.created_ms)[:16].replace("T", " "),
            f"{one.rows:,}",
            size_words(one.size_bytes),
            f"{one.files:,}",
            ages.get(one.version, "-"),
        )
        for one in reversed(commits)
    )
    return _table(("version", "time (UTC)", "rows", "size", "files", "age of rows"), rows)


def _ledger(ledgers: Mapping[int, PartitionLedger]) -> str:
    if not ledgers:
        return _nothing("No load yet.")
    parts = {str(p): terms_of([one]) for p, one in sorted(ledgers.items())}
    parts["all"] = terms_of(list(ledgers.values()))
    used = [term for term in TERMS if parts["all"][term]]
    rows = ((name, *(f"{terms[term]:,}" for term in used)) for name, terms in parts.items())
    return _table(("partition", *(term.replace("_", " ") for term in used)), rows)


def _files(files: Sequence[DataFile]) -> str:
    if not files:
        return _nothing("No files.")
    sizes = sorted(file.size_bytes for file in files)
    shown = (sizes[0], sizes[len(sizes) // 2], sizes[-1], sum(sizes))
    heads = ("files", "least", "median", "largest", "all")
    return _table(heads, [(f"{len(sizes):,}", *map(size_words, shown))])


def _record(commits: Sequence[Commit]) -> str:
    lines = [(one, line) for one in commits for line in one.on_record]
    if not lines:
        return _nothing("Nothing: no loss was accepted, no problem overridden, nothing left out.")
    rows = "".join(
        f"<tr><td class=number>{one.version}<td class=when>{iso(one.created_ms)[:16]}"
        f"<td>{html.escape(line)}"
        for one, line in reversed(lines)
    )
    heads = "<tr><th class=number>version<th>time (UTC)<th>what"
    return f"<div class=wide><table>{heads}{rows}</table></div>"


def _partitions(status: TableStatus) -> str:
    rows = (
        (
            str(one.partition),
            f"{one.position:,}",
            "-" if one.end is None else f"{one.end:,}",
            "-" if one.lag_offsets is None else f"{one.lag_offsets:,}",
            "-" if one.lag_s is None else brief(one.lag_s),
        )
        for one in status.partitions
    )
    return _table(("partition", "position", "end of the topic", "lag, offsets", "lag, time"), rows)


def _nothing(words: str) -> str:
    return f"<p class=faint>{words}</p>"
