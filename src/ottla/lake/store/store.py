"""The interface of stores: a root, and files below it that are written once.

A table needs only two things of its storage: files that become visible as a whole, and an atomic
step that succeeds for only one of several writers (`put_if_absent`). Each kind of storage has a
class that implements `FileStore`, and all are tested with the same contract tests.

Paths are relative to the root, with `/` between names. A folder's path ends with `/`; the root's
is empty.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

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
    """Raised if the store's answer is missing, or does not say whether the request was done."""


class StoreWriter(ABC):
    """A file that is being written, for example by `pyarrow.parquet.ParquetWriter`.

    The last call is either `finish` or `discard`.
    """

    closed = False

    @abstractmethod
    def write(self, content: bytes) -> int: ...

    @abstractmethod
    def tell(self) -> int: ...

    def flush(self) -> None:  # noqa: B027  # Not abstract, as it is the same for all.
        """Do nothing: `finish` forces the file to disk."""

    def close(self) -> None:  # noqa: B027  # As above.
        """Do nothing: the Parquet writer calls it, but `finish` or `discard` ends the file."""

    def sync_ahead(self) -> None:  # noqa: B027  # As above; only some stores can.
        """Force the bytes so far to disk, so that `finish` has less to wait for."""

    @abstractmethod
    def finish(self, *, durable: bool = True) -> None:
        """Make the file visible and durable: it survives a power failure once this returns.

        A file that no commit will name need not be `durable`.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove the file. It raises no error, even if the storage is full."""


class FileStore(Protocol):
    """Files below one root. Can be pickled: a copy on another machine opens the root again.

    Raises OSError, or OttlaError with cause and remedy, if the storage refuses a request.
    """

    @property
    def url(self) -> str:
        """Return the root, without credentials."""

    @property
    def lists_all_at_once(self) -> bool:
        """Return whether a folder is listed in one step, whatever the number of its names.

        Other stores need a request for each thousand names, so callers list only the names that
        they need.
        """

    def address(self, path: str) -> str:
        """Return the file's address for other programs: a path of this machine, or a URL."""

    def prepare(self, folders: Iterable[str]) -> None:
        """Create the root and `folders` durably, in order, if the storage needs folders.

        It also checks that `put_if_absent` gives a name to only one writer. Raises OttlaError if it
        does not, or if the root cannot be created.
        """

    def top(self) -> list[str]:
        """Return the names directly below the root; empty if the root does not exist."""

    def names(self, folder: str, after: str = "") -> list[str]:
        """Return the names directly below `folder` that sort after `after`, in no order.

        Returns an empty list if the folder does not exist.
        """

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files below `folder`, in no order; nothing if it does not exist."""

    def create(self, path: str) -> StoreWriter:
        """Start a file under a name that no other writer uses."""

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write a file whole and durably; return False if the name has other content already.

        Of several writers, at any time and on any machine, only one gets True. A caller whose
        earlier try succeeded without an answer also gets True, because its content is found. So two
        writers must never use the same content. Raises PutUnknown if the file may have been
        written; after any other error it was not written.
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
        """Keep a marker at `path` while the context is open, for `is_held` of other processes."""

    def is_held(self, path: str) -> bool:
        """Return whether the process that made the marker may still hold it.

        Returns False if there is no marker, or if its process has certainly ended. A storage that
        does not know whether the process runs returns True until the marker is a day old.
        """


def no_put_if_absent(place: str, why: str, remedy: str) -> OttlaError:
    """Return the error for a storage whose `put_if_absent` may give a name to two writers."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{place} can't hold a table: {why}. A load is made visible by creating a file only if "
        f"it is absent; {remedy}",
    )


_COUNTS_MS = 24 * 3600 * 1000


def is_fresh_hold(modified_ms: int) -> bool:
    """Return whether a marker is recent enough that its process may still run."""
    return time.time_ns() // 1_000_000 - modified_ms < _COUNTS_MS
