"""Which format a table has: decided once, by its first load.

    DIR/_ottla/format.json     {format, sha256, table: "delta", settings: {…}}

Of two first loads with different formats one decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.log.sealed import SealBroken, seal, unseal
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.ownership import OWN_FOLDER

Format = Literal["parquet", "delta", "iceberg"]
_PATH = f"{OWN_FOLDER}format.json"


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table's format, and what else its first load settled, such as an Iceberg catalog."""

    name: Format
    settings: Mapping[str, Any] = field(default_factory=dict)


def read_format(store: FileStore) -> TableFormat | None:
    """Return the format of a table; None where none is decided. Raises OttlaError."""
    try:
        fields, _ = unseal(store.read(_PATH))
        if fields["table"] not in get_args(Format):
            raise SealBroken(f"names format {fields['table']}, which this version does not know")
        return TableFormat(cast("Format", fields["table"]), fields["settings"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{store.address(_PATH)} {error}: restore it from a copy, or load into a new folder",
        ) from error


def decide_format(store: FileStore, wanted: TableFormat) -> TableFormat:
    """Decide for `wanted`, unless another load has decided before; return what is decided."""
    store.put_if_absent(_PATH, seal({"table": wanted.name, "settings": dict(wanted.settings)}))
    decided = read_format(store)
    assert decided is not None
    return decided
