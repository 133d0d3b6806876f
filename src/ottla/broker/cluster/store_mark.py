"""A mark in the data folder of the newest state of the store that this broker has seen (S15).

A store restored from an older copy would assign epochs a second time, so two leaders could have the
same epoch. A broker that has seen a newer state refuses to start, before it writes anything.
"""

import logging
from collections.abc import Awaitable, Callable

from ottla.coordination.interface.store import Store, StoreError
from ottla.storage.disk.filesystem import FileSystem, write_atomically

_log = logging.getLogger(__name__)

STORE_MARK = "ottla-store.mark"


class StoreMark:
    """The file with the mark. `run` runs a function that waits for the disk."""

    def __init__(
        self,
        filesystem: FileSystem,
        folder: str,
        store: Store,
        run: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        self._filesystem = filesystem
        self._path = f"{folder}/{STORE_MARK}"
        self._store = store
        self._run = run
        self._kept = ""

    async def check(self) -> None:
        """Raise StoreRolledBack if the store lacks changes that this broker has seen.

        Also raises StoreUnavailable.
        """
        try:
            if not self._filesystem.exists(self._path):
                return
            mark = self._filesystem.read_bytes(self._path).decode("ascii").strip()
        except (OSError, ValueError) as error:
            _log.warning(
                "%s cannot be read, so the store is not checked for lost history: %s",
                self._path,
                error,
            )
            return
        if mark:
            await self._store.require_history(mark)
            self._kept = mark

    async def keep(self) -> None:
        """Write the store's current state to the file, if it has advanced."""
        try:
            mark = await self._store.history()
            if mark == self._kept:
                return
            await self._run(lambda: self._write(mark))
            self._kept = mark
        except StoreError as error:
            _log.debug("the store's mark is kept later: %s", error.message)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)

    def _write(self, mark: str) -> None:
        write_atomically(self._filesystem, self._path, f"{mark}\n".encode("ascii"))
