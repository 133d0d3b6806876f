"""Chooses the files to merge: small neighbours in the order of their offsets. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ottla.lake.model.layout import layout_of
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema

# A file of more than this fraction of the target stays as it is.
_SMALL = 0.75


def columns_of(manifests: Sequence[Manifest]) -> Mapping[str, TableSchema | None]:
    """Return the columns of each file, by its path: those of the commit that added it."""
    return {file.path: manifest.table_schema for manifest in manifests for file in manifest.files}


def groups(
    live: Sequence[DataFile],
    columns: Mapping[str, TableSchema | None],
    newest: TableSchema | None,
    target_bytes: int,
) -> list[tuple[DataFile, ...]]:
    """Return groups of two files or more, each of at most `target_bytes`.

    No live file has offsets between those of a group's files. Files of different event-time buckets
    are never mixed. Files with older columns get the newest columns, unless only one of the two
    keeps the raw columns.
    """
    keep_raw = layout_of(newest).keep_raw
    small = {
        file.path
        for file in live
        if file.size_bytes <= _SMALL * target_bytes
        and layout_of(columns[file.path]).keep_raw == keep_raw
    }
    in_order = sorted(live, key=lambda file: (file.partition, file.event, file.start))
    return [
        group
        for _, of_partition in groupby(in_order, key=lambda file: (file.partition, file.event))
        for is_small, run in groupby(of_partition, key=lambda file: file.path in small)
        if is_small
        for group in _filled(run, target_bytes)
        if len(group) > 1
    ]


def _filled(run: Iterator[DataFile], target_bytes: int) -> Iterator[tuple[DataFile, ...]]:
    group: list[DataFile] = []
    size = 0
    for file in run:
        if group and size + file.size_bytes > target_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    yield tuple(group)
