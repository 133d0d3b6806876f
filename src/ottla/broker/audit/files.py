"""The files of one broker's audit log: appended, rolled by size, and recovered after a crash.

Every call may block, because it accesses the disk.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.audit.chain import (
    AuditFile,
    Chain,
    Event,
    Head,
    Tail,
    file_name,
    find_tail,
    hash_of,
    head_name,
    head_text,
    parse_file_name,
    parse_head,
)
from ottla.storage.disk.filesystem import File, FileSystem, write_atomically
from ottla.storage.disk.reserve import DiskUse, Reserve

_log = logging.getLogger(__name__)

# How many bytes are read from the end of a file, enough for several lines. If they contain no
# complete line, the whole file is read.
_TAIL_BYTES = 256 << 10


class AuditLimits(NamedTuple):
    """Size limits in bytes; -1 for the total means no limit."""

    file_bytes: int
    retention_bytes: int


class AuditFiles:
    """The audit files of one broker in one folder.

    `stamp` adds time and broker to an event. `copy` is called with written lines and the new head.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        folder: str,
        broker: int,
        limits: AuditLimits,
        stamp: Callable[[Event], Event],
        copy: Callable[[bytes, Head], None] | None = None,
    ) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self._reserve = Reserve(filesystem, folder)
        self._broker = broker
        self._limits = limits
        self._stamp = stamp
        self._copy = copy
        self._chain = Chain()
        # Lines that are part of the hash chain but not yet written, because a write failed.
        self._unwritten = b""
        # Invariant: the file ends at `_size`, unless `_is_torn`.
        self._size = 0
        self._is_torn = False
        # Whether lines were written after the last fsync, when the file had `_saved_size` bytes;
        # and whether an fsync has failed, so that the bytes after `_saved_size` may be lost.
        self._is_dirty = False
        self._is_doubtful = False
        self._saved_size = 0
        self._file: File | None = None
        self._lock: File | None = None

    @property
    def head(self) -> Head:
        """Return the number and hash of the last line."""
        return Head(self._chain.number, self._chain.head)

    def open(self) -> None:
        """Open the files, to continue after the last line. Raises OttlaError if unusable."""
        try:
            if self._filesystem.mkdir(self._folder):
                self._filesystem.fsync_directory(self._folder.rpartition("/")[0] or "/")
            self._lock = self._filesystem.lock(self._path(f"ottla-audit-{self._broker}.lock"))
            if self._lock is None:
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"the audit log of broker {self._broker} in {self._folder} is in use by another"
                    " broker: set audit.log.dir to another folder",
                )
            self._recover()
        except OSError as error:
            self.close()
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the audit log in {self._folder} cannot be opened: {error}; make room on its disk,"
                " let the broker write there, set audit.log.dir to another folder, or"
                " audit.log.enable=false",
            ) from error

    def append(self, events: Iterable[Event]) -> None:
        """Write lines; they are durable after `sync`.

        Raises OSError if a write fails; the next call then tries again.
        """
        self._unwritten += b"".join(map(self._chain.link, events))
        if self._unwritten:
            self._reserve.require(len(self._unwritten), DiskUse.OWN)
            self._write()
        if self._size >= self._limits.file_bytes:
            self._roll()

    def sync(self) -> None:
        """Flush all lines to disk, then write the number and hash of the last one to the head file.

        Raises OSError.
        """
        file = self._file
        if not self._is_dirty or file is None:
            return
        if self._is_doubtful:
            self._filesystem.rewrite(file.path, self._saved_size)
        self._is_doubtful = True
        file.fsync()
        self._is_doubtful, self._saved_size = False, self._size
        path = self._path(head_name(self._broker))
        write_atomically(self._filesystem, path, head_text(self.head), sync_folder=False)
        self._is_dirty = False

    def close(self) -> None:
        """Close the files."""
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    # -- writing

    def _write(self) -> None:
        file = self._file
        assert file is not None
        if self._is_torn:
            file.truncate(self._size)
        self._is_torn = self._is_dirty = True
        try:
            file.append(self._unwritten)
        except OSError:
            # A partly written line would use the last free space of the disk; the next call
            # retries.
            with suppress(OSError):
                file.truncate(self._size)
            raise
        self._is_torn = False
        self._size += len(self._unwritten)
        if self._copy is not None:
            self._copy(self._unwritten, self.head)
        self._unwritten = b""

    def _roll(self) -> None:
        self.sync()
        full = self._file
        self._begin(self._chain.number + 1)
        if full is not None:
            full.close()
        self._announce()
        self._retain()

    def _begin(self, first: int) -> None:
        path = self._path(file_name(self._broker, first))
        file = self._filesystem.open(path, create=True)
        try:
            size = file.size()
            self._filesystem.fsync_directory(self._folder)
        except OSError:
            file.close()
            raise
        self._file, self._size, self._saved_size = file, size, size

    def _announce(self) -> None:
        number, head = self.head
        _log.info("audit log: line %d of broker %d has the hash %s", number, self._broker, head)

    def _retain(self) -> None:
        """Remove the oldest files, after writing lines that announce their removal."""
        limit = self._limits.retention_bytes
        files = self._files()
        sizes = [self._filesystem.size(self._path(file.name)) for file in files]
        while limit >= 0 and len(files) > 1 and sum(sizes) > limit:
            file = files.pop(0)
            del sizes[0]
            last = files[0].first - 1
            head = self._tail(file).head
            event = {"event": "removed", "file": file.name, "last": last, "hash": head}
            self._unwritten += self._chain.link(self._stamp(event))
            self._write()
            self.sync()
            self._filesystem.unlink(self._path(file.name))

    # -- opening

    def _recover(self) -> None:
        files = self._files()
        while files and not self._filesystem.size(self._path(files[-1].name)):
            # The broker crashed before it wrote the file's first line.
            self._filesystem.unlink(self._path(files.pop().name))
        tails = [self._tail(file) for file in files[-1:]]
        if tails and tails[0].last is None and len(files) > 1:
            # The last file has no complete line, so the last line is in the file before it.
            tails.append(self._tail(files[-2]))
        ended = next((tail for tail in tails if tail.last is not None), None)
        was_stopped = True
        if ended is not None and ended.last is not None:
            self._chain = Chain(ended.last.number, ended.head)
            was_stopped = ended.last.event == "stop"
        events = [*(_torn(tails[0]) if tails else []), *self._compared()]
        self._begin(files[-1].first if files else self._chain.number + 1)
        if tails:
            self._unwritten = tails[0].missing
            # The broker may have crashed before these bytes were flushed.
            self._is_doubtful, self._saved_size = self._noted() != self.head, 0
        for event in events:
            _log.warning("audit log: %s", event)
        start: Event = {"event": "start", "after_stop": was_stopped}
        # Written without `append`, so that a broker can start even if the disk is nearly full.
        for event in (*events, start):
            self._unwritten += self._chain.link(self._stamp(event))
        self._write()
        self.sync()
        self._announce()

    def _compared(self) -> list[Event]:
        """Return events about lines that the head file records but that the files lack."""
        noted = self._noted()
        number = self._chain.number
        if noted is None or noted.number < number:
            return []
        if noted.number == number:
            if noted.hash == self._chain.head:
                return []
            return [{"event": "altered", "number": number, "hash": noted.hash}]
        self._chain.skip(noted.number)
        event = {"event": "missing", "first": number + 1, "last": noted.number, "hash": noted.hash}
        return [event]

    def _noted(self) -> Head | None:
        path = self._path(head_name(self._broker))
        if not self._filesystem.exists(path):
            return None
        return parse_head(self._filesystem.read_bytes(path))

    def _files(self) -> list[AuditFile]:
        names = map(parse_file_name, self._filesystem.listdir(self._folder))
        return sorted(file for file in names if file is not None and file.broker == self._broker)

    def _tail(self, audit_file: AuditFile) -> Tail:
        file = self._filesystem.open(self._path(audit_file.name))
        try:
            size = file.size()
            tail = find_tail(file.pread(_TAIL_BYTES, max(0, size - _TAIL_BYTES)))
            return find_tail(file.pread(size, 0)) if tail.last is None else tail
        finally:
            file.close()

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _torn(tail: Tail) -> list[Event]:
    if tail.torn is None:
        return []
    return [{"event": "torn", "bytes": len(tail.torn), "sha256": hash_of(tail.torn)}]
