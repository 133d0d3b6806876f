"""Expiry: files that count no more are deleted, once no reader can be at work with them.

A file that a commit removed stays in the store for readers that have begun with it, and for
versions of the table that readers may ask for. Manifests stay for good: they are the proof.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.log.live import removed_until
from ottla.lake.manifest import DataFile
from ottla.lake.tables.opening import existing_table, open_table, place_of
from ottla.lake.tables.table import LakeTable


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """What an expiry deleted. `kept` are files that other versions or programs may need."""

    removed: tuple[str, ...]
    removed_bytes: int
    kept: tuple[str, ...]
    seconds: float


def expire(
    target: str, *, older_than_ms: int, store_options: Mapping[str, str] | None = None
) -> ExpiryResult:
    """Delete files of the table in `target` that count no more for longer than `older_than_ms`.

    Of an Iceberg table the snapshots go, too, that were current before that time and not since.
    Killed at any step it is run again. Raises OttlaError.
    """
    began = time.monotonic()
    if older_than_ms < 0:
        raise OttlaError(ErrorCode.INVALID_REQUEST, "files expire after a span of time, not before")
    with as_storage_error(place_of(target, store_options)):
        existing_table(target, store_options)  # A mistyped target becomes no new table.
        table = open_table(target, None, store_options)
        removed, kept = expire_before(table, time.time_ns() // 1_000_000 - older_than_ms)
    return ExpiryResult(
        tuple(file.path for file in removed),
        sum(file.size_bytes for file in removed),
        tuple(file.path for file in kept),
        time.monotonic() - began,
    )


def expire_before(table: LakeTable, before_ms: int) -> tuple[list[DataFile], list[DataFile]]:
    """Delete files that no commit after `before_ms` has; return them, and those that stay."""
    old = removed_until(table.history(), before_ms)
    if not old:
        return [], []
    needed = table.forget(before_ms)
    folders = {file.path.rpartition("/")[0] + "/" for file in old}
    present = {folder + name for folder in folders for name in table.store.names(folder)}
    old = [file for file in old if file.path in present]
    removed = [file for file in old if file.path not in needed]
    for file in removed:
        table.store.remove(file.path)
    return removed, [file for file in old if file.path in needed]
