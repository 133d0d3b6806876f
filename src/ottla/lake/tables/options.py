"""Splits a table's options into those of its storage and those of its catalog (`catalog.…`)."""

from collections.abc import Mapping

_CATALOG = "catalog."


def file_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of the storage."""
    return {k: value for k, value in (options or {}).items() if not k.startswith(_CATALOG)}


def catalog_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of the catalog, without the prefix `catalog.`."""
    return {
        name.removeprefix(_CATALOG): value
        for name, value in (options or {}).items()
        if name.startswith(_CATALOG)
    }
