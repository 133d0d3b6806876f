"""Stores the format of a table, which its first load decides once.

    DIR/_ottla/format.json     {format, sha256, table: "delta", settings: {…}, shared: false}

If two first loads ask for different formats, one of them decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.sealed import SealBroken, seal, unseal
from ottla.lake.store.store import FileStore
from ottla.lake.tables.ownership import DELTA_LOG, ICEBERG_METADATA, OWN_FOLDER

Format = Literal["parquet", "delta", "iceberg"]
_PATH = f"{OWN_FOLDER}format.json"


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table's format, and other choices of its first load, such as an Iceberg catalog."""

    name: Format
    settings: Mapping[str, Any] = field(default_factory=dict)
    # True if another program made the table and has its own rows in it.
    is_shared: bool = False


def read_format(store: FileStore) -> TableFormat | None:
    """Return the format of a table; None before it is decided. Raises OttlaError."""
    try:
        fields, _ = unseal(store.read(_PATH))
        if fields["table"] not in get_args(Format):
            raise SealBroken(f"names format {fields['table']}, which this version does not know")
        return TableFormat(cast("Format", fields["table"]), fields["settings"], fields["shared"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{store.address(_PATH)} {error}: restore it from a copy, or load into a new folder",
        ) from error


def decide_format(store: FileStore, wanted: TableFormat) -> TableFormat:
    """Store `wanted`, unless another load has decided already; return the decided format."""
    fields = {"table": wanted.name, "settings": dict(wanted.settings), "shared": wanted.is_shared}
    store.put_if_absent(_PATH, seal(fields))
    decided = read_format(store)
    assert decided is not None
    return decided


def format_of_others(store: FileStore) -> Format:
    """Return the format of a table that another program made. Raises OttlaError without one."""
    names = store.top()
    if DELTA_LOG in names:
        return "delta"
    if ICEBERG_METADATA in names:
        return "iceberg"
    raise OttlaError(
        ErrorCode.RESOURCE_NOT_FOUND,
        f"{store.url} holds no Delta or Iceberg table (no {DELTA_LOG}, no {ICEBERG_METADATA}): "
        "leave out --into-existing to make a new table",
    )
