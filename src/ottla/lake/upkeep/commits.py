"""Commits of upkeep, which go on top of what loads have committed meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.log.contents import DEAD_LETTERS_FOLDER, of_files
from ottla.lake.log.live import live_letters
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost

_TRIES = 100


def commit_on_newest(
    table: LakeTable, make: Callable[[Manifest, str | None], Manifest]
) -> Manifest:
    """Commit what `make` gives for the newest manifest and its digest.

    Where another commit takes the version, or a writer with a new epoch has started, that is
    tried again on top of it. `make` raises LoadLost where it can't be.
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
    """Refuse a changelog table: its files are buckets of keys, and each run writes them anew."""
    if newest is not None and newest.changelog is not None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} is a changelog table: its files are not of ranges of offsets, and `ottla "
            "lake changelog` replaces them itself",
        )


def require_live(table: LakeTable, removed: Sequence[DataFile], what: str) -> None:
    """Raise LoadLost where one of the files, of rows or of dead letters, counts no more."""
    live = {file.path: file for file in table.live_files()}
    if any(map(is_letters, removed)):
        live |= {file.path: file for file in live_letters(table.history())}
    for file in removed:
        if live.get(file.path) != file:
            raise lost_to(table, f"removed {file.path}", what)


@contextmanager
def lost_where_removed(table: LakeTable, files: Sequence[DataFile], what: str) -> Iterator[None]:
    """Make a LoadLost of an error that comes since others removed some of `files` meanwhile.

    An expiry may have deleted those by now, so that they can't be read.
    """
    try:
        yield
    except LoadLost:
        raise
    except (OSError, OttlaError):
        require_live(table, files, what)
        raise


def is_letters(file: DataFile) -> bool:
    """Whether it is a file of dead letters, and not of rows."""
    return file.path.startswith(f"{DEAD_LETTERS_FOLDER}/")


def lost_to(table: LakeTable, deed: str, what: str) -> LoadLost:
    """The error of upkeep that came too late."""
    return LoadLost(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"another commit to {table.store.url} {deed} first; this {what} changed nothing: run it "
        "again",
    )
