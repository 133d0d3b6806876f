"""The report of a table as one HTML page: commits, age of rows, ledger, files.

The page is one file without scripts. It fits wide and narrow screens, and light and dark themes.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted, iso, size_words
from ottla.lake.edges.metrics import replace_file
from ottla.lake.edges.status import (
    TERMS,
    Commit,
    TableStatus,
    commits,
    ledger_of_table,
    now_ms,
    status,
    terms_of,
)
from ottla.lake.job.progress import brief
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.store.store import FileStore
from ottla.lake.tables.opening import existing_table
from ottla.ledger.partition import PartitionLedger

# At most this many of the newest commits are shown.
_SHOWN = 100
# At most this many footers are read for the ages of rows. Each is a request to an object store.
_FOOTERS_MAX = 400
_PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #5d6878;
  --grid: #e4e8ee; --card: #f5f7fa }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c;
  --faint: #a3adba; --grid: #2a313b; --card: #1a2029 }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 900px; margin: 2rem auto; padding: 0 1rem; -webkit-text-size-adjust: 100% }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin-bottom: .3rem; overflow-wrap: anywhere }}
h2 {{ font-size: 1.25rem; margin: 2.2rem 0 .4rem }} h2 + p {{ margin-top: 0 }}
.faint {{ color: var(--faint) }} .made {{ color: var(--faint); margin-top: 0;
  overflow-wrap: anywhere }}
.numbers {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  gap: .6rem; padding: 0; margin: 1.2rem 0 }}
.numbers div {{ background: var(--card); border-radius: .5rem; padding: .6rem .8rem }}
.numbers dt {{ color: var(--faint); font-size: .85rem }}
.numbers dd {{ margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--grid);
  vertical-align: top }} th {{ color: var(--faint); font-weight: normal }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }}
.when {{ white-space: nowrap }}
div.wide {{ overflow-x: auto }}
</style>
<h1>{title}</h1><p class=made>{table}<br>Made {made}.</p>
<dl class=numbers>{numbers}</dl>
<h2>Commits</h2>
<p class=faint>The age of rows is how old they were when they were committed, by their timestamps.
</p>{older}{commits}
<h2>What became of every offset</h2>
<p class=faint>Each partition's offsets from the first load's start to its position.</p>{ledger}
<h2>Sizes of the files that count</h2>{files}
<h2>On record</h2>{record}
<h2>Partitions</h2>{partitions}
</html>
"""


def write_report(
    path: str, target: str, bootstrap: str | None, store_options: Mapping[str, str] | None = None
) -> None:
    """Write the report of the table in `target` to `path`, with its lag if `bootstrap` is given.

    Raises OttlaError.
    """
    found = status(target, bootstrap, store_options)
    table = existing_table(target, store_options)
    manifests = list(table.history())
    delays = _delays(table.store, manifests)
    page = report_page(found, commits(manifests), ledger_of_table(manifests), delays, now_ms())
    replace_file(path, page)


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
    made_ms: int,
) -> str:
    """Return the page. `delays` has the ages of rows of the newest commits."""
    shown = commits[-_SHOWN:]
    return _PAGE.format(
        title=html.escape(f"{status.topic or 'no topic yet'} in the lake"),
        made=iso(made_ms)[:19].replace("T", " ") + " UTC",
        table=html.escape(status.table),
        numbers=_numbers(status),
        commits=_commits(shown, delays),
        older=f"<p class=faint>The newest {_SHOWN} of {len(commits):,} commits.</p>"
        if len(commits) > _SHOWN
        else "",
        ledger=_ledger(ledgers),
        files=_files(status.live),
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
    """Return an HTML table of numbers. The first column names the row."""
    head = "".join(f"<th class=number>{html.escape(name)}" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td class=number>{html.escape(cell)}" for cell in row) for row in rows
    )
    return f"<div class=wide><table><tr>{head}{body}</table></div>"


def _commits(commits: Sequence[Commit], delays: Sequence[Delay]) -> str:
    """Return an HTML table of `commits`, newest first, with the ages of their rows."""
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


def _delays(store: FileStore, manifests: Sequence[Manifest]) -> list[Delay]:
    """Return the ages of rows of the newest loads whose files still exist, oldest load first."""
    found: list[Delay] = []
    left = _FOOTERS_MAX
    for manifest in reversed(manifests[-_SHOWN:]):
        left -= len(manifest.files)
        if left < 0:
            break
        if manifest.kind != "load":
            continue
        times_ms: list[float] = []
        for file in manifest.files:
            # The file may have been deleted after a compaction.
            with suppress(OSError, OttlaError):
                times_ms += _times_ms(store, file.path)
        if times_ms:
            newest_s = (manifest.created_ms - max(times_ms)) / 1000
            oldest_s = (manifest.created_ms - min(times_ms)) / 1000
            found.append(Delay(manifest.version, max(0.0, oldest_s), max(0.0, newest_s)))
    return found[::-1]


def _times_ms(store: FileStore, path: str) -> list[float]:
    """Return the lowest and the highest timestamp of each row group that has any."""
    with store.open(path) as file:
        metadata = pq.read_metadata(file)
    found: list[float] = []
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column: Any = metadata.row_group(group).column(number)
            statistics = column.statistics
            if column.path_in_schema == "timestamp" and statistics and statistics.has_min_max:
                found += [statistics.min.timestamp() * 1000, statistics.max.timestamp() * 1000]
    return found
