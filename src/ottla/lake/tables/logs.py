"""The log of a table, by its format. The libraries are extras, and are imported here only."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.formats import Format, TableFormat
from ottla.lake.tables.log import TableLog
from ottla.lake.tables.options import catalog_options, file_options


def new_format(store: FileStore, wanted: Format, options: Mapping[str, str] | None) -> TableFormat:
    """What the first load of a table decides. Raises OttlaError where a package is missing."""
    if wanted == "parquet":
        return TableFormat(wanted)
    try:
        if wanted == "delta":
            import deltalake  # noqa: F401, PLC0415  # As above.

            return TableFormat(wanted)
        from ottla.lake.tables.iceberg_catalog import CatalogSettings  # noqa: PLC0415  # As above.
    except ImportError as error:
        raise _not_installed(wanted, error) from None
    settings = CatalogSettings.of(store, catalog_options(options), file_options(options))
    return TableFormat(wanted, settings.stored())


def open_log(store: FileStore, decided: TableFormat, options: Mapping[str, str] | None) -> TableLog:
    """The log of a table of Delta's or Iceberg's format. Raises OttlaError as `new_format`."""
    try:
        if decided.name == "delta":
            from ottla.lake.tables.delta import DeltaLog  # noqa: PLC0415  # As above.

            return DeltaLog(store, file_options(options))
        from ottla.lake.tables.iceberg import IcebergLog  # noqa: PLC0415  # As above.
        from ottla.lake.tables.iceberg_catalog import CatalogSettings  # noqa: PLC0415  # As above.
    except ImportError as error:
        raise _not_installed(decided.name, error) from None
    settings = CatalogSettings.of(
        store, catalog_options(options), file_options(options), decided.settings
    )
    return IcebergLog(store, settings)


def _not_installed(wanted: Format, error: ImportError) -> OttlaError:
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"tables of format {wanted} need a package that is not installed ({error.name}): "
        f"pip install 'ottla[{wanted}]'",
    )
