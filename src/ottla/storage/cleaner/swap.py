"""A cleaned segment takes the place of those it was made of, in steps that a crash may follow.

1. The child has written `.cleaned` files, and they are durable. A start removes them.
2. `announce`: they are called `.swap`, `.log.swap` last; then the folder is made durable. From now
   on a start completes the replacement (`leftovers`).
3. `take_over`: the old segments' files are called `.deleted`, and the log reads the new one; then
   the folder is made durable again, so that old ones cannot come back.
4. `finish`: the new files get their own names.
"""

from ottla.storage.cleaner.cleaned_segment import CLEANED_FILES
from ottla.storage.cleaner.leftovers import give_names
from ottla.storage.deletion import Deletion
from ottla.storage.errors import StorageError, storage_error
from ottla.storage.log import Log
from ottla.storage.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    segment_file,
)
from ottla.storage.segment import Segment


class Swap:
    """One replacement. All but `make_durable` belong to the thread that owns the log."""

    def __init__(self, log: Log, old: list[Segment], size: int) -> None:
        """`old`: neighbours, none of them active; `size`: bytes of what they became."""
        self._log = log
        self._old = old
        self._size = size
        self._folder = log.folder
        self._filesystem = log.filesystem
        self._truncations = log.truncations
        self._new: Segment | None = None
        self._abandoned = False

    @property
    def base_offset(self) -> int:
        return self._old[0].base_offset

    @property
    def still_holds(self) -> bool:
        """Whether the log still has the old segments as they were read."""
        log = self._log
        if self._abandoned or log.offline or log.truncations != self._truncations:
            return False
        number = log.segments.floor(self.base_offset)
        return log.segments.as_list()[number:-1][: len(self._old)] == self._old

    def announce(self) -> None:
        """Have a start after a crash complete what follows. Raises StorageError."""
        self._log.replacement = self
        for suffix in CLEANED_FILES:
            path = f"{self._folder}/{segment_file(self.base_offset, suffix)}"
            try:
                self._filesystem.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
            except OSError as error:
                raise self._failed(error, path) from error

    def make_durable(self) -> None:
        """Make the folder's names durable; in any thread. Raises StorageError."""
        try:
            self._filesystem.fsync_directory(self._folder)
        except OSError as error:
            raise self._failed(error, self._folder) from error

    def take_over(self, now_ms: int) -> Deletion:
        """Let the log read the new segment; returns the removal of the old ones.

        Raises StorageError.
        """
        assert self.still_holds
        log = self._log
        new = Segment(self._filesystem, self._folder, self.base_offset, log.config, now_ms)
        new.size, new.loaded, new.swap_suffix = self._size, False, SWAP_SUFFIX
        paths: list[str] = []
        try:
            new.read_transaction_index()
            assert new.file.size() == self._size
            for segment in self._old:
                # Who reads from it at this moment goes on doing so.
                assert segment.file
                for path in segment.files():
                    if segment is self._old[0] and path.endswith(SNAPSHOT_SUFFIX):
                        continue
                    self._filesystem.rename(path, path + DELETED_SUFFIX)
                    paths.append(path + DELETED_SUFFIX)
        except (OSError, ValueError) as error:
            raise self._failed(error, new.path()) from error
        self._new = new
        log.segments.substitute(self._old, new)
        gone = {segment.base_offset for segment in self._old[1:]}
        log.snapshots = [offset for offset in log.snapshots if offset not in gone]
        log.replacement = None
        return Deletion(self._filesystem, paths, self._old, log.config.file_delete_delay_ms)

    def finish(self) -> None:
        """Give the new files their names, unless they were removed again. Raises StorageError."""
        log, new = self._log, self._new
        assert new is not None
        if log.offline or not any(segment is new for segment in log.segments):
            return
        try:
            give_names(self._filesystem, self._folder, self.base_offset)
        except OSError as error:
            raise self._failed(error, new.path()) from error
        new.swap_suffix = ""
        log.has_new_files = True

    def abandon(self) -> None:
        """Forget about it: nothing of it is left, not after a crash either. Raises StorageError."""
        self._abandoned = True
        if self._log.replacement is self:
            self._log.replacement = None
        # The log first: without it the others mean nothing.
        for suffix in reversed(CLEANED_FILES):
            path = f"{self._folder}/{segment_file(self.base_offset, suffix)}"
            try:
                self._filesystem.unlink(path + SWAP_SUFFIX)
                self._filesystem.unlink(path + CLEANED_SUFFIX)
            except FileNotFoundError:
                return  # The whole folder has another name by now.
            except OSError as error:
                raise self._failed(error, path) from error

    @staticmethod
    def _failed(error: OSError | ValueError, path: str) -> StorageError:
        if isinstance(error, OSError):
            return storage_error(error, path, "replace compacted segments")
        return StorageError(f"{path}: the index of a compacted segment cannot be read: {error}")
