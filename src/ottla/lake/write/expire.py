"""Expiry: deletes files that are no longer live, once no reader can be using them.

A file that a commit removed stays in the store for readers that are using it, and for older
versions of the table that readers may ask for. An expiry keeps the newest versions, by time or by
number, and deletes the files that only older versions have. Manifests are never deleted: they are
the proof of the table, and name the deleted files too.

First the old versions are removed from the log of Delta or Iceberg, then files are deleted. If an
expiry is killed at any step, it can be run again.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.live import oldest_of, removed_by
from ottla.lake.model.manifest import DataFile
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.opening import existing_table, open_table, place_of
from ottla.lake.tables.table import LakeTable

OLDER_THAN_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """The files that an expiry deleted, or would delete.

    `oldest` is the oldest version that can be read afterwards; 0 if no version was dropped. `kept`
    are files that are not live, but that remaining versions or other programs may need.
    """

    oldest: int
    removed: tuple[str, ...]
    removed_bytes: int
    kept: tuple[str, ...]
    seconds: float


def expire(
    target: str,
    *,
    older_than_ms: int | None = None,
    keep: int | None = None,
    dry_run: bool = False,
    store_options: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> ExpiryResult:
    """Delete files of the table in `target` that only old versions have.

    Versions that were current within the last `older_than_ms` are kept, and so are the last `keep`
    versions. If neither is given, versions of the last week are kept. The newest version is always
    kept. Old snapshots of an Iceberg table are removed too. A `dry_run` changes nothing. If an
    expiry is killed at any step, it can be run again. Raises OttlaError.
    """
    began = time.monotonic()
    if (older_than_ms or 0) < 0 or (keep is not None and keep < 1):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "versions expire after a span of time, not before, and one of them is always kept",
        )
    if older_than_ms is None and keep is None:
        older_than_ms = OLDER_THAN_MS
    now_ms = time.time_ns() // 1_000_000
    before_ms = None if older_than_ms is None else now_ms - older_than_ms
    with as_storage_error(place_of(target, store_options)):
        # Open an existing table, so that a mistyped target does not create one.
        table = existing_table(target, store_options)
        if not dry_run:
            table = open_table(target, None, store_options)
        oldest = oldest_of(list(table.history()), before_ms, keep)
        removed, kept = expire_until(table, oldest, dry_run=dry_run, on_step=on_step)
        if not dry_run:
            table.remove_orphans()
    return ExpiryResult(
        oldest,
        tuple(file.path for file in removed),
        sum(file.size_bytes for file in removed),
        tuple(file.path for file in kept),
        time.monotonic() - began,
    )


def expire_until(
    table: LakeTable,
    oldest: int,
    *,
    dry_run: bool = False,
    on_step: Callable[[str], None] = lambda _step: None,
) -> tuple[list[DataFile], list[DataFile]]:
    """Delete the files that only versions before `oldest` have.

    Returns the deleted files, and the files that are no longer live but stay.
    """
    old = removed_by(table.history(), oldest)
    folders = {file.path.rpartition("/")[0] + "/" for file in old}
    present = {folder + name for folder in folders for name in table.store.names(folder)}
    old = [file for file in old if file.path in present]
    on_step("planned")
    needed = table.forget(oldest, dry_run=dry_run)
    on_step("versions let go")
    removed = [file for file in old if file.path not in needed]
    for file in () if dry_run else removed:
        table.store.remove(file.path)
        on_step("file deleted")
    return removed, [file for file in old if file.path in needed]
