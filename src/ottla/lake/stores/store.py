"""The seam *files*: a root, and files below it that are written once.

A table needs little of the storage that holds it: files that appear whole or not at all, and one
step that only one of several writers can take (`put_if_absent`). Each kind of storage has a class
that keeps the laws of `FileStore`; the tests of the contract run over all of them.

Paths are relative to the root, with `/` between names. A folder's path ends with `/`; the root's
is empty.
"""

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
    """A file was to be written, and it is not known whether it is there, or stays there."""


class StoreWriter(Protocol):
    """A file in the making, which `pyarrow.parquet.ParquetWriter` can write to.

    Of `finish` and `discard` one is called, and nothing after it.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, content: bytes) -> int: ...

    def tell(self) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> None:
        """Do nothing: `finish` and `discard` end the file, not the Parquet writer."""

    def finish(self, *, durable: bool = True) -> None:
        """Make the file visible and durable: it survives a power cut once this returns.

        Not `durable`: it need not survive one, as files that no commit will name.
        """

    def discard(self) -> None:
        """Leave nothing behind. Raises nothing for a storage that takes no more."""


class FileStore(Protocol):
    """Files below one root. Can be pickled: a copy on another machine opens the root again.

    Raises OSError, or OttlaError with cause and remedy, where the storage refuses.
    """

    @property
    def url(self) -> str:
        """The root, without credentials."""

    @property
    def lists_all_at_once(self) -> bool:
        """Whether a listing costs about the same for few names and for many.

        Elsewhere it costs a request for each thousand names: callers ask for what they need.
        """

    def address(self, path: str) -> str:
        """What other programs call the file: a path of this machine, or a URL."""

    def prepare(self, folders: Iterable[str]) -> None:
        """Make the root and `folders` durably, in order, where they have to be made.

        Also proves that `put_if_absent` gives a name to one writer only. Raises OttlaError where
        it does not, or where the root can't be there.
        """

    def top(self) -> list[str]:
        """Names of files and folders directly below the root; none where the root is absent."""

    def names(self, folder: str, after: str = "") -> list[str]:
        """Names directly below `folder` behind `after`, in no order; none where it is absent."""

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files below `folder`, in no order; none where it is absent."""

    def create(self, path: str) -> StoreWriter:
        """Begin a file under a name that no other writer uses."""

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write a file whole and durably; False where the name is taken, by other content.

        Of several writers, at any time and on any machine, one gets True. A caller whose earlier
        try was done without an answer gets True as well, by its content: no two writers may have
        the same. Raises PutUnknown where the name may have been taken; after any other error it
        has not.
        """

    def replace(self, path: str, content: bytes) -> None:
        """Write a file whole and durably, in place of one of that name if there is one."""

    def read(self, path: str) -> bytes:
        """Return a file's content. Raises FileNotFoundError."""

    def open(self, path: str) -> BinaryIO:
        """Open a file to read parts of it. Raises FileNotFoundError."""

    def size(self, path: str) -> int:
        """Return a file's size in bytes. Raises FileNotFoundError."""

    def remove(self, path: str) -> None:
        """Remove a file, where it is there."""

    def hold(self, path: str) -> AbstractContextManager[None]:
        """Keep a marker at `path` while the context is open, which others can see (`is_held`)."""

    def is_held(self, path: str) -> bool:
        """Whether the process that made the marker may still hold it.

        False where there is no marker, or where it is certain that its process has ended. A
        storage that does not know says True until the marker is a day old.
        """


def no_put_if_absent(place: str, why: str, remedy: str) -> OttlaError:
    """The error of `prepare` for a storage on which two writers can get one name."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{place} can't hold a table: {why}. A load is made visible by creating a file only if "
        f"it is absent; {remedy}",
    )
