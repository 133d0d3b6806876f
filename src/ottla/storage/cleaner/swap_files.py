"""The names of a cleaned segment's files and of those it replaces, changed step by step.

Each step may run in any thread, under a lock where it must not be interrupted. The log's thread can
call the steps off at any time, or have them all done at once.
"""

import threading

from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import (
    CLEANED_FILES,
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    segment_file,
)
from ottla.storage.recovery.leftovers import give_names
from ottla.storage.segment.segment import Segment


class SwapFiles:
    """The files of one replacement. All methods raise StorageError."""

    # Invariant: once `_called_off`, nothing here changes a name any more but `remove`.

    def __init__(self, filesystem: FileSystem, folder: str, old: list[Segment]) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self._old = old
        self._base_offset = old[0].base_offset
        self._lock = threading.Lock()
        self._called_off = False
        self._named = False
        # The new names of the old segments' files; None before they are renamed.
        self._set_aside: list[str] | None = None

    @property
    def deleted_paths(self) -> list[str]:
        """The old segments' files, which wait to be removed."""
        return self._set_aside or []

    @property
    def is_called_off(self) -> bool:
        return self._called_off

    @property
    def is_named(self) -> bool:
        """Whether the new files have their names."""
        return self._named

    def announce(self) -> bool:
        """Announce the swap durably, so that a start completes it; False if called off."""
        with self._lock:
            if self._called_off:
                return False
            for path in self._paths():
                self._rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        self._sync_folder()
        return not self._called_off

    def put_in_place(self) -> None:
        """Take the old segments' files away, durably, then give the new ones their names."""
        with self._lock:
            self._take_old_away()
        self._sync_folder()
        with self._lock:
            self._give_names()

    def put_in_place_at_once(self) -> None:
        """As `put_in_place`, also while that is under way in another thread: complete on return."""
        with self._lock:
            if not self._named:
                self._take_old_away()
                self._sync_folder()
                self._give_names()

    def call_off(self) -> None:
        """Change no name from now on."""
        with self._lock:
            self._called_off = True

    def withdraw(self) -> None:
        """Call the swap off, and remove the announcement: a start does not complete it any more."""
        with self._lock:
            self._called_off = True
            # The log first: without it the others are ignored.
            for path in reversed(self._paths()):
                if self._filesystem.exists(path + SWAP_SUFFIX):
                    self._rename(path + SWAP_SUFFIX, path + SWAP_SUFFIX + DELETED_SUFFIX)

    def remove(self) -> None:
        """Call the swap off, and remove its files."""
        self.withdraw()
        for path in self._paths():
            for suffix in (CLEANED_SUFFIX, SWAP_SUFFIX + DELETED_SUFFIX):
                try:
                    self._filesystem.unlink(path + suffix)
                except OSError as error:
                    raise self._failed(error, path) from error

    def _paths(self) -> list[str]:
        """The final names of the new segment's files; the log comes last."""
        folder, base_offset = self._folder, self._base_offset
        return [f"{folder}/{segment_file(base_offset, suffix)}" for suffix in CLEANED_FILES]

    def _take_old_away(self) -> None:
        if self._called_off or self._set_aside is not None:
            return
        renamed: list[str] = []
        for segment in self._old:
            for path in segment.files():
                if segment is self._old[0] and path.endswith(SNAPSHOT_SUFFIX):
                    continue
                self._rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        self._set_aside = renamed

    def _give_names(self) -> None:
        if self._called_off or self._named:
            return
        try:
            give_names(self._filesystem, self._folder, self._base_offset)
        except OSError as error:
            raise self._failed(error, self._folder) from error
        self._named = True

    def _rename(self, source: str, target: str) -> None:
        try:
            self._filesystem.rename(source, target)
        except OSError as error:
            raise self._failed(error, source) from error

    def _sync_folder(self) -> None:
        try:
            self._filesystem.fsync_directory(self._folder)
        except OSError as error:
            if not self._called_off and not self._named:
                raise self._failed(error, self._folder) from error

    @staticmethod
    def _failed(error: OSError, path: str) -> StorageError:
        return storage_error(error, path, "replace compacted segments")
