"""Opens or creates the table in a target, in the class of its format."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import open_store
from ottla.lake.tables.format_log import TableLog
from ottla.lake.tables.formats import (
    OWN_FOLDER,
    Format,
    TableFormat,
    catalog_options,
    decide_format,
    file_options,
    format_of_others,
    read_format,
    require_own,
    require_table,
)
from ottla.lake.tables.logged import LoggedTable
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.table import LakeTable


def place_of(target: str, options: Mapping[str, str] | None = None) -> str:
    """Return the target's name in messages. Raises OttlaError for an invalid target."""
    return open_store(target, file_options(options)).url


def open_table(
    target: str,
    wanted: Format | None = None,
    options: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
    *,
    into_existing: bool = False,
) -> LakeTable:
    """Open the table in `target` for writing, and create it if there is none.

    `wanted` is the format of a new table, by default `parquet`; an existing table keeps its own.
    `options` are for the storage or, with the prefix `catalog.`, for an Iceberg catalog.
    `on_step` is called with the name of each completed step of a commit. With `into_existing` the
    table is a Delta or Iceberg table that another program made. Raises OttlaError.
    """
    store = open_store(target, file_options(options))
    if not into_existing:
        require_own(store)
    decided = read_format(store)
    if decided is None:
        if into_existing:
            wanted = wanted or format_of_others(store)
        new = _new_format(store, wanted or "parquet", options)
        if into_existing:
            new = replace(new, is_shared=True)
            _require_loadable(_open_log(store, new, options))
        store.prepare((OWN_FOLDER,))
        decided = decide_format(store, new)
    if into_existing and not decided.is_shared:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the table in {target} was made by ottla: leave out --into-existing",
        )
    if wanted not in (None, decided.name):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the table in {target} has format {decided.name}; a table of format {wanted} needs a "
            "folder of its own",
        )
    if decided.name == "parquet":
        return OwnTable(store, on_step).writable()
    log = _open_log(store, decided, options)
    log.require_writable()
    return LoggedTable(store, log, on_step).writable()


def existing_table(target: str, options: Mapping[str, str] | None = None) -> LakeTable:
    """Open an existing table for reading. Raises OttlaError if there is none."""
    store = open_store(target, file_options(options))
    with as_storage_error(store.url):
        require_table(store, target)
        decided = read_format(store)
        if decided is None or decided.name == "parquet":
            return OwnTable(store)
        return LoggedTable(store, _open_log(store, decided, options))


def _require_loadable(log: TableLog) -> None:
    """Raise OttlaError unless another program made the table and it can be loaded into."""
    newest = log.newest()
    if newest.version or newest.problem:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the {log.kind} table names load {newest.version} of ottla, whose folder _ottla is "
            "gone: restore it from a copy",
        )
    log.require_shared()
    log.require_writable()


def _new_format(store: FileStore, wanted: Format, options: Mapping[str, str] | None) -> TableFormat:
    """Return the format of a new table. Raises OttlaError if the store does not support it."""
    if wanted != "parquet" and isinstance(store, LocalStore) and set("%#?") & set(store.url):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a {wanted} table can't be in {store.url}: its programs take %, # and ? in a path for "
            "parts of a URL; choose another folder",
        )
    if catalog_options(options) and wanted != "iceberg":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"a table of format {wanted} has no catalog (catalog.…)"
        )
    if wanted == "parquet":
        return TableFormat(wanted)
    return TableFormat(wanted, _open_log(store, TableFormat(wanted), options).settings)


def _open_log(
    store: FileStore, decided: TableFormat, options: Mapping[str, str] | None
) -> TableLog:
    """Open the log of a Delta or Iceberg table. Raises OttlaError for missing packages."""
    of_files, is_shared = file_options(options), decided.is_shared
    try:
        if decided.name == "delta":
            from ottla.lake.tables.delta import DeltaLog  # noqa: PLC0415  # An extra.

            return DeltaLog(store, of_files, is_shared=is_shared)
        from ottla.lake.tables.iceberg import IcebergLog  # noqa: PLC0415  # An extra.
        from ottla.lake.tables.iceberg_catalog import CatalogSettings  # noqa: PLC0415  # As above.
    except ImportError as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"tables of format {decided.name} need a package that is not installed ({error.name}): "
            f"pip install 'ottla[{decided.name}]'",
        ) from None
    of_catalog, stored = catalog_options(options), decided.settings or None
    settings = CatalogSettings.of(store, of_catalog, of_files, stored)
    return IcebergLog(store, settings, is_shared=is_shared)
