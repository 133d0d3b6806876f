"""Replaces segments by the cleaned segment made of them, in steps that a crash may interrupt.

1. The child has written `.cleaned` files, and they are durable. A start removes them.
2. `announce`: the files are renamed to `.swap`, the log last, and the folder is made durable. From
   now on a start completes the replacement (`leftovers`).
3. `take_over`: the log reads the new segment.
4. `put_in_place`: the old segments' files are renamed to `.deleted`, and the folder is made durable
   again, so that they cannot come back. Then the new files get their final names.
5. `finish`: the log records that the replacement is complete.

Steps 2 and 4 run in another thread, because a rename may wait for other writes of the file system.
A log that is truncated meanwhile calls `settle` first.
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
from ottla.storage.log.log import Log
from ottla.storage.recovery.leftovers import give_names
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Deletion


class Swap:
    """One replacement. All but `announce`, `put_in_place` and `remove` belong to the log's thread.

    The order is `begin`, `announce`, `take_over`, `put_in_place`, `finish`.
    """

    # Invariant: this is the log's `replacement` from `begin` to `finish` or `settle`.

    def __init__(self, log: Log, old: list[Segment], size: int) -> None:
        """Prepare to replace the neighbours `old`, none of them active, by one segment.

        `size` is the new segment's bytes.
        """
        self._log = log
        self._old = old
        self._size = size
        self._truncations = log.truncations
        self._files = SwapFiles(log.filesystem, log.folder, old)
        self._new: Segment | None = None
        self._has_taken_over = self._is_settled = False

    @property
    def still_holds(self) -> bool:
        """Whether the log still has the old segments as they were read."""
        log = self._log
        if self._is_settled or log.offline or log.truncations != self._truncations:
            return False
        number = log.segments.floor(self._old[0].base_offset)
        return log.segments.as_list()[number:-1][: len(self._old)] == self._old

    def begin(self) -> None:
        """Have the log call `settle` before its files change."""
        assert self.still_holds
        self._log.replacement = self

    def announce(self) -> None:
        """Announce the swap on the disk, and open the new segment.

        After a crash, a start completes an announced swap. May run in any thread. Raises
        StorageError.
        """
        if not self._files.announce():
            return
        log, first = self._log, self._old[0]
        new = Segment(log.filesystem, first.folder, first.base_offset, log.config, first.created_ms)
        new.size, new.indexes.loaded, new.swap_suffix = self._size, False, SWAP_SUFFIX
        try:
            self._look_at(new)
        except StorageError:
            new.close()
            # If the swap was cancelled meanwhile, its files are gone, which is no error.
            if not self._files.is_called_off:
                raise
        else:
            self._new = new

    def _look_at(self, new: Segment) -> None:
        try:
            new.read_transaction_index()
            size = new.file.size()
        except OSError as error:
            raise storage_error(error, new.path(), "replace compacted segments") from error
        except ValueError as error:
            raise StorageError(
                f"{new.path()}: the index of a compacted segment cannot be read: {error}"
            ) from error
        if size != self._size:
            raise StorageError(f"{new.path()}: {size} bytes were made, and not {self._size}")
        if any(segment.indexes.loaded for segment in self._old):
            # Read now, so that the next reader need not wait for it.
            new.load_indexes()

    def take_over(self) -> None:
        """Let the log read the new segment. Raises StorageError."""
        assert self.still_holds
        assert self._new is not None
        log, new = self._log, self._new
        for segment in self._old:
            # Open the old file before it is renamed, so that a reader inside it can go on.
            assert segment.file
        new.indexes.config = log.config
        log.segments.substitute(self._old, new)
        log.flush_state.on_removed(self._old[1:])
        self._has_taken_over = True

    def put_in_place(self) -> None:
        """Rename the old files, then the new ones. In any thread. Raises StorageError."""
        self._files.put_in_place()

    def finish(self) -> Deletion:
        """End the swap after all files are in place; return the removal of the old files."""
        self._note_names()
        log = self._log
        return Deletion(
            log.filesystem, self._files.deleted_paths, self._old, log.config.file_delete_delay_ms
        )

    def settle(self) -> None:
        """Cancel or complete the swap, because the log is about to change. Raises StorageError.

        If the log already reads the new segment, it is put in place at once, which may take time.
        """
        if self._log.offline:
            # The folder will be removed or renamed, or a start completes the swap.
            self._files.call_off()
        elif self._has_taken_over:
            self._files.put_in_place_at_once()
            self._note_names()
        else:
            self._files.withdraw()
        self._is_settled = True
        self._forget()

    def remove(self) -> None:
        """Remove the files of a replacement that was cancelled. May run in any thread.

        Raises StorageError.
        """
        if self._has_taken_over:
            return
        if self._new is not None:
            self._new.close()
        if self._log.offline:
            self._files.call_off()
        else:
            self._files.remove()

    def _note_names(self) -> None:
        assert self._new is not None
        if self._files.is_named:
            self._new.swap_suffix = ""
            self._log.flush_state.has_new_files = True
        self._forget()

    def _forget(self) -> None:
        if self._log.replacement is self:
            self._log.replacement = None


class SwapFiles:
    """The files of one replacement. All methods raise StorageError."""

    # Invariant: once `_called_off` is set, only `remove` changes names of files.

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
        """Whether the new files have their final names."""
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
        """Rename the old segments' files, durably, then give the new files their final names."""
        with self._lock:
            self._take_old_away()
        self._sync_folder()
        with self._lock:
            self._give_names()

    def put_in_place_at_once(self) -> None:
        """Complete `put_in_place` before returning, even if another thread is inside it."""
        with self._lock:
            if not self._named:
                self._take_old_away()
                self._sync_folder()
                self._give_names()

    def call_off(self) -> None:
        """Cancel the swap: no file is renamed from now on."""
        with self._lock:
            self._called_off = True

    def withdraw(self) -> None:
        """Cancel the swap and its announcement, so that a start does not complete it."""
        with self._lock:
            self._called_off = True
            # The log file first: without it a start ignores the other files.
            for path in reversed(self._paths()):
                if self._filesystem.exists(path + SWAP_SUFFIX):
                    self._rename(path + SWAP_SUFFIX, path + SWAP_SUFFIX + DELETED_SUFFIX)

    def remove(self) -> None:
        """Cancel the swap, and remove its files."""
        self.withdraw()
        for path in self._paths():
            for suffix in (CLEANED_SUFFIX, SWAP_SUFFIX + DELETED_SUFFIX):
                try:
                    self._filesystem.unlink(path + suffix)
                except OSError as error:
                    raise self._failed(error, path) from error

    def _paths(self) -> list[str]:
        """Return the final names of the new segment's files, the log last."""
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
