"""Whether a folder is a table of ottla, a new one, or another program's."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.stores.store import FileStore

# The folder of a table that is ottla's own, whatever the table's format.
OWN_FOLDER = "_ottla/"
# A new table of any format has a marker here before it has anything else.
HEADS = f"{OWN_FOLDER}heads/"
CHECKPOINTS = f"{OWN_FOLDER}checkpoints/"
DELTA_LOG = "_delta_log"
ICEBERG_METADATA = "metadata"
# What a new file system or a desktop puts into an empty folder.
_NO_FILES_OF_OTHERS = frozenset({"lost+found", ".DS_Store", "Thumbs.db"})
_LOADABLE = ("a Delta table", "an Iceberg table")
# Whose table it is, by the name that shows it.
_OTHER_TABLES = {
    DELTA_LOG: "a Delta table",
    ICEBERG_METADATA: "an Iceberg table",
    ".hoodie": "a Hudi table",
}


def holds_table(store: FileStore) -> bool:
    """Whether the store holds a table of ottla, if only one that was begun."""
    return is_own(store.top())


def is_own(names: Sequence[str]) -> bool:
    """Whether these are the names at the root of a table of ottla."""
    return OWN_FOLDER.rstrip("/") in names


def require_table(store: FileStore, target: str) -> None:
    """Raise OttlaError where there is no table of ottla."""
    if not holds_table(store):
        raise OttlaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"{target} holds no table of ottla: `ottla lake load TOPIC --to DIR` makes one",
        )


def require_own(store: FileStore) -> None:
    """Refuse a root with files of others: a table would grow among them."""
    others = sorted(name for name in store.top() if name not in _NO_FILES_OF_OTHERS)
    # Asked again after the first listing: another first load, which may run at this moment, makes
    # its own folder before anything else, so whatever the first one saw of that load came later.
    if not others or is_own(others) or holds_table(store):
        return
    kind = next((word for name, word in _OTHER_TABLES.items() if name in others), "")
    what = kind or f"other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''})"
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{store.url} holds {what} and no table of ottla; choose an empty or a new folder"
        + (", or load into that table with --into-existing" if kind in _LOADABLE else ""),
    )
