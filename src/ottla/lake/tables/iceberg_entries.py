"""Converts the snapshots and files of an Iceberg table to the classes of `format_log`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntryStatus
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, Transaction
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType, NestedField, TimestamptzType

from ottla.lake.model.event_times import NULL, Buckets, By, bucket_of, column_name, number_of
from ottla.lake.model.manifest import DataFile
from ottla.lake.tables.format_log import (
    DIGEST_KEY,
    POSITIONS_KEY,
    VERSION_KEY,
    LogEntry,
    NamedLoad,
    positions_of,
)
from ottla.lake.tables.table import LiveFile

_TRANSFORMS: Mapping[By, Any] = {
    "day": DayTransform(),
    "hour": HourTransform(),
    "month": MonthTransform(),
}


def partition_table(transaction: Transaction, buckets: Buckets) -> None:
    """Partition a table by event time if it has the column and is not partitioned yet."""
    now = transaction.table_metadata
    if buckets.by == "none" or not now.spec().is_unpartitioned():
        return
    if buckets.column in now.schema().column_names:
        with transaction.update_spec() as spec:
            spec.add_field(buckets.column, _TRANSFORMS[buckets.by], column_name(buckets.by))


def partition_of(file: DataFile, buckets: Buckets) -> Record:
    """Return the partition of a file of one event-time bucket, as Iceberg's transform gives it."""
    return Record() if buckets.by == "none" else Record(number_of(file.event, buckets.by))


def bucket_in_log(table: Table, spec_id: int, file: IcebergFile) -> str | None:
    """Return a file's event-time bucket; None if the file is partitioned in another way."""
    by = _unit(table.specs().get(spec_id))
    if by is None or len(file.partition) != 1:
        return None
    number = file.partition[0]
    return NULL if number is None else bucket_of(number, by)


def _unit(spec: PartitionSpec | None) -> By | None:
    for by, transform in _TRANSFORMS.items():
        if spec is not None and [one.transform for one in spec.fields] == [transform]:
            return by
    return None


def partition_problems(table: Table, buckets: Buckets, *, has_files: bool) -> list[str]:
    """Return how other programs have changed the table's partitioning."""
    spec, columns = table.spec(), table.schema()
    found = [(columns.find_column_name(one.source_id), one.transform) for one in spec.fields]
    wanted = [] if buckets.by == "none" else [(buckets.column, _TRANSFORMS[buckets.by])]
    if found == wanted or (not found and not has_files):
        return []
    return [f"the Iceberg table: it is partitioned by {spec if found else 'nothing'}"]


# Types whose bounds in a file's footer are exact.
BOUNDED = (IntegerType, LongType, TimestamptzType)
_FIELD_ID = re.compile(r"\d+: ")
# The table property with the number of snapshots to keep in the current branch. Each commit reads
# and writes metadata of every snapshot, so old ones expire. Without the property none expires.
KEEP = "ottla.snapshots.keep"
KEPT_BY_DEFAULT = "100"
# At most this many expire in one commit, because each costs a read of the table's metadata.
_EXPIRED_AT_ONCE = 20


def named_by(table: Table) -> NamedLoad:
    """Return the newest load, from the table's properties and the current snapshot's ancestors."""
    properties = table.metadata.properties
    version = properties.get(VERSION_KEY)
    by_table = NamedLoad(int(version), properties[DIGEST_KEY]) if version else NamedLoad()
    for snapshot in _ancestry(table):
        load = _load_of(snapshot)
        if load is None:
            continue
        if load == by_table:
            return load
        return NamedLoad(
            load.version,
            load.digest,
            f"the newest load in the history of its snapshots is {load.version} "
            f"({load.digest[:12]}…), and {by_table.version} ({by_table.digest[:12]}…) by its "
            "properties: it was rolled back, or one of them was changed",
        )
    # No snapshot of a load is left: either all have expired, or the table was rolled back to a
    # snapshot before the first load.
    oldest = min(map(_age, _ancestry(table)), default=(0, 0))
    is_younger = any(
        _load_of(one) == by_table and _age(one) > oldest for one in table.metadata.snapshots
    )
    if by_table.version and (is_younger or not _is_cut(table)):
        return NamedLoad(
            0,
            "",
            f"its properties name load {by_table.version}, and none of its current "
            "history does: it was rolled back",
        )
    return by_table


def read_entries(table: Table) -> tuple[list[LogEntry], bool, list[str]]:
    """Return the current snapshot and its ancestors as log entries, oldest first.

    Also returns whether the table's first snapshot is among them, and any problems.
    """
    entries = []
    problems: list[str] = []
    for snapshot in _ancestry(table):
        added, removed = {}, set()
        for manifest in snapshot.manifests(table.io):
            if manifest.content == ManifestContent.DELETES:
                continue
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.snapshot_id != snapshot.snapshot_id:
                    continue
                path = path_below(table, entry.data_file.file_path)
                if entry.status == ManifestEntryStatus.DELETED:
                    removed.add(path)
                elif entry.status == ManifestEntryStatus.ADDED:
                    added[path] = entry.data_file.file_size_in_bytes
        name = f"Iceberg's snapshot {snapshot.snapshot_id}"
        summary = snapshot.summary
        operation = str(summary.operation.value) if summary else "unknown"
        load = positions = None
        try:
            load = _load_of(snapshot)
            if load is not None and summary is not None:
                positions = positions_of(summary.additional_properties[POSITIONS_KEY])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{name} can't be read: {error}")
        entries.append(LogEntry(name, operation, added, frozenset(removed), load, positions))
    entries.reverse()
    return entries, not _is_cut(table), problems


def live_files(table: Table) -> dict[str, LiveFile]:
    """Return the files of the current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return {}
    columns = {one.field_id: one for one in table.schema().fields}
    live = {}
    cut = False
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if file.content != DataFileContent.DATA:
                cut = True
                continue
            low, high = file.lower_bounds or {}, file.upper_bounds or {}
            bounds = {
                column.name: (from_bytes(kind, low[at]), from_bytes(kind, high[at]))
                for at, column in columns.items()
                if isinstance(kind := column.field_type, BOUNDED) and at in low and at in high
            }
            path = path_below(table, file.file_path)
            event = bucket_in_log(table, manifest.partition_spec_id, file)
            live[path] = LiveFile(
                path, file.file_size_in_bytes, file.record_count, bounds, event=event
            )
    if cut:
        problem = "may have rows that another program deleted (the table has delete files)"
        live = {path: replace(one, problem=problem) for path, one in live.items()}
    return live


def snapshots_before(table: Table, oldest: int) -> list[int]:
    """Return the ids of the snapshots before the snapshot of load `oldest`.

    If that snapshot has expired, the snapshot of the newest load before it is used instead.
    Snapshots that a branch or tag names are left out.
    """
    named = {ref.snapshot_id for ref in table.metadata.refs.values()}
    ancestry = _ancestry(table)
    for snapshot in ancestry:
        load = _load_of(snapshot)
        if load is not None and load.version <= oldest:
            break
    return [one.snapshot_id for one in ancestry if one.snapshot_id not in named]


def divided_by_versions(table: Table, old: Sequence[int]) -> tuple[set[str], set[str]]:
    """Return data files of all snapshots but `old`, and metadata files that only `old` use."""
    kept = [one for one in table.metadata.snapshots if one.snapshot_id not in old]
    manifests = {one.manifest_path: one for each in kept for one in each.manifests(table.io)}
    paths = {
        path_below(table, entry.data_file.file_path)
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }
    gone = [one for one in table.metadata.snapshots if one.snapshot_id in old]
    metadata = {one.manifest_path for each in gone for one in each.manifests(table.io)}
    metadata |= {each.manifest_list for each in gone}
    metadata -= {*manifests, *(each.manifest_list for each in kept)}
    below = (path_below(table, address) for address in metadata)
    return paths, {path for path in below if path.startswith("metadata/")}


def expire_old(transaction: Transaction, table: Table) -> None:
    """Expire the oldest snapshots of the current branch, if there are more than the table keeps."""
    keep = table.metadata.properties.get(KEEP, "")
    if not keep.isdecimal():
        return
    named = {ref.snapshot_id for ref in table.metadata.refs.values()}
    # This commit adds one more snapshot.
    beyond = [one.snapshot_id for one in _ancestry(table)][max(1, int(keep) - 1) :]
    old = [one for one in beyond if one not in named][-_EXPIRED_AT_ONCE:]
    if old:
        ExpireSnapshots(transaction).by_ids(old).commit()


def schema_problems(table: Table, columns: pa.Schema) -> list[str]:
    """Return how the table's columns differ from those of the files."""
    mapping = table.name_mapping()
    if mapping is None:
        return ["the Iceberg table has no name mapping, so that files have no columns in it"]
    return [f"the Iceberg table: {one}" for one in missing_columns(table, columns, mapping)]


def missing_columns(table: Table, columns: pa.Schema, mapping: NameMapping) -> list[str]:
    """Return the columns that the table lacks or has with another type."""
    found = {one.name: _words(one) for one in table.schema().fields}
    problems = []
    for name in columns.names:
        try:
            (wanted,) = pyarrow_to_schema(pa.schema([columns.field(name)]), mapping).fields
        except ValueError:
            problems.append(f"it has no column {name}")
            continue
        if name not in found:
            problems.append(f"it has no column {name}")
        elif found[name] != _words(wanted):
            problems.append(
                f"its column {name} is {found[name]}, and {_words(wanted)} in the files"
            )
    return problems


def _words(column: NestedField) -> str:
    """Return the type of a column without field ids."""
    return _FIELD_ID.sub("", str(column.field_type))


def path_below(table: Table, address: str) -> str:
    """Return a file's path relative to the table's root, or its full address if it is elsewhere."""
    return address.removeprefix(f"{table.location().rstrip('/')}/")


def _ancestry(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and its ancestors that have not expired, newest first."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    at = table.metadata.current_snapshot_id
    while at is not None and at in by_id:
        snapshot = by_id.pop(at)
        yield snapshot
        at = snapshot.parent_snapshot_id


def _is_cut(table: Table) -> bool:
    """Return whether an ancestor of the current snapshot has expired."""
    # Some programs keep the id of an expired parent, and some remove it.
    return any(
        oldest.parent_snapshot_id is not None or (oldest.sequence_number or 0) > 1
        for oldest in list(_ancestry(table))[-1:]
    )


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number or 0, snapshot.timestamp_ms


def _load_of(snapshot: Snapshot) -> NamedLoad | None:
    said = snapshot.summary.additional_properties if snapshot.summary else {}
    if VERSION_KEY not in said:
        return None
    return NamedLoad(int(said[VERSION_KEY]), said[DIGEST_KEY])
