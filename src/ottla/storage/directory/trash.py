"""The trash of a log directory: logs of deleted topics that an undo may bring back.

A kept folder is renamed like that of every deleted log, and the file `ottla-trash` names it. The
file is on the disk before the rename. So a log that it names and whose folder is missing was lost,
and is not mistaken for a log that never had records.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.names import LOG_SUFFIX, parse_segment_file
from ottla.storage.segment.segments import Departure

TRASH = "ottla-trash"

# A topic's id, and the number of a partition.
TrashKey = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A log in the trash, with its values of the checkpoints."""

    topic: str
    partition: int
    topic_id: UUID
    # The folder's name; empty for a log that was never written.
    folder: str
    recovery_point: int
    log_start: int
    size_bytes: int

    @property
    def key(self) -> TrashKey:
        return self.topic_id, self.partition

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Trash:
    """The kept logs of the log directory at `path`."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        """Read the file. One that cannot be read is treated as missing. Raises OSError."""
        self._filesystem = filesystem
        self.path = path
        self.logs: dict[TrashKey, KeptLog] = {}
        try:
            for held in json.loads(filesystem.read_bytes(f"{path}/{TRASH}"))["logs"]:
                kept = KeptLog(**{**held, "topic_id": UUID(held["topic_id"])})
                self.logs[kept.key] = kept
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            self.logs.clear()

    def forget_live(self, folders: Mapping[TopicPartition, UUID | None]) -> None:
        """Drop logs that are in use: a crash prevented their rename, or came after an undo."""
        for key, kept in list(self.logs.items()):
            if folders.get(kept.name) == kept.topic_id:
                del self.logs[key]

    def write(self) -> None:
        """Write the file, durably. Raises OSError."""
        logs = [asdict(kept) | {"topic_id": str(kept.topic_id)} for kept in self.logs.values()]
        content = json.dumps({"version": 1, "logs": logs}).encode()
        write_atomically(self._filesystem, f"{self.path}/{TRASH}", content)

    def record(self, departures: Iterable[Departure]) -> list[OSError]:
        """Flush the logs that are about to be kept, and write the file.

        If that fails, none of them is kept; return the error. May run in any thread.
        """
        mine = [(kept, one) for one in departures if (kept := self._of(one)) is not None]
        if not mine:
            return []
        try:
            for kept, departure in mine:
                if kept.folder:
                    _flush(departure, kept.recovery_point)
            self.write()
        except OSError as error:
            for kept, _ in mine:
                self.logs.pop(kept.key, None)
            return [error]
        return []

    def _of(self, departure: Departure) -> KeptLog | None:
        is_here = departure.folder.rpartition("/")[0] == self.path
        return None if departure.kept is None or not is_here else self.logs.get(departure.kept)


def _flush(departure: Departure, recovery_point: int) -> None:
    """Flush the segments of a log that may not be on the disk. Raises OSError."""
    filesystem, folder = departure.filesystem, departure.folder
    parsed = [parse_segment_file(name) for name in filesystem.listdir(folder)]
    bases = sorted(one[0] for one in parsed if one is not None and one[1] == LOG_SUFFIX)
    for base, end in zip(bases, [*bases[1:], None], strict=True):
        if end is None or end > recovery_point:
            file = filesystem.open(f"{folder}/{base:020d}{LOG_SUFFIX}")
            try:
                file.fsync()
            finally:
                file.close()
    filesystem.fsync_directory(folder)


def record(trashes: Iterable[Trash], departures: Sequence[Departure]) -> list[Departure]:
    """Record the logs to be kept; return the departures, without the marks of refused ones."""
    departures = list(departures)
    for trash in trashes:
        if trash.record(departures):
            departures = [
                replace(one, kept=None) if one.folder.startswith(f"{trash.path}/") else one
                for one in departures
            ]
    return departures
