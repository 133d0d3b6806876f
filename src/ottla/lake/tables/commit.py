"""Treats commits whose outcome is unknown, and removes the files of failed loads."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import sync_folder
from ottla.lake.store.errors import plain, refusal_of_disk
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore, PutUnknown
from ottla.lake.tables.data_files import remove_load
from ottla.lake.tables.table import CommitConflict, LakeTable, WriterFenced


class CommitRefused(OttlaError):
    """The table's log refused a commit, or its answer was lost. A retry may succeed."""


@dataclass(slots=True)
class Doubt:
    """Records whether a commit was tried. From then on, an error does not mean that it failed."""

    is_tried: bool = False


@contextmanager
def doubted_once_tried(place: str, version: int) -> Iterator[Doubt]:
    """Raise PutUnknown if the storage fails after the commit of `version` was tried.

    The commit's files stay then, as it may have succeeded. If the disk was full or read-only, the
    commit did not happen, and the error is raised unchanged.
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
    """Force the files of a local `folder` whose names sort after `after` to disk.

    Folders in it are left out (Spark makes `_delta_log/_staged_commits`), and so are files that
    another program removes meanwhile.
    """
    if not isinstance(store, LocalStore):
        return
    for name in store.names(folder, after):
        with (
            suppress(IsADirectoryError, FileNotFoundError),
            (store.root / folder / name).open("rb") as file,
        ):
            os.fsync(file.fileno())
    sync_folder(store.root / folder)


class Steps:
    """The completed steps of a load. `on_step` is called with the name of each step."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self.done: set[str] = set()
        self._on_step = on_step

    def reached(self, step: str) -> None:
        """Record that a step is complete."""
        self.done.add(step)
        self._on_step(step)


@contextmanager
def removed_on_failure(
    table: LakeTable, version: int, load_id: str, steps: Steps
) -> Iterator[None]:
    """Remove the load's files if it fails, unless a manifest may name them.

    A task that is still running may write one more file. It is removed later, as orphans are.
    """
    try:
        yield
    except BaseException as error:
        if _counts_not(error, table, load_id, steps):
            with suppress(OSError, OttlaError):
                remove_load(table.store, version, load_id)
        raise


def _counts_not(error: BaseException, table: LakeTable, load_id: str, steps: Steps) -> bool:
    """Return True if it is certain that no manifest will ever name the load's files."""
    if "manifest offered" not in steps.done:
        return True
    if isinstance(error, CommitConflict | WriterFenced):
        return all(manifest.load_id != load_id for manifest in table.history())
    is_refusal = isinstance(error, OSError | OttlaError) and not isinstance(error, PutUnknown)
    return is_refusal and "manifest written" not in steps.done
