"""Stores the format of a table, which its first load decides once.

    DIR/_ottla/format.json     {format, sha256, table: "delta", settings: {…}, shared: false}

If two first loads run at once, one of them decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import SealBroken, seal, unseal
from ottla.lake.store.store import FileStore

# The folder that every table of ottla has, whatever its format.
OWN_FOLDER = "_ottla/"
# A new table gets a head marker here before any other file.
HEADS = f"{OWN_FOLDER}heads/"
CHECKPOINTS = f"{OWN_FOLDER}checkpoints/"
MANIFESTS = f"{OWN_FOLDER}manifests/"
RUNNING = f"{OWN_FOLDER}running/"
DELTA_LOG = "_delta_log"
ICEBERG_METADATA = "metadata"
# Names that a new file system or a desktop puts into an empty folder.
_NO_FILES_OF_OTHERS = frozenset({"lost+found", ".DS_Store", "Thumbs.db"})
_LOADABLE = ("a Delta table", "an Iceberg table")
# The program that a table belongs to, by a name that is typical of it.
_OTHER_TABLES = {
    DELTA_LOG: "a Delta table",
    ICEBERG_METADATA: "an Iceberg table",
    ".hoodie": "a Hudi table",
}


def holds_table(store: FileStore) -> bool:
    """Return whether the store holds a table of ottla, even if its creation was interrupted."""
    return is_own(store.top())


def is_own(names: Sequence[str]) -> bool:
    """Return whether the names at a root are those of a table of ottla."""
    return OWN_FOLDER.rstrip("/") in names


def require_table(store: FileStore, target: str) -> None:
    """Raise OttlaError if there is no table of ottla."""
    if not holds_table(store):
        raise OttlaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"{target} holds no table of ottla: `ottla lake load TOPIC --to DIR` makes one",
        )


def require_own(store: FileStore) -> None:
    """Raise OttlaError if other programs have files in the root, which a table would mix with."""
    others = sorted(name for name in store.top() if name not in _NO_FILES_OF_OTHERS)
    # List again, because another first load may be running. It creates its folder before any
    # other file, so if the first listing had files of that load, this one has its folder.
    if not others or is_own(others) or holds_table(store):
        return
    kind = next((word for name, word in _OTHER_TABLES.items() if name in others), "")
    what = kind or f"other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''})"
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{store.url} holds {what} and no table of ottla; choose an empty or a new folder"
        + (", or load into that table with --into-existing" if kind in _LOADABLE else ""),
    )


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
    """Return the format of a table; None if no load has decided it yet. Raises OttlaError."""
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
    """Store `wanted` unless another load has decided the format; return the decided format."""
    fields = {"table": wanted.name, "settings": dict(wanted.settings), "shared": wanted.is_shared}
    store.put_if_absent(_PATH, seal(fields))
    decided = read_format(store)
    assert decided is not None
    return decided


def format_of_others(store: FileStore) -> Format:
    """Return the format of the table that another program made; OttlaError if there is none."""
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


_CATALOG = "catalog."


def file_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of the storage: those without the prefix `catalog.`."""
    return {k: value for k, value in (options or {}).items() if not k.startswith(_CATALOG)}


def catalog_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of the catalog, without the prefix `catalog.`."""
    return {
        name.removeprefix(_CATALOG): value
        for name, value in (options or {}).items()
        if name.startswith(_CATALOG)
    }
