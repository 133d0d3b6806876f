"""Commits of upkeep, which can be made on top of loads that committed meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.chain import DEAD_LETTERS_FOLDER, of_files
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost

_TRIES = 100


def commit_on_newest(
    table: LakeTable, make: Callable[[Manifest, str | None], Manifest]
) -> Manifest:
    """Commit the manifest that `make` returns for the newest manifest and its digest.

    If another commit takes the version, or a writer with a new epoch has started, try again on top
    of that. `make` raises LoadLost if that is impossible.
    """
    for tried in range(1, _TRIES + 1):
        before, digest = table.latest()
        assert before is not None, "upkeep of an empty table has nothing to commit"
        manifest = make(before, digest)
        wrong = list(of_files(manifest))
        if wrong:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE, f"nothing was committed to {table.store.url}: {wrong[0]}"
            )
        try:
            table.commit(manifest)
        except (LoadLost, FencedWriter):
            if tried == _TRIES:
                raise
            continue
        return manifest
    raise AssertionError("each try returns or raises")


def require_rows(newest: Manifest | None, target: str) -> None:
    """Refuse a changelog table: its files are buckets of keys, and each run rewrites them."""
    if newest is not None and newest.changelog is not None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} is a changelog table: its files are not of ranges of offsets, and `ottla "
            "lake changelog` replaces them itself",
        )


def require_live(table: LakeTable, removed: Sequence[DataFile], what: str) -> None:
    """Raise LoadLost if one of the files, of rows or of dead letters, is no longer live."""
    live = {file.path: file for file in table.live_files()}
    if any(map(is_letters, removed)):
        live |= {file.path: file for file in live_letters(table.history())}
    for file in removed:
        if live.get(file.path) != file:
            raise lost_to(table, f"removed {file.path}", what)


@contextmanager
def lost_where_removed(table: LakeTable, files: Sequence[DataFile], what: str) -> Iterator[None]:
    """Raise LoadLost in place of an error caused by others having removed some of `files`.

    An expiry may have deleted the removed files by now, so that they cannot be read.
    """
    try:
        yield
    except LoadLost:
        raise
    except (OSError, OttlaError):
        require_live(table, files, what)
        raise


def is_letters(file: DataFile) -> bool:
    """Return whether this is a file of dead letters rather than of rows."""
    return file.path.startswith(f"{DEAD_LETTERS_FOLDER}/")


def lost_to(table: LakeTable, deed: str, what: str) -> LoadLost:
    """Return the error for upkeep that came too late."""
    return LoadLost(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"another commit to {table.store.url} {deed} first; this {what} changed nothing: run it "
        "again",
    )
