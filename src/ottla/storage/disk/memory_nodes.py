"""Files and folders in memory that track their durable part, and so survive a power cut.

Of unflushed writes files keep a beginning, perhaps with a torn or empty end, or some pages;
folders keep the first few of their changes.
"""

from __future__ import annotations

from random import Random  # noqa: TID251  # Only the type: the caller brings a seeded one.

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
        # A failed fsync: the kernel forgets what was dirty, so later ones do not save it.
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
        """Make all from `position` on dirty again, to be saved if nothing before was lost."""
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
    """The bytes that a power cut leaves of unflushed ones, written from `begin` in a page on."""
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
