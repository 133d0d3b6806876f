"""The ledger of one log on the disk: which offsets are gone at its start, or truncated at its end.

It is one small file, replaced as a whole. The offsets that compaction removed are in a file beside
each segment, which is created and deleted with the segment (`ledger.removals`).
"""

import threading
from dataclasses import dataclass, field

from ottla.ledger.files import decode_history, encode_history
from ottla.ledger.history import History
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.names import LEDGER


@dataclass(slots=True)
class _Order:
    """Keeps the writes of one ledger in order, whichever threads they run in."""

    written: int = -1
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class LedgerJob:
    """A job that writes the ledger's file; `run` may be called in any thread."""

    filesystem: FileSystem
    path: str
    content: bytes
    changes: int
    order: _Order

    def run(self) -> bool:
        """Write the file and flush its folder; False if a newer version is written. OSError."""
        with self.order.lock:
            if self.changes <= self.order.written:
                return False
            write_atomically(self.filesystem, self.path, self.content)
            self.order.written = self.changes
            return True


class OffsetLedger:
    """The known reasons why offsets are missing from a log; knows if its file is up to date."""

    def __init__(self, history: History, *, is_written: bool) -> None:
        self.history = history
        self._order = _Order(history.changes if is_written else -1)

    @classmethod
    def read(cls, filesystem: FileSystem, folder: str, *, unrecorded_below: int) -> "OffsetLedger":
        """Read the file; begin a new ledger if it is missing or unreadable. Raises OSError.

        Then it is unknown why offsets below `unrecorded_below` are missing.
        """
        try:
            history = decode_history(filesystem.read_bytes(f"{folder}/{LEDGER}"))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return cls.begin(unrecorded_below)
        return cls(history, is_written=True)

    @classmethod
    def begin(cls, unrecorded_below: int = 0) -> "OffsetLedger":
        """Begin a ledger without a file; the reasons below `unrecorded_below` are unknown."""
        history = History(unrecorded_below=unrecorded_below, compacted_below=unrecorded_below)
        return cls(history, is_written=False)

    @property
    def is_written(self) -> bool:
        return self.history.changes <= self._order.written

    @property
    def has_news(self) -> bool:
        """Whether the file should be written; a log to which nothing happened needs none."""
        return self.history.changes > max(0, self._order.written)

    def job(self, filesystem: FileSystem, folder: str) -> LedgerJob | None:
        """Return the job that writes the file; None if the file is up to date."""
        if self.is_written:
            return None
        history = self.history
        content = encode_history(history)
        return LedgerJob(filesystem, f"{folder}/{LEDGER}", content, history.changes, self._order)
