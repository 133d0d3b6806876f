"""A filesystem in memory, for tests and for brokers that keep nothing.

It can fail like a machine: `crash()` ends the process and keeps what it wrote,
`crash(random)` is a power cut, after which only what was flushed is sure to be there.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251  # Only the type: the caller brings a seeded one.

from ottla.storage.disk.filesystem import Buffer

# Called with an operation's name and path before it is done; returns the error to raise.
Fault = Callable[[str, str], OSError | None]
# Called with a path, a position and its bytes: returns the bytes to read, or raises OSError.
Reading = Callable[[str, int, bytes], bytes]


class MemoryFile:
    """An open file of a `MemoryFileSystem`."""

    __slots__ = ("_filesystem", "_locks", "_node", "_run", "path")

    def __init__(
        self, filesystem: MemoryFileSystem, path: str, node: FileNode, *, locks: bool = False
    ) -> None:
        self.path = path
        self._filesystem = filesystem
        self._node = node
        self._run = filesystem.run
        self._locks = locks

    def append(self, buffer: Buffer) -> None:
        self._check("append")
        room = self._filesystem.room()
        self._node.modified_ms = self._filesystem.now_ms()
        if room is not None and len(buffer) > room:
            self._node.content += memoryview(buffer)[:room]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._node.content.extend(buffer)

    def append_many(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            self.append(buffer)

    def pread(self, size: int, position: int) -> bytes:
        self._check("read")
        with memoryview(self._node.content) as view:
            found = bytes(view[position : position + size])
        reading = self._filesystem.reading
        return found if reading is None else reading(self.path, position, found)

    def read_into(self, buffer: bytearray | memoryview, position: int) -> int:
        found = self.pread(len(buffer), position)
        buffer[: len(found)] = found
        return len(found)

    def fsync(self) -> None:
        try:
            self._check("fsync")
        except OSError as error:
            # A closed descriptor is no sign of a bad disk.
            self._node.poisoned |= error.errno != errno.EBADF
            raise
        self._node.sync()

    def truncate(self, size: int) -> None:
        self._check("truncate")
        self._node.truncate(size)

    def size(self) -> int:
        self._check("size")
        return len(self._node.content)

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        if self._locks and self._run == self._filesystem.run:
            self._node.is_locked = False
        self._run = -1

    def _check(self, operation: str) -> None:
        if self._run != self._filesystem.run:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        self._filesystem.check(operation, self.path)


class MemoryFileSystem:
    """Folders and files in memory. `capacity_bytes` (None: endless) limits all files together."""

    in_memory = True
    # Threads would make the order of changes, on which power cuts depend, a matter of chance.
    is_concurrent = False

    def __init__(
        self, *, capacity_bytes: int | None = None, now_ms: Callable[[], int] = lambda: 0
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self.now_ms = now_ms
        # Errors to come, for tests: see `Fault`.
        self.fault: Fault | None = None
        # The bytes that open files give instead of their own, for tests: see `Reading`.
        self.reading: Reading | None = None
        # Counts crashes: files opened before one are closed.
        self.run = 0
        # Counts the crashes that lost unflushed writes.
        self.power_cuts = 0
        self._root = FolderNode()

    def crash(self, random: Random | None = None) -> None:
        """End the process; with `random` by a power cut, which loses what was not flushed."""
        self.run += 1
        self.fault = None
        if random is not None:
            self.power_cuts += 1
            self._root.lose_power(random)
        for node in files_below(self._root):
            node.is_locked = False

    def check(self, operation: str, path: str) -> None:
        """Raise the error that a test has ordered for this operation."""
        if self.fault is not None:
            error = self.fault(operation, path)
            if error is not None:
                raise error

    def room(self) -> int | None:
        """Bytes that may still be written, None for no limit."""
        if self.capacity_bytes is None:
            return None
        return max(0, self.capacity_bytes - sum(len(f.content) for f in files_below(self._root)))

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.check("open", path)
        folder, name = self._parent(path)
        node = folder.names.get(name)
        if node is None:
            if not create:
                raise _missing(path)
            if self.room() == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            node = FileNode()
            node.modified_ms = self.now_ms()
            folder.change({name: node})
        if isinstance(node, FolderNode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return MemoryFile(self, path, node)

    def read_bytes(self, path: str) -> bytes:
        self.check("read", path)
        return bytes(self._file(path).content)

    def rewrite(self, path: str, position: int) -> None:
        self.check("rewrite", path)
        self._file(path).rewrite(position)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def listdir(self, path: str) -> list[str]:
        self.check("list", path)
        return sorted(self._folder(path).names)

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), FolderNode)

    def mkdir(self, path: str) -> bool:
        self.check("mkdir", path)
        folder, made = self._root, False
        for name in _parts(path):
            node = folder.names.get(name)
            if node is None:
                node, made = FolderNode(), True
                folder.change({name: node})
            if isinstance(node, FileNode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            folder = node
        return made

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        source_folder, source_name = self._parent(source)
        target_folder, target_name = self._parent(target)
        node = source_folder.names.get(source_name)
        if node is None:
            raise _missing(source)
        if source_folder is target_folder:
            source_folder.change({source_name: None, target_name: node})
        else:
            target_folder.change({target_name: node})
            source_folder.change({source_name: None})

    def unlink(self, path: str) -> None:
        self.check("unlink", path)
        folder, name = self._parent(path)
        if name in folder.names:
            folder.change({name: None})

    def rmdir(self, path: str) -> None:
        self.check("rmdir", path)
        if self._folder(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        folder, name = self._parent(path)
        folder.change({name: None})

    def fsync_directory(self, path: str) -> None:
        self.check("fsync", path)
        self._folder(path).sync()

    def free_bytes(self, path: str) -> int:  # noqa: ARG002  # One disk for all paths.
        room = self.room()
        return 2**62 if room is None else room

    def total_bytes(self, path: str) -> int:  # noqa: ARG002  # One disk for all paths.
        return 2**62 if self.capacity_bytes is None else self.capacity_bytes

    def lock(self, path: str) -> MemoryFile | None:
        self.open(path, create=True)
        node = self._file(path)
        if node.is_locked:
            return None
        node.is_locked = True
        return MemoryFile(self, path, node, locks=True)

    def page_cache_id(self, path: str) -> str:  # noqa: ARG002  # One disk for all paths.
        return f"memory/{self.power_cuts}"

    def _find(self, path: str) -> FileNode | FolderNode | None:
        node: FileNode | FolderNode | None = self._root
        for name in _parts(path):
            if not isinstance(node, FolderNode):
                return None
            node = node.names.get(name)
        return node

    def _file(self, path: str) -> FileNode:
        node = self._find(path)
        if not isinstance(node, FileNode):
            raise _missing(path)
        return node

    def _folder(self, path: str) -> FolderNode:
        node = self._find(path)
        if not isinstance(node, FolderNode):
            raise _missing(path)
        return node

    def _parent(self, path: str) -> tuple[FolderNode, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder), name


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


PAGE_BYTES = 4096
SECTOR_BYTES = 512


class FileNode:
    """A file's bytes: [0, synced) are on the disk, followed there by `old_tail`."""

    __slots__ = ("content", "is_locked", "modified_ms", "old_tail", "poisoned", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = 0
        # Bytes removed by an unflushed truncation: a power cut can bring them back.
        self.old_tail = b""
        # Set by a failed fsync: the kernel forgets which bytes were dirty, so later fsyncs do not
        # save them.
        self.poisoned = False
        self.is_locked = False
        self.modified_ms = 0

    def truncate(self, size: int) -> None:
        if size < self.synced:
            self.old_tail = bytes(self.content[size : self.synced]) + self.old_tail
            self.synced = size
        del self.content[size:]

    def sync(self) -> None:
        if not self.poisoned:
            self.synced = len(self.content)
            self.old_tail = b""

    def rewrite(self, position: int) -> None:
        """Mark the bytes from `position` on as dirty; they are saved if none before were lost."""
        if position <= self.synced:
            self.poisoned = False

    def lose_power(self, random: Random) -> None:
        kept = self.content[: self.synced]
        unsynced = self.content[self.synced :]
        if self.old_tail and random.random() < 0.5:
            kept += self.old_tail
        elif unsynced:
            kept += _survivors(unsynced, len(kept) % PAGE_BYTES, random)
        self.content = kept
        self.old_tail = b""
        self.synced = len(kept)
        self.poisoned = self.is_locked = False


def _survivors(unsynced: bytearray, begin: int, random: Random) -> bytearray:
    """Return what a power cut leaves of unflushed bytes that began at `begin` within a page."""
    kind = random.random()
    kept = unsynced[: random.randint(0, len(unsynced))]
    if kind < 0.70:
        return kept
    if kind < 0.85:
        torn = random.randbytes(min(SECTOR_BYTES, len(unsynced) - len(kept)))
        return kept + torn
    if kind < 0.95:
        return kept + bytes(len(unsynced) - len(kept))
    pages = bytearray(unsynced)
    for page in range(-begin, len(pages), PAGE_BYTES):
        if random.random() < 0.5:
            start, end = max(page, 0), min(page + PAGE_BYTES, len(pages))
            pages[start:end] = bytes(end - start)
    return pages


class FolderNode:
    """A folder: names as the process sees them, as the disk has them, and the changes between."""

    __slots__ = ("durable", "names", "pending")

    def __init__(self) -> None:
        self.names: dict[str, FileNode | FolderNode] = {}
        self.durable: dict[str, FileNode | FolderNode] = {}
        self.pending: list[dict[str, FileNode | FolderNode | None]] = []

    def change(self, changes: dict[str, FileNode | FolderNode | None]) -> None:
        """Change names so that all or none survive a power cut; None removes a name."""
        _apply(self.names, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        for changes in self.pending[: random.randint(0, len(self.pending))]:
            _apply(self.durable, changes)
        self.names = dict(self.durable)
        self.pending.clear()
        for node in self.names.values():
            node.lose_power(random)


def _apply(
    names: dict[str, FileNode | FolderNode], changes: dict[str, FileNode | FolderNode | None]
) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def files_below(folder: FolderNode) -> list[FileNode]:
    """All files in `folder` and the folders in it."""
    found = []
    for node in folder.names.values():
        if isinstance(node, FileNode):
            found.append(node)
        else:
            found += files_below(node)
    return found
