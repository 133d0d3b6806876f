"""Which files of a table count: those that a commit added, and none has removed since. Pure."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence

from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.plan import Range


def live_after(live: MutableMapping[str, DataFile], manifest: Manifest) -> list[str]:
    """Apply `manifest` to the files that counted before it; return what in it contradicts them."""
    left = {file.path for file in manifest.removed}
    problems = (
        list(_left_in_ranges((f for p, f in live.items() if p not in left), manifest))
        if manifest.kind == "replacement"
        else []
    )
    return problems + _applied(live, manifest.removed, manifest.files)


def _left_in_ranges(live: Iterable[DataFile], manifest: Manifest) -> Iterator[str]:
    ranges = {one.partition: one for one in manifest.ledgers}
    for file in live:
        wanted = ranges.get(file.partition)
        if wanted is not None and file.start < wanted.end and wanted.start < file.end:
            yield f"it leaves {file.path}, which has offsets of a range that it replaces"


def removed_until(manifests: Iterable[Manifest], time_ms: int) -> list[DataFile]:
    """The files that commits up to `time_ms` removed."""
    return [
        file
        for manifest in manifests
        if manifest.created_ms <= time_ms
        for file in (*manifest.removed, *manifest.removed_hidden)
    ]


def hidden_after(hidden: MutableMapping[str, DataFile], manifest: Manifest) -> list[str]:
    """The same of the files of a changelog's state that readers do not see."""
    return _applied(hidden, manifest.removed_hidden, manifest.hidden)


def _applied(
    live: MutableMapping[str, DataFile], removed: Sequence[DataFile], added: Sequence[DataFile]
) -> list[str]:
    problems = []
    for file in removed:
        if live.get(file.path) != file:
            problems.append(f"it removes {file.path}, which does not count like that")
        live.pop(file.path, None)
    for file in added:
        if file.path in live:
            problems.append(f"it names {file.path}, which counts already")
        live[file.path] = file
    return problems


def ranges_with_files(
    manifests: Iterable[Manifest], live: Iterable[DataFile]
) -> Iterator[tuple[Range, list[DataFile]]]:
    """Yield all that was loaded of each partition, in ranges with the files that hold them.

    A range is that of one load, or of several where a file holds rows of several.
    """
    files: dict[int, list[DataFile]] = {}
    for file in live:
        files.setdefault(file.partition, []).append(file)
    ends: dict[int, list[int]] = {}
    topic = ""
    for manifest in manifests:
        topic = manifest.topic
        for ledger in manifest.ledgers if manifest.kind == "load" else ():
            ends.setdefault(ledger.partition, [ledger.start]).append(ledger.end)
    for partition, of_loads in ends.items():
        of_partition = sorted(files.get(partition, ()), key=lambda file: file.start)
        for start, end, held in _cut(of_loads, of_partition):
            yield Range(topic, partition, start, end), held


def _cut(
    ends: Sequence[int], files: Sequence[DataFile]
) -> Iterator[tuple[int, int, list[DataFile]]]:
    """Cut at each of `ends` (the first is the start) that lies inside no file."""
    start, first = ends[0], 0
    for end in ends[1:]:
        behind = first
        while behind < len(files) and files[behind].start < end:
            behind += 1
        if start < end and (behind == first or files[behind - 1].end <= end or end == ends[-1]):
            yield start, end, list(files[first:behind])
            start, first = end, behind
