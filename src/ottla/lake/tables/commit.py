"""Handles commits by a library that may not be on disk, or may not have happened."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import sync_folder
from ottla.lake.store.errors import as_storage_error, plain, refusal_of_disk
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore, PutUnknown
from ottla.lake.tables.table import FencedWriter, LoadLost


class CommitRefused(OttlaError):
    """The log refused a commit, or its answer was lost. Another try may succeed."""


@dataclass(slots=True)
class Doubt:
    """Records whether a commit was tried; from then on it may have happened without an answer."""

    is_tried: bool = False


@contextmanager
def doubted_once_tried(place: str, version: int) -> Iterator[Doubt]:
    """Raise PutUnknown if the storage fails after the commit of `version` was tried.

    The commit's files stay then. A commit that a full or read-only disk refused did not happen.
    """
    doubt = Doubt()
    try:
        yield doubt
    except PutUnknown:
        raise
    except (OSError, OttlaError) as error:
        is_of_store = isinstance(error, OSError) or error.code is ErrorCode.KAFKA_STORAGE_ERROR
        if not doubt.is_tried or not is_of_store or refusal_of_disk(error) is not None:
            raise
        said = error.message if isinstance(error, OttlaError) else str(error)
        why = " ".join(plain(said).split())
        raise PutUnknown(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"it is not known whether version {version} of {place} was committed ({why}); see that "
            "the store can be reached, then run this again: what was committed is not done twice",
        ) from error


def sync_written(store: FileStore, folder: str, *, after: str) -> None:
    """Force the files of `folder` whose names sort after `after` to disk."""
    if isinstance(store, LocalStore):
        _sync(store, (folder + name for name in store.names(folder, after)))
        sync_folder(store.root / folder)


def _sync(store: LocalStore, paths: Iterable[str]) -> None:
    for path in paths:
        descriptor = os.open(store.root / path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def committed_before(place: str, version: int) -> Iterator[None]:
    """Add to an error that `version` of the table in `place` is committed. Raises OttlaError."""
    try:
        with as_storage_error(place):
            yield
    except (LoadLost, FencedWriter, CommittedThough):
        raise
    except OttlaError as error:
        raise CommittedThough(
            error.code,
            f"version {version} of {place} is committed and counts; what follows a commit failed, "
            f"which the next run does: {error.message}",
        ) from error


class CommittedThough(OttlaError):
    """Raised if a commit succeeded and a step after it failed."""
