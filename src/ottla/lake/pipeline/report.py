"""The report of a table as one HTML page: its commits, its delays, its ledger, its files. Pure.

The page needs nothing from elsewhere and runs no script. It is drawn for wide and narrow screens,
in light and dark colours.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.base.quantities import counted, iso, size_words
from ottla.lake.job.progress import brief
from ottla.lake.manifest import DataFile
from ottla.lake.pipeline.commits import TERMS, Commit, terms_of
from ottla.lake.pipeline.page import PAGE
from ottla.lake.pipeline.plots import Plot, figure
from ottla.lake.pipeline.status import TableStatus
from ottla.ledger.partition import PartitionLedger

# Commits that are drawn: the newest ones.
SHOWN = 100
# Beside the first bar and the last one, in bars.
_ROOM = 0.6


@dataclass(frozen=True, slots=True)
class Delay:
    """How old the rows of a commit were when it was made: its oldest row, and its newest."""

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
    """The page. `files` are those that count, `delays` of the newest commits."""
    shown = commits[-SHOWN:]
    return PAGE.format(
        title=html.escape(f"{status.topic or 'no topic yet'} in the lake"),
        made=iso(now_ms)[:19].replace("T", " ") + " UTC",
        table=html.escape(status.table),
        numbers=_numbers(status),
        rows=_row_bars(shown),
        bytes=_byte_bars(shown),
        older=f"<p class=faint>The newest {SHOWN} of {len(commits):,} commits.</p>"
        if len(commits) > SHOWN
        else "",
        delays=_delays(delays),
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


def _scaled(most: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The largest unit in which `most` is a number of at least 10; else the smallest."""
    return next(((name, size) for name, size in reversed(units) if most >= 10 * size), units[0])


_BYTES = (("bytes", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3))
_SECONDS = (("milliseconds", 0.001), ("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0))
_SPANS = (*_SECONDS, ("days", 86_400.0))


def _over_versions(width: int, shown: Sequence[int], most: float) -> Plot:
    return Plot(width, shown[-1] + _ROOM, max(most, 1.0), shown[0] - _ROOM)


def _row_bars(commits: Sequence[Commit]) -> str:
    if not commits:
        return _nothing("No commit yet.")
    versions = [one.version for one in commits]

    def draw(width: int) -> Plot:
        plot = _over_versions(width, versions, max(one.rows for one in commits))
        plot.axes("version", "rows")
        for one in commits:
            plot.bar(one.version, one.rows, f"version {one.version}: {counted(one.rows, 'row')}")
        return plot

    return figure("Rows of each commit", draw)


def _byte_bars(commits: Sequence[Commit]) -> str:
    if not commits:
        return _nothing("No commit yet.")
    versions = [one.version for one in commits]
    unit, size = _scaled(max(one.size_bytes for one in commits), _BYTES)

    def draw(width: int) -> Plot:
        plot = _over_versions(width, versions, max(one.size_bytes for one in commits) / size)
        plot.axes("version", unit)
        for one in commits:
            title = (
                f"version {one.version}: {size_words(one.size_bytes)} in "
                f"{counted(one.files, 'file')}"
            )
            plot.bar(one.version, one.size_bytes / size, title, "bytes")
        return plot

    return figure("Bytes of each commit", draw)


def _delays(delays: Sequence[Delay]) -> str:
    if not delays:
        return _nothing("No rows with timestamps.")
    most = max(one.oldest_s for one in delays)
    unit, size = _scaled(most, _SPANS)

    def draw(width: int) -> Plot:
        plot = _over_versions(width, [one.version for one in delays], most / size)
        plot.axes("version", unit)
        for one in delays:
            title = f"version {one.version}: {brief(one.newest_s)} to {brief(one.oldest_s)}"
            plot.between(one.version, one.newest_s / size, one.oldest_s / size, title, "delay")
        return plot

    return figure("Age of rows when they were committed", draw)


def _ledger(ledgers: Mapping[int, PartitionLedger]) -> str:
    if not ledgers:
        return _nothing("No load yet.")
    parts = {p: terms_of([one]) for p, one in ledgers.items()}
    used = [term for term in TERMS if any(terms[term] for terms in parts.values())]
    unit, size = _scaled(max(one.end - one.start for one in ledgers.values()), _COUNTS)

    def draw(width: int) -> Plot:
        most = max(one.end - one.start for one in ledgers.values()) / size
        plot = Plot(width, max(ledgers) + _ROOM, max(most, 1.0), min(ledgers) - _ROOM)
        plot.axes("partition", unit)
        for partition, terms in parts.items():
            plot.stack(
                partition,
                [
                    (terms[t] / size, t, f"partition {partition}: {terms[t]:,} {_word(t)}")
                    for t in used
                ],
            )
        return plot

    totals = terms_of(list(ledgers.values()))
    names = [(term, f"{_word(term)}: {totals[term]:,}") for term in used]
    return figure("What became of every offset of each partition", draw, names)


_COUNTS = (("offsets", 1.0), ("thousand offsets", 1e3), ("million offsets", 1e6))


def _word(term: str) -> str:
    return term.replace("_", " ")


def _files(files: Sequence[DataFile]) -> str:
    if not files:
        return _nothing("No files.")
    sizes = sorted((file.size_bytes for file in files), reverse=True)
    unit, size = _scaled(sizes[0], _BYTES)
    # Enough points for any screen.
    step = max(1, len(sizes) // 400)
    points = [(float(at), sizes[at] / size) for at in range(0, len(sizes), step)]
    points.append((float(len(sizes)), sizes[-1] / size))

    def draw(width: int) -> Plot:
        plot = Plot(width, len(sizes), max(sizes[0] / size, 1.0))
        plot.axes("files, the largest first", unit)
        plot.steps(points, "sizes")
        return plot

    words = (
        f"<p class=faint>{counted(len(sizes), 'file')}, {size_words(sum(sizes))}; the median has "
        f"{size_words(sizes[len(sizes) // 2])}.</p>"
    )
    return words + figure("Sizes of files", draw)


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
    rows = "".join(
        f"<tr><td class=number>{one.partition}<td class=number>{one.position:,}"
        f"<td class=number>{'-' if one.end is None else f'{one.end:,}'}"
        f"<td class=number>{'-' if one.lag_offsets is None else f'{one.lag_offsets:,}'}"
        f"<td class=number>{'-' if one.lag_s is None else brief(one.lag_s)}"
        for one in status.partitions
    )
    heads = "".join(
        f"<th class=number>{name}"
        for name in ("partition", "position", "end of the topic", "lag, offsets", "lag, time")
    )
    return f"<div class=wide><table><tr>{heads}{rows}</table></div>"


def _nothing(words: str) -> str:
    return f"<p class=faint>{words}</p>"
