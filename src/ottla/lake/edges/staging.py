"""Keeps a task's batches until the driver sends them: in Spark's message, or in a file if large.

Nothing here has to be durable: after a crash Spark runs the tasks again.
"""

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import PreparedBatch
from ottla.lake.edges.staged import read_batches, write_batch
from ottla.lake.store.store import StoreWriter
from ottla.lake.store.targets import open_store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parcel:
    """All batches of a task: `content`, or the file at `path` of the folder `url`."""

    content: bytes
    url: str = ""
    path: str = ""


class Staging:
    """Collects the batches of one attempt of a task. Each attempt writes a file of its own."""

    def __init__(self, url: str | None, folder: str, name: str, inline_bytes: int) -> None:
        self._url = url
        self._folder = folder
        self._path = f"{folder}{name}.batches"
        self._inline_bytes = inline_bytes
        self._buffer = io.BytesIO()
        self._file: StoreWriter | None = None

    def add(self, batch: PreparedBatch) -> None:
        """Take a batch. Raises OttlaError if the batches are too large and there is no folder."""
        if self._file is not None:
            write_batch(self._file, batch)
            return
        write_batch(self._buffer, batch)
        if self._buffer.tell() <= self._inline_bytes:
            return
        if self._url is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a task has more than inlineBytes={self._inline_bytes} bytes for the topic, and "
                "no place to stage them: set the option stagingLocation to a folder that all "
                "executors and the driver see, or raise inlineBytes",
            )
        store = open_store(self._url)
        store.prepare([self._folder])
        self._file = store.create(self._path)
        self._file.write(self._buffer.getvalue())
        self._buffer = io.BytesIO()

    def finish(self) -> Parcel:
        """Complete the parcel and return it."""
        if self._file is None:
            return Parcel(self._buffer.getvalue())
        assert self._url is not None
        self._file.finish()
        return Parcel(b"", self._url, self._path)

    def discard(self) -> None:
        """Remove the file, since the task failed."""
        if self._file is not None:
            self._file.discard()


def unpacked(parcel: Parcel) -> Iterator[PreparedBatch]:
    """Yield the batches of a parcel, in order. Raises OttlaError if its file is missing."""
    if not parcel.path:
        yield from read_batches(io.BytesIO(parcel.content))
        return
    try:
        source = open_store(parcel.url).open(parcel.path)
    except OSError as error:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"what a task staged cannot be read by the driver ({error}); nothing was written. "
            "Set the option stagingLocation to a folder that all executors and the driver see",
        ) from None
    with source:
        yield from read_batches(source)


def remove(parcels: Iterable[Parcel]) -> None:
    """Remove the files of parcels that are no longer needed."""
    with _only_logged():
        for parcel in parcels:
            if parcel.path:
                open_store(parcel.url).remove(parcel.path)


def remove_epochs(parcels: Iterable[Parcel], up_to: int) -> None:
    """Remove files of epochs up to this one, even of lost attempts, in the parcels' folders."""
    places = {(parcel.url, parcel.path.partition("/")[0]) for parcel in parcels if parcel.path}
    with _only_logged():
        for url, folder in places:
            store = open_store(url)
            for name in store.names(f"{folder}/"):
                epoch = name.partition("-")[0]
                if epoch.isdecimal() and int(epoch) <= up_to:
                    store.remove(f"{folder}/{name}")


@contextmanager
def _only_logged() -> Iterator[None]:
    """Log errors of removal: a file that stays is harmless, and the commit has succeeded."""
    try:
        yield
    except (OSError, OttlaError) as error:
        _log.warning("staged files could not be removed: %s", error)
