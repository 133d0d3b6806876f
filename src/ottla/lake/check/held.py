"""The live files of a table, each with the schema of the commit that added it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.log_bounds import NO_BOUNDS, LogBounds
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.layout import DEAD, FileLayout, layout_of
from ottla.lake.model.manifest import DataFile, TableSchema
from ottla.lake.model.plan import Range
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, foreign_batches


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A live file of rows or of dead letters."""

    file: DataFile
    schema: TableSchema | None = None
    is_dead: bool = False
    bounds: LogBounds = NO_BOUNDS
    buckets: Buckets = ONE_BUCKET
    # For a file of another program: the files of loads whose rows it may hold, and their schemas.
    replaces: tuple[tuple[DataFile, TableSchema | None], ...] = ()

    @property
    def layout(self) -> FileLayout:
        return DEAD if self.is_dead else layout_of(self.schema)

    @property
    def keeps_raw(self) -> bool:
        """Return whether its rows have keys, values and headers, and not only their hash."""
        return self.layout.keep_raw

    @property
    def is_foreign(self) -> bool:
        """Return whether another program wrote the file.

        No load has the digest of such a file, so it is checked as a whole.
        """
        return not self.file.sha256


def rows_of(
    store: FileStore, files: Iterable[HeldFile], wanted: Range, damaged: DamagedFiles
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `files` whose offsets lie in `wanted`; damaged files are read specially."""
    for held in files:
        file = held.file
        if file.start >= wanted.end or file.end <= wanted.start:
            continue
        try:
            # A file of another program may hold other partitions, too.
            batches = (
                foreign_batches(store, file.path, held.layout)
                if held.is_foreign
                else damaged.batches(file.path, held.layout)
            )
            for batch in batches:
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, wanted.start), pc.less(offsets, wanted.end)
                )
                if held.is_foreign:
                    of_it = pc.equal(batch.column("partition"), wanted.partition)
                    inside = pc.and_(inside, of_it)
                yield batch.filter(inside)
        except (OSError, FileUnreadable):
            continue  # The check of the file has reported this already.


def exists(store: FileStore, held: HeldFile) -> bool:
    """Return whether the file exists."""
    try:
        store.size(held.file.path)
    except FileNotFoundError:
        return False
    return True
