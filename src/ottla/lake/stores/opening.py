"""The store that the words for a target mean."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.folder.targets import folder_of
from ottla.lake.stores.local import LocalStore
from ottla.lake.stores.store import FileStore


def open_store(target: str, options: Mapping[str, str] | None = None) -> FileStore:
    """Return the store of `target`: a path, or a URL. Nothing is made or looked for yet.

    `options` are of the library that talks to the storage. Raises OttlaError for words that mean
    no storage, or none that is supported.
    """
    folder = folder_of(target)
    if options:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} is a folder, and takes no store options ({', '.join(sorted(options))})",
        )
    return LocalStore(folder)
