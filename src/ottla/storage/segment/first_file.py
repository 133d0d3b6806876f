"""The `.log` file of an empty log, which the first append creates together with its folder.

So a topic of thousands of partitions is created at once. Nothing can be lost: the coordination
store has the topic, and an empty log is the same with or without a folder.
"""

import errno
from collections.abc import Callable, Sequence
from uuid import UUID

from ottla.storage.disk.filesystem import Buffer, File, FileSystem
from ottla.storage.files import partition_metadata


class FirstFile:
    """A file that reads as empty until it is created; then every call goes to the real file."""

    __slots__ = ("_file", "_filesystem", "_on_made", "_topic_id", "path")

    def __init__(
        self, filesystem: FileSystem, path: str, topic_id: UUID, on_made: Callable[[File], None]
    ) -> None:
        """Prepare the file; `on_made` receives the real file, to be used from then on."""
        self.path = path
        self._filesystem = filesystem
        self._topic_id = topic_id
        self._on_made = on_made
        self._file: File | None = None

    def make(self) -> File:
        """Create the folder with its topic id, and the file in it, once. Raises OSError.

        Nothing of it is durable until the first flush of the log.
        """
        if self._file is None:
            folder = self.path.rpartition("/")[0]
            if self._filesystem.mkdir(folder):
                partition_metadata.begin(self._filesystem, folder, self._topic_id)
            else:
                # An earlier attempt that failed, for example on a full disk, may have left half of
                # it.
                partition_metadata.write(self._filesystem, folder, self._topic_id)
            file = self._filesystem.open(self.path, create=True)
            if file.size():
                file.close()
                raise FileExistsError(errno.EEXIST, "it holds records of another log", self.path)
            self._file = file
            self._on_made(file)
        return self._file

    def append(self, buffer: Buffer) -> None:
        self.make().append(buffer)

    def append_many(self, buffers: Sequence[Buffer]) -> None:
        self.make().append_many(buffers)

    def pread(self, size: int, position: int) -> bytes:
        return b"" if self._file is None else self._file.pread(size, position)

    def read_into(self, buffer: bytearray | memoryview, position: int) -> int:
        return 0 if self._file is None else self._file.read_into(buffer, position)

    def fsync(self) -> None:
        if self._file is not None:
            self._file.fsync()

    def truncate(self, size: int) -> None:
        if self._file is not None:
            self._file.truncate(size)

    def size(self) -> int:
        return 0 if self._file is None else self._file.size()

    def fileno(self) -> int | None:
        return None if self._file is None else self._file.fileno()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
