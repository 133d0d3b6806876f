"""Markers of the loads that are running, one file for each in the table's store.

DIR/_ottla/running/<load id>
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.lake.store.store import FileStore


class RunningLoads:
    """The markers in `folder` of a store; the folder need not exist."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    @contextmanager
    def mark(self, load_id: str) -> Iterator[None]:
        """Mark the load as running until the context is left or the process ends."""
        with self._store.hold(self._folder + load_id):
            yield

    def may_run(self, load_id: str) -> bool:
        """Return False only if the load or its process has ended (see `FileStore.is_held`)."""
        return self._store.is_held(self._folder + load_id)

    def sweep(self) -> None:
        """Remove the markers of loads whose process has ended."""
        for name in self._store.names(self._folder):
            if not name.startswith(".") and not self.may_run(name):
                self._store.remove(self._folder + name)
