"""Computes a table's live files, which a commit added and no later commit removed. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace

from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.model.plan import Range
from ottla.ledger.partition import PartitionLedger, Unreadable


def live_after(live: MutableMapping[str, DataFile], manifest: Manifest) -> list[str]:
    """Apply `manifest` to the live files before it. Returns problems, such as an unknown file."""
    problems = _applied(live, manifest.removed, manifest.files)
    return problems + list(_left_in_ranges(live, manifest, manifest.files))


def letters_after(letters: MutableMapping[str, DataFile], manifest: Manifest) -> list[str]:
    """Apply `manifest` to the live files of dead letters before it. Returns problems."""
    problems = _applied(letters, manifest.removed_dead_letters, manifest.dead_letters)
    return problems + list(_left_in_ranges(letters, manifest, manifest.dead_letters))


def live_letters(manifests: Iterable[Manifest]) -> list[DataFile]:
    """Return the files of dead letters that are live after all of `manifests`."""
    letters: dict[str, DataFile] = {}
    for manifest in manifests:
        letters_after(letters, manifest)
    return list(letters.values())


def _left_in_ranges(
    live: Mapping[str, DataFile], manifest: Manifest, added: Sequence[DataFile]
) -> Iterator[str]:
    """Yield a problem for each older file that a replacement leaves in its ranges."""
    if manifest.kind != "replacement":
        return
    ranges = {one.partition: one for one in manifest.ledgers}
    new = {file.path for file in added}
    for file in live.values():
        wanted = ranges.get(file.partition)
        if wanted is None or file.path in new:
            continue
        if file.start < wanted.end and wanted.start < file.end:
            yield f"it leaves {file.path}, which has offsets of a range that it replaces"


def left_out(manifests: Iterable[Manifest]) -> list[Unreadable]:
    """Return the ranges that loads skipped as unreadable and that no replacement has read since."""
    found: list[Unreadable] = []
    for manifest in manifests:
        if manifest.kind == "replacement":
            for ledger in manifest.ledgers:
                found = [piece for one in found for piece in _outside(one, ledger)]
        found += manifest.skipped
    return found


def _outside(one: Unreadable, ledger: PartitionLedger) -> Iterator[Unreadable]:
    if one.partition != ledger.partition:
        yield one
        return
    for start, end in (
        (one.start, min(one.end, ledger.start)),
        (max(one.start, ledger.end), one.end),
    ):
        if start < end:
            yield replace(one, start=start, end=end)


def removed_by(manifests: Iterable[Manifest], oldest: int) -> list[DataFile]:
    """Return the files that were removed by version `oldest` or earlier.

    No version from `oldest` on has them, because a removed file is never added again.
    """
    return [
        file
        for manifest in manifests
        if manifest.version <= oldest
        for file in (
            *manifest.removed,
            *manifest.removed_hidden,
            *manifest.removed_dead_letters,
        )
    ]


def oldest_of(manifests: Sequence[Manifest], before_ms: int | None, keep: int | None) -> int:
    """Return the oldest version to keep; 0 to keep all.

    Versions that were current at `before_ms` or later are kept, and so are the last `keep`
    versions.
    """
    newest = manifests[-1].version if manifests else 0
    since, last = newest, newest
    if before_ms is not None:
        # Clocks of drivers differ, so use the first commit, in version order, that is too recent.
        young = (one.version for one in manifests if one.created_ms > before_ms)
        since = max(0, next(young, newest + 1) - 1)
    if keep is not None:
        last = max(0, newest - keep + 1)
    return min(since, last)


def versions_without_files(
    manifests: Sequence[Manifest], present: Collection[str]
) -> list[tuple[int, int]]:
    """Return ranges of versions (first, last) that cannot be read because files are missing."""
    added = {file.path: one.version for one in manifests for file in one.files}
    gone = {
        version
        for one in manifests
        for file in one.removed
        if file.path not in present
        for version in range(added.get(file.path, one.version), one.version)
    }
    starts = sorted(version for version in gone if version - 1 not in gone)
    ends = sorted(version for version in gone if version + 1 not in gone)
    return list(zip(starts, ends, strict=True))


def hidden_after(hidden: MutableMapping[str, DataFile], manifest: Manifest) -> list[str]:
    """Apply `manifest` to the hidden files of a changelog table. Returns problems."""
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
    """Yield all loaded offsets of each partition as ranges, with the live files of each.

    A range covers one load, or several loads if a file holds rows of several.
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
    """Yield ranges and their files, cut at each of `ends` that is not inside a file.

    The first of `ends` is the start of the first range.
    """
    start, first, behind = ends[0], 0, 0
    reached = start  # The highest end of the files so far, as files of different buckets overlap.
    for end in ends[1:]:
        while behind < len(files) and files[behind].start < end:
            reached = max(reached, files[behind].end)
            behind += 1
        if start < end and (behind == first or reached <= end or end == ends[-1]):
            yield start, end, list(files[first:behind])
            start, first = end, behind
