"""Which files the log of an Iceberg table consists of: metadata, lists of manifests, manifests.

    DIR/metadata/00003-<uuid>.metadata.json
    DIR/metadata/snap-<id>-….avro, …-m0.avro

Each has a name of its own and is written once. Expiry removes those that no snapshot needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from ottla.lake.log.records import NewFiles
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.iceberg_catalog import CatalogSettings
from ottla.lake.tables.iceberg_entries import path_below
from ottla.lake.tables.on_record.iceberg_catalog_file import catalog_state


def new_files(
    store: FileStore, table: Table, settings: CatalogSettings, since: Mapping[str, Any] | None
) -> NewFiles:
    """The files that came into the log since the mark `since`."""
    before = since or {"metadata": None, "sequence": -1}
    metadata = _metadata_files(table)
    if before["metadata"] in metadata:
        metadata = metadata[metadata.index(before["metadata"]) + 1 :]
    fresh = [
        snapshot
        for snapshot in table.metadata.snapshots
        if (snapshot.sequence_number or 0) > before["sequence"]
    ]
    own = settings.own_file(store)
    return NewFiles(
        _below(table, [*metadata, *_files_of(table, fresh, is_all=since is None)]),
        {
            "metadata": table.metadata_location,
            "sequence": table.metadata.last_sequence_number,
            "updated_ms": table.metadata.last_updated_ms,
        },
        catalog_state(own) if own is not None else None,
    )


def needed(table: Table, gone: Sequence[str]) -> list[str]:
    """Of files that are gone, those that the table's current metadata names."""
    lists = [one.manifest_list for one in table.metadata.snapshots]
    named = set(_below(table, [*_metadata_files(table), *lists]))
    found = [path for path in gone if path in named]
    left = set(gone) - set(found)
    if left:
        kept = [one for one in table.metadata.snapshots if path_of(table, one) not in gone]
        files = set(_below(table, _files_of(table, kept, is_all=True)))
        found += [path for path in gone if path in left & files]
    return found


def grew_out_of(table: Table, known: Mapping[str, Any]) -> bool:
    """Whether the current metadata came after that of the mark `known`."""
    if known["metadata"] in _metadata_files(table):
        return True
    return bool(table.metadata.last_updated_ms > known["updated_ms"])


def path_of(table: Table, snapshot: Snapshot) -> str:
    """The path of a snapshot's list of manifests."""
    return path_below(table, snapshot.manifest_list)


def _metadata_files(table: Table) -> list[str]:
    """Metadata files from the oldest that is known to the current one."""
    return [*(one.metadata_file for one in table.metadata.metadata_log), table.metadata_location]


def _files_of(table: Table, snapshots: Sequence[Snapshot], *, is_all: bool) -> Iterable[str]:
    """The lists of manifests of some snapshots, and manifests: their own, or all they have."""
    found: dict[str, None] = {}
    for snapshot in snapshots:
        found[snapshot.manifest_list] = None
        for manifest in snapshot.manifests(table.io):
            if is_all or manifest.added_snapshot_id == snapshot.snapshot_id:
                found[manifest.manifest_path] = None
    return found


def _below(table: Table, addresses: Iterable[str]) -> list[str]:
    """Paths below the table's root; files elsewhere are not ours to read."""
    paths = (path_below(table, address) for address in addresses)
    return [path for path in paths if "://" not in path and not path.startswith("/")]
