"""Reads the rows of files with damaged bytes in another process, once each.

The remaining rows show which offsets are damaged. If Arrow crashes on the bytes, the report says
so.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pyarrow as pa

from ottla.lake.check.apart import CallFailed, run_apart
from ottla.lake.model.layout import RAW, FileLayout
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, file_batches


class DamagedFiles:
    """Files of a store, by path. Their rows are in a temporary folder until the context is left."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._read: dict[str, str | None] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, path: str, layout: FileLayout = RAW) -> None:
        """Read this file in another process from now on."""
        if path in self._read:
            return
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="ottla-damaged-")
        copy = self._copy(len(self._read))
        try:
            problem = run_apart(partial(_copy_rows, self._store, path, layout, copy))
        except CallFailed as error:
            copy.unlink(missing_ok=True)
            problem = f"can't be read: {error}"
        self._read[path] = problem

    def batches(self, path: str, layout: FileLayout = RAW) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file as `file_batches` does; of a damaged one, the readable rows."""
        if path not in self._read:
            yield from file_batches(self._store, path, layout)
            return
        copy = self._copy(list(self._read).index(path))
        if copy.exists():
            with pa.memory_map(str(copy)) as content, pa.ipc.open_file(content) as rows:
                for number in range(rows.num_record_batches):
                    yield rows.get_batch(number)
        problem = self._read[path]
        if problem is not None:
            raise FileUnreadable(problem)

    def _copy(self, number: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{number}.arrow"


def _copy_rows(store: FileStore, path: str, layout: FileLayout, copy: Path) -> str | None:
    """Copy the readable rows of a file; return its problem. Runs in another process."""
    batches = file_batches(store, path, layout)
    try:
        first = next(batches, None)
        if first is not None:
            with pa.ipc.new_file(str(copy), first.schema) as out:
                for batch in chain([first], batches):
                    out.write_batch(batch)
    except FileUnreadable as error:
        return str(error)
    return None
