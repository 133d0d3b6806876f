"""Temporary files of changes, which reduce tasks write and merge tasks read.

A file is in Arrow's IPC format. Each of its record batches, called a piece, has changes of one
bucket, so that a merge reads only the pieces of its bucket.

    _ottla/work/<load id>-p<partition>-<start>-<attempt>.arrow
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.changelog_columns import Flags
from ottla.lake.rows.key_changes import buckets_of
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.store import FileStore, StoreWriter
from ottla.lake.tables.markers import RunningLoads

FOLDER = "_ottla/work/"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file of changes: its bucket, its number in the file, and its size."""

    bucket: int
    number: int
    size_bytes: int


class SpilledOutput:
    """A file of changes that is being written. It is created with the first change."""

    def __init__(
        self, store: FileStore, path: str, buckets: int, schema: pa.Schema = ROW_SCHEMA
    ) -> None:
        self._schema = schema
        self._store = store
        self._path = path
        self._buckets = buckets
        self._file: StoreWriter | None = None
        self._writer: Any = None
        self.pieces: list[Piece] = []

    def write(self, changes: pa.Table, counts: Flags) -> None:
        """Append the changes flagged in `counts`, sorted by bucket. No key may be null."""
        places = np.flatnonzero(counts)
        if len(places) == 0:
            return
        with as_storage_error(self._store.address(FOLDER)):
            if self._file is None:
                self._file = self._store.create(self._path)
                self._writer = pa.ipc.new_file(pa.PythonFile(self._file, mode="w"), self._schema)
            buckets = buckets_of(changes.column("key").take(pa.array(places)), self._buckets)
            order = np.argsort(buckets.astype(np.int16), kind="stable")
            bounds = np.searchsorted(buckets[order], np.arange(self._buckets + 1))
            spread = changes.take(pa.array(places[order])).combine_chunks()
            for bucket in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
                first, after = int(bounds[bucket]), int(bounds[bucket + 1])
                for batch in spread.slice(first, after - first).to_batches():
                    self.pieces.append(Piece(bucket, len(self.pieces), batch.nbytes))
                    self._writer.write_batch(batch)

    def finish(self) -> None:
        """Complete the file, if there is one, without forcing it to disk: no commit names it."""
        if self._file is not None:
            with as_storage_error(self._store.address(FOLDER)):
                self._writer.close()
                self._file.finish(durable=False)

    def discard(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.discard()


def read_pieces(store: FileStore, path: str, numbers: Sequence[int]) -> list[pa.RecordBatch]:
    """Return the pieces of a file with these numbers."""
    with store.open(path) as content, pa.ipc.open_file(content) as file:
        return [file.get_batch(number) for number in numbers]


def path_stem(load_id: str, partition: int, start: int) -> str:
    """Return the prefix of the paths of a range's files; each attempt appends its own name."""
    return f"{FOLDER}{load_id}-p{partition}-{start:020d}"


def remove_work(store: FileStore, running: RunningLoads, own: str | None = None) -> None:
    """Remove temporary files of the load `own`, and of loads that no longer run."""
    ended: dict[str, bool] = {own: True} if own else {}
    for name in store.names(FOLDER):
        load_id = name.partition("-")[0]
        if load_id not in ended:
            ended[load_id] = not running.may_run(load_id)
        if ended[load_id]:
            store.remove(FOLDER + name)
