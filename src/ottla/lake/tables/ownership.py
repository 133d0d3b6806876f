"""Finds out whether a folder is a table of ottla, a new folder, or another program's."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.store import FileStore

# The folder that every table of ottla has, whatever its format.
OWN_FOLDER = "_ottla/"
# A new table of any format gets a marker here before anything else.
HEADS = f"{OWN_FOLDER}heads/"
CHECKPOINTS = f"{OWN_FOLDER}checkpoints/"
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
    """Return whether the store holds a table of ottla, even one that was only begun."""
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
    """Refuse a root with files of other programs, because the table's files would mix with them."""
    others = sorted(name for name in store.top() if name not in _NO_FILES_OF_OTHERS)
    # Ask again after the first listing: another first load may be running. It creates its own
    # folder before anything else, so if the first listing saw any of its files, this one sees the
    # folder.
    if not others or is_own(others) or holds_table(store):
        return
    kind = next((word for name, word in _OTHER_TABLES.items() if name in others), "")
    what = kind or f"other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''})"
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"{store.url} holds {what} and no table of ottla; choose an empty or a new folder"
        + (", or load into that table with --into-existing" if kind in _LOADABLE else ""),
    )
