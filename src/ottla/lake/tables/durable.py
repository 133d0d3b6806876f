"""Forces to disk what a library has written into a store, where the store is a local folder."""

import os
from collections.abc import Iterable

from ottla.base.system import sync_folder
from ottla.lake.stores.local import LocalStore
from ottla.lake.stores.store import FileStore


def sync_written(store: FileStore, folder: str, *, after: str) -> None:
    """Force the files of `folder` whose names are behind `after` to disk."""
    if isinstance(store, LocalStore):
        _sync(store, (folder + name for name in store.names(folder, after)))
        sync_folder(store.root / folder)


def _sync(store: LocalStore, paths: Iterable[str]) -> None:
    for path in paths:
        descriptor = os.open(store.root / path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
