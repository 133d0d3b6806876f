"""Files that have lost their names in the log and wait to be removed."""

from dataclasses import dataclass

from ottla.storage.filesystem import FileSystem
from ottla.storage.names import DELETED_SUFFIX
from ottla.storage.segment import Segment


@dataclass(slots=True, eq=False)
class Deletion:
    """Removal of files, due `delay_ms` after it was handed out, so that readers may finish.

    `run` may be called in any thread; a crash before it is made good at the next start.
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
