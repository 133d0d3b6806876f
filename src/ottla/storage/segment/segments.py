"""A log's segments in order of their base offsets."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from ottla.storage.disk.errors import DiskFull, StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.checkpoint import CheckpointJob
from ottla.storage.files.names import DELETED_SUFFIX
from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.storage.segment.segment import Segment


class Segments:
    """The segments of one log. There is always at least one; the last one is active."""

    # Invariant: `_bases` are the segments' base offsets, strictly increasing.
    # Invariant: `active` is the last segment.

    __slots__ = ("_bases", "_segments", "active", "removed_bytes")

    def __init__(self, segments: list[Segment]) -> None:
        assert segments
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        # Bytes of segments that were removed from the front or compacted since the log was opened.
        self.removed_bytes = 0

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    def floor(self, offset: int) -> int:
        """Return the number of the segment that covers `offset`; 0 for lower offsets."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def add(self, segment: Segment) -> None:
        """Append a new active segment."""
        assert segment.base_offset > self._bases[-1]
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def as_list(self) -> list[Segment]:
        return list(self._segments)

    def remove_first(self, count: int) -> list[Segment]:
        """Remove and return the `count` oldest segments; at least one must stay."""
        assert count < len(self._segments)
        removed = self._segments[:count]
        self.removed_bytes += sum(segment.size for segment in removed)
        del self._segments[:count]
        del self._bases[:count]
        return removed

    def remove_after(self, keep: int) -> list[Segment]:
        """Remove and return all but the `keep` (at least 1) oldest; the last one left is active."""
        assert keep >= 1
        self.active = self._segments[keep - 1]
        removed = self._segments[keep:]
        del self._segments[keep:]
        del self._bases[keep:]
        return removed

    def substitute(self, old: list[Segment], new: Segment) -> None:
        """Replace the neighbours `old` with `new`, which has the base offset of the first of them.

        The log must have exactly these neighbours, and none of them may be active.
        """
        number = self._segments.index(old[0])
        assert self._segments[number : number + len(old)] == old
        assert number + len(old) < len(self._segments)
        self.removed_bytes += sum(segment.size for segment in old) - new.size
        self._segments[number : number + len(old)] = [new]
        self._bases[number : number + len(old)] = [new.base_offset]

    def replace(self, segment: Segment) -> None:
        """Replace all segments with `segment`."""
        self._segments[:] = [segment]
        self._bases[:] = [segment.base_offset]
        self.active = segment

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start, end).

        A read_committed consumer needs them.
        """
        found: list[AbortedTransaction] = []
        for number in range(self.floor(start), len(self._segments)):
            entries, is_complete = self._segments[number].transactions.overlapping(start, end)
            found += entries
            if is_complete:
                break
        return found


@dataclass(slots=True, eq=False)
class Deletion:
    """A job that removes files `delay_ms` after it was handed out, so that readers may finish.

    `run` may be called in any thread. If a crash prevents it, the next start removes the files.
    """

    filesystem: FileSystem
    paths: list[str]
    segments: list[Segment]
    delay_ms: int
    folder: str | None = None

    def run(self) -> None:
        """Close and unlink the files, then the folder. Raises OSError."""
        for segment in self.segments:
            segment.close()
        for path in self.paths:
            self.filesystem.unlink(path)
        if self.folder is not None and self.filesystem.exists(self.folder):
            for name in self.filesystem.listdir(self.folder):
                self.filesystem.unlink(f"{self.folder}/{name}")
            self.filesystem.rmdir(self.folder)


def set_aside(filesystem: FileSystem, segments: list[Segment], delay_ms: int) -> Deletion:
    """Rename the segments' files out of the log (`.deleted`). Raises OSError."""
    paths = []
    for segment in segments:
        for path in segment.files():
            filesystem.rename(path, path + DELETED_SUFFIX)
            paths.append(path + DELETED_SUFFIX)
    return Deletion(filesystem, paths, segments, delay_ms)


@dataclass(frozen=True, slots=True)
class Departure:
    """The pending rename of the folder of a log that was closed for good."""

    filesystem: FileSystem
    folder: str
    # The folder's new name, in the same directory.
    target: str
    segments: list[Segment]
    delay_ms: int
    # False for a log that was never written: there is nothing to remove.
    has_folder: bool = True
    # Topic id and partition of a log that goes to the trash: see `storage.directory.trash`.
    kept: tuple[UUID, int] | None = None

    def rename(self) -> Deletion:
        """Give the folder its new name, which is not durable yet. Raises StorageError."""
        if not self.has_folder:
            return Deletion(self.filesystem, [], self.segments, 0)
        try:
            self.filesystem.rename(self.folder, self.target)
        except OSError as error:
            raise storage_error(error, self.folder, "delete the log") from error
        folder = None if self.kept is not None else self.target
        return Deletion(self.filesystem, [], self.segments, self.delay_ms, folder=folder)


def depart(
    departures: Sequence[Departure], removals: Iterable[CheckpointJob] = ()
) -> list[Deletion | StorageError]:
    """Rename many folders, durably; return the removal job or the error of each. In any thread.

    `removals` first remove the logs' values from the checkpoints: a new log of the same name must
    not find them after a crash.
    """
    refused = _remove_values(removals)
    outcomes: list[Deletion | StorageError] = []
    for departure in departures:
        error = refused.get(departure.folder.rpartition("/")[0])
        try:
            outcomes.append(error or departure.rename())
        except StorageError as failure:
            outcomes.append(failure)
    try:
        _sync_parents(departures)
    except StorageError as error:
        return [error] * len(departures)
    return outcomes


def _remove_values(removals: Iterable[CheckpointJob]) -> dict[str, StorageError]:
    """Run the checkpoint jobs; return the error of each directory where one failed."""
    refused: dict[str, StorageError] = {}
    for job in removals:
        try:
            job.run()
        except DiskFull:
            continue  # The deletion makes room. The values are removed before the name is used.
        except StorageError as error:
            refused[job.path] = error
    return refused


def _sync_parents(departures: Iterable[Departure]) -> None:
    parents = {one.folder.rpartition("/")[0]: one.filesystem for one in departures}
    for parent, filesystem in parents.items():
        try:
            filesystem.fsync_directory(parent)
        except OSError as error:
            raise storage_error(error, parent, "delete logs") from error
