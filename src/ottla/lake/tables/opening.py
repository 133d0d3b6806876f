"""The table that a target and a format mean."""

from collections.abc import Callable, Mapping
from typing import Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.stores.opening import open_store
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.ownership import DELTA_LOG, ICEBERG_METADATA, is_own
from ottla.lake.tables.table import LakeTable

Format = Literal["parquet", "delta", "iceberg"]


def open_table(
    target: str,
    wanted: Format | None = None,
    options: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> LakeTable:
    """Open the table in `target` to write, and make it where there is none.

    `wanted` is the format of a new table, by default `parquet`; an existing one is known by its
    files, and may not be another. `options` are the store's. `on_step` is called with the name of
    each step of a commit once it is done. Raises OttlaError.
    """
    store = open_store(target, options)
    found = _format_of(store.top())
    if found is not None and wanted not in (None, found):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the table in {target} has format {found}; a table of format {wanted} needs a folder "
            "of its own",
        )
    _require_supported(found or wanted or "parquet")
    return OwnTable.create_or_open(store, on_step)


def existing_table(target: str, options: Mapping[str, str] | None = None) -> LakeTable:
    """Open an existing table for reading. Raises OttlaError where there is none."""
    store = open_store(target, options)
    _require_supported(_format_of(store.top()) or "parquet")
    return OwnTable.open(store, target)


def _format_of(names: list[str]) -> Format | None:
    """The format of a table by the names at its root; None where there is no table of ottla."""
    if not is_own(names):
        return None
    if DELTA_LOG in names:
        return "delta"
    return "iceberg" if ICEBERG_METADATA in names else "parquet"


def _require_supported(wanted: Format) -> None:
    if wanted != "parquet":
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"tables of format {wanted} are not supported yet: use --format parquet",
        )
