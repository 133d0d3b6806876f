"""The seam *files*: a root, and files below it that are written once.

A table needs little of the storage that holds it: files that appear whole or not at all, and one
step that only one of several writers can take (`put_if_absent`). Each kind of storage has a class
that keeps the laws of `FileStore`; the tests of the contract run over all of them.

Paths are relative to the root, with `/` between names. A folder's path ends with `/`; the root's
is empty.
"""

import io
import platform
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast

from ottla.base.errors import ErrorCode, OttlaError


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below the root."""

    path: str
    size_bytes: int
    modified_ms: int


class PutUnknown(OttlaError):
    """Raised if it is unknown whether a file was written, or whether it will stay."""


class StoreUnreachable(OttlaError):
    """Raised if the store gave no answer, or none that says whether the request was done."""


class StoreWriter(ABC):
    """A file that is being written, to which `pyarrow.parquet.ParquetWriter` can write.

    Either `finish` or `discard` is called last.
    """

    closed = False

    @abstractmethod
    def write(self, content: bytes) -> int: ...

    @abstractmethod
    def tell(self) -> int: ...

    def flush(self) -> None:  # noqa: B027  # Not abstract: it is the same for all.
        """Do nothing: `finish` forces the file to disk."""

    def close(self) -> None:  # noqa: B027  # As above.
        """Do nothing: `finish` and `discard` end the file, not the Parquet writer."""

    @abstractmethod
    def finish(self, *, durable: bool = True) -> None:
        """Make the file visible and durable: it survives a power cut once this returns.

        If not `durable`, it need not survive one; for files that no commit will name.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove what was written. Raises nothing even if the storage is full."""


class FileStore(Protocol):
    """Files below one root. Can be pickled: a copy on another machine opens the root again.

    Raises OSError, or OttlaError with cause and remedy, where the storage refuses.
    """

    @property
    def url(self) -> str:
        """Return the root, without credentials."""

    @property
    def lists_all_at_once(self) -> bool:
        """Return whether a listing costs about the same for few names and for many.

        In other stores it costs one request per thousand names, so callers list only what they
        need.
        """

    def address(self, path: str) -> str:
        """Return the file's address for other programs: a path of this machine, or a URL."""

    def prepare(self, folders: Iterable[str]) -> None:
        """Create the root and `folders` durably, in order, if the storage needs folders.

        Also checks that `put_if_absent` gives a name to only one writer. Raises OttlaError if it
        does not, or if the root cannot be created.
        """

    def top(self) -> list[str]:
        """Return the names directly below the root; none if the root does not exist."""

    def names(self, folder: str, after: str = "") -> list[str]:
        """Return the names directly below `folder` that sort after `after`, in no order.

        Returns none if the folder does not exist.
        """

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files below `folder`, in no order; none if it does not exist."""

    def create(self, path: str) -> StoreWriter:
        """Start a file under a name that no other writer uses."""

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write a file whole and durably; return False if the name has other content already.

        Of several writers, at any time and on any machine, one gets True. A caller whose earlier
        try succeeded without an answer also gets True, because its content is found there: so no
        two writers may use the same content. Raises PutUnknown if the name may have been taken;
        after any other error it has not.
        """

    def replace(self, path: str, content: bytes) -> None:
        """Write a file whole and durably, replacing any file of that name."""

    def read(self, path: str) -> bytes:
        """Return a file's content. Raises FileNotFoundError."""

    def open(self, path: str) -> BinaryIO:
        """Open a file to read parts of it. Raises FileNotFoundError."""

    def size(self, path: str) -> int:
        """Return a file's size in bytes. Raises FileNotFoundError."""

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""

    def hold(self, path: str) -> AbstractContextManager[None]:
        """Keep a marker at `path` while the context is open, which others can see (`is_held`)."""

    def is_held(self, path: str) -> bool:
        """Return whether the process that made the marker may still hold it.

        Returns False if there is no marker, or if its process has certainly ended. A storage that
        cannot find out returns True until the marker is a day old.
        """


def no_put_if_absent(place: str, why: str, remedy: str) -> OttlaError:
    """Return the error of `prepare` for a storage that may give a name to two writers."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{place} can't hold a table: {why}. A load is made visible by creating a file only if "
        f"it is absent; {remedy}",
    )


def prove_put_if_absent(store: FileStore, folder: str, problem: str, remedy: str) -> None:
    """Create a name in `folder` twice. Raises OttlaError with `problem` if both succeed."""
    path = f"{folder}.probe-{uuid.uuid4().hex}"
    try:
        first = store.put_if_absent(path, b"first")
        second = first and store.put_if_absent(path, b"second")
    except NotImplementedError as error:
        raise no_put_if_absent(store.url, str(error), remedy) from error
    finally:
        with suppress(OSError, OttlaError):
            store.remove(path)
    if not first or second:
        raise no_put_if_absent(store.url, problem, remedy)


_COUNTS_MS = 24 * 3600 * 1000


@contextmanager
def aged_hold(store: FileStore, path: str) -> Iterator[None]:
    """Keep a marker until the context is left."""
    store.replace(path, platform.node().encode())
    try:
        yield
    finally:
        with suppress(OSError, OttlaError):
            store.remove(path)


def is_fresh_hold(modified_ms: int) -> bool:
    """Return whether a marker of this age is still valid."""
    return time.time_ns() // 1_000_000 - modified_ms < _COUNTS_MS


# The least number of bytes of one read, because each read waits for an answer.
_READ_BYTES = 4 << 20

# Returns `length` bytes from `offset` on.
ReadPart = Callable[[int, int], bytes]


class _PartReader(io.RawIOBase):
    def __init__(self, size: int, read_part: ReadPart) -> None:
        self._size = size
        self._read_part = read_part
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        content = memoryview(self._read_part(self._at, length))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def read_in_parts(size: int, read_part: ReadPart) -> BinaryIO:
    """Return a seekable file of `size` bytes."""
    return cast("BinaryIO", io.BufferedReader(_PartReader(size, read_part), _READ_BYTES))
