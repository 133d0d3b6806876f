"""Checks, before a load is committed, that the files of its tasks exist.

A task on another machine may have written to a disk of that machine only, without noticing.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import DataFile
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import NO_PARQUET

# How many files are checked at once: with remote files a check is mostly waiting.
_FILES_AT_ONCE = 8


def require_files(store: FileStore, files: Iterable[DataFile]) -> None:
    """Compare each file's size and its footer's row count with the task's result.

    Raises OttlaError for the first difference. The rows themselves are not read.
    """
    described = list(files)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        found = list(pool.map(lambda file: _wrong(store, file), described))
    for file, wrong in zip(described, found, strict=True):
        if wrong:
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"a task wrote {file.path}, which {wrong} in {store.url} where the load is "
                "committed; nothing was committed: the target must be one folder that the driver "
                "and all workers share, such as a network file system",
            )


def _wrong(store: FileStore, file: DataFile) -> str:
    """Return the file's problem in words that follow "which"; empty if there is none."""
    try:
        size = store.size(file.path)
        if size != file.size_bytes:
            return f"has {size} bytes instead of {file.size_bytes}"
        with store.open(file.path) as content:
            rows = pq.read_metadata(content).num_rows
    except FileNotFoundError:
        return "is missing"
    except NO_PARQUET as error:
        return f"can't be read ({error})"
    return "" if rows == file.rows else f"has {rows} rows instead of {file.rows}"
