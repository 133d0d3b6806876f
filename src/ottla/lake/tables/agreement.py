"""Compares the log of a table format with the chain of manifests, both ways.

The chain says what loads did; the log says what readers see. Each of our commits in the log must be
a manifest of the chain with the same files and positions, and each manifest's files must be live in
the log. Other programs may have replaced files, for example by compaction. That is allowed if the
rows are the same, which the caller has to compare.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.base.quantities import counted
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.statistics import FileStatistics
from ottla.lake.tables.table import Agreement, FilesOfOthers, LiveFile, LogEntry, LogReading

_NAMED_MAX = 5


def compare(
    kind: str, reading: LogReading, chain: Sequence[tuple[Manifest, str | None]]
) -> Agreement:
    """Compare a log with the manifests of the chain and their digests, oldest first."""
    problems = list(reading.problems)
    if reading.newest.problem:
        problems.append(f"{kind}'s log contradicts itself: {reading.newest.problem}")
    by_version = {manifest.version: (manifest, digest) for manifest, digest in chain}
    problems += _of_entries(kind, reading, by_version)
    live: dict[str, DataFile] = {}
    for manifest, _ in chain:
        live_after(live, manifest)  # Contradictions within a manifest are reported with the chain.
    problems += _of_live(kind, reading.live, live)
    bounds = {path: found.bounds for path, found in reading.live.items() if path in live}
    remarks = _of_forgotten(kind, reading)
    others = _of_others(reading, live)
    if reading.is_shared:
        remarks += _of_shared(others)
        others = replace(others, instead={})
    return Agreement(problems, others, bounds, remarks, reading.is_shared)


def _of_shared(others: FilesOfOthers) -> list[str]:
    """Return what the proof does not cover in a table that another program made."""
    if not others.instead:
        return []
    rows = [file.rows for file in others.instead.values()]
    total = sum(filter(None, rows))
    known = f" with {counted(total, 'row')}" if None not in rows else ""
    return [
        f"{counted(len(rows), 'file')}{known} of other programs count in the table, too: the proof "
        "covers what ottla loaded"
    ]


def _of_forgotten(kind: str, reading: LogReading) -> list[str]:
    """Return a note about loads whose log entries or snapshots have expired."""
    if reading.is_whole:
        return []
    first = min((one.load.version for one in reading.entries if one.load), default=None)
    until = reading.newest.version if first is None else first - 1
    if not until:
        return []
    loads = f"loads 1 to {until}" if until > 1 else "load 1"
    return [
        f"{kind}'s log has no entries of {loads} any more (they have expired): what these added "
        "and removed is proven by their manifests and by the files that count now, and not "
        "compared with the log"
    ]


def _of_entries(
    kind: str, reading: LogReading, chain: Mapping[int, tuple[Manifest, str | None]]
) -> list[str]:
    problems = []
    ours = [entry for entry in reading.entries if entry.load is not None]
    last = 0 if reading.is_whole else None
    for entry in ours:
        assert entry.load is not None
        version = entry.load.version
        if last is not None and version != last + 1:
            problems.append(f"{entry.name} is of load {version}, where {last + 1} has to follow")
        last = version
        manifest, digest = chain.get(version, (None, None))
        if manifest is None:
            problems.append(f"{entry.name} names load {version}, of which no manifest is there")
        elif digest != entry.load.digest:
            problems.append(
                f"{entry.name} names another manifest of load {version} than the one of the chain"
            )
        else:
            problems += _of_entry(entry, manifest)
    if ours and last != reading.newest.version:
        problems.append(
            f"{kind}'s log says that load {reading.newest.version} is the newest, and its entries "
            f"end with load {last}"
        )
    return problems


def _of_entry(entry: LogEntry, manifest: Manifest) -> list[str]:
    problems = []
    added = {file.path: file.size_bytes for file in manifest.files}
    removed = {file.path for file in manifest.removed}
    if entry.added != added:
        wrong = sorted(
            path
            for path in entry.added.keys() | added.keys()
            if entry.added.get(path) != added.get(path)
        )
        problems.append(
            f"{entry.name} does not add the files of load {manifest.version}: {_some(wrong)}"
        )
    if entry.removed != removed:
        wrong = sorted(entry.removed ^ removed)
        problems.append(
            f"{entry.name} does not remove what load {manifest.version} does: {_some(wrong)}"
        )
    if entry.positions != manifest.positions:
        problems.append(f"{entry.name} has other positions than the manifest of its load")
    return problems


def _of_live(
    kind: str, by_log: Mapping[str, LiveFile], by_chain: Mapping[str, DataFile]
) -> list[str]:
    problems = []
    for path, found in by_log.items():
        if found.problem:
            problems.append(f"{path} {found.problem}")
        file = by_chain.get(path)
        if file is None:
            continue
        if found.size_bytes != file.size_bytes or found.rows not in (None, file.rows):
            problems.append(
                f"{kind}'s log says that {path} has {found.rows} rows in {found.size_bytes} bytes, "
                f"and its manifest {file.rows} rows in {file.size_bytes} bytes"
            )
        if found.event not in (None, file.event):
            problems.append(
                f"{kind}'s log says that {path} is of {found.event}, and its manifest of "
                f"{file.event}: queries may pass over it"
            )
    return problems


def bounds_problems(
    kind: str, path: str, bounds: Mapping[str, tuple[int, int]], footer: FileStatistics
) -> list[str]:
    """Return problems where the log's bounds exclude values that the file's own footer includes."""
    problems = []
    for name, (low, high) in bounds.items():
        found = footer.columns.get(name)
        if found is not None and not low <= found.low <= found.high <= high:
            problems.append(
                f"{kind}'s log says that {path} has {low} to {high} in column {name}, and the file "
                f"has {found.low} to {found.high}: queries may pass over it"
            )
    return problems


def _of_others(reading: LogReading, by_chain: Mapping[str, DataFile]) -> FilesOfOthers:
    foreign = [entry for entry in reading.entries if entry.load is None]
    known = {path for entry in foreign for path in (*entry.added, *entry.removed)}
    return FilesOfOthers(
        gone=[file for path, file in by_chain.items() if path not in reading.live],
        instead={
            path: reading.live[path] for path in sorted(reading.live.keys() - by_chain.keys())
        },
        by=[
            f"{entry.operation} ({entry.name})" for entry in foreign if entry.added or entry.removed
        ],
        known=frozenset({*known, *reading.live}),
    )


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_MAX} more" if len(paths) > _NAMED_MAX else ""
    return ", ".join(paths[:_NAMED_MAX]) + more
