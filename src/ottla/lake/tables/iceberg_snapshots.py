"""How many snapshots an Iceberg table keeps, so that its commits do not grow with their number.

Each commit reads and writes the table's metadata, which has an entry for every snapshot. The
table's property `ottla.snapshots.keep` says how many of the current branch stay; older ones expire
with our commits. Which files count does not change by that, nor what the manifests prove: only
readers that travel back in time see fewer versions. Without the property none expires.
"""

from collections.abc import Sequence
from typing import Any

from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry
from pyiceberg.table.update.snapshot import ExpireSnapshots

KEEP = "ottla.snapshots.keep"
KEPT_BY_DEFAULT = "100"
# At once, where a table has many: each costs a look at the table's metadata.
_EXPIRED_AT_ONCE = 20


class _SharedSnapshot(Snapshot):  # type: ignore[misc]  # The library has no types here.
    """A snapshot that copies of the metadata have in common."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "_SharedSnapshot":
        return self


class _SharedLogEntry(SnapshotLogEntry):  # type: ignore[misc]  # As above.
    """Likewise of the log of snapshots."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "_SharedLogEntry":
        return self


def share_snapshots(table: Table) -> None:
    """Let a transaction of `table` share snapshots, which it never changes.

    The library copies the whole metadata a dozen times in each transaction.
    """
    for snapshot in table.metadata.snapshots:
        object.__setattr__(snapshot, "__class__", _SharedSnapshot)
    for entry in table.metadata.snapshot_log:
        object.__setattr__(entry, "__class__", _SharedLogEntry)


def expire_old(transaction: Transaction, table: Table) -> None:
    """Let the oldest snapshots of the current branch go, as the table's property says."""
    old = _beyond(table, table.metadata.properties.get(KEEP, ""))[-_EXPIRED_AT_ONCE:]
    if old:
        ExpireSnapshots(transaction).by_ids(list(old)).commit()


def _beyond(table: Table, keep: str) -> Sequence[int]:
    """Ids of the snapshots behind the newest `keep`, newest first, without those with a name."""
    if not keep.isdecimal():
        return ()
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    named = {ref.snapshot_id for ref in table.metadata.refs.values()}
    found: list[int] = []
    at = table.metadata.current_snapshot_id
    while at is not None and at in by_id:
        found.append(at)
        at = by_id.pop(at).parent_snapshot_id
    # One more comes with this commit.
    return [one for one in found[max(1, int(keep) - 1) :] if one not in named]
