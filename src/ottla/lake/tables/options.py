"""Options of a table: those of its storage, and those of its catalog, which begin `catalog.`."""

from collections.abc import Mapping

_CATALOG = "catalog."


def file_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options of the storage."""
    return {k: value for k, value in (options or {}).items() if not k.startswith(_CATALOG)}


def catalog_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options of the catalog, by their names behind `catalog.`."""
    return {
        name.removeprefix(_CATALOG): value
        for name, value in (options or {}).items()
        if name.startswith(_CATALOG)
    }
