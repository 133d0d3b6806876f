"""Compares the bytes, columns and rows of a data file with its manifest.

The SHA-256 finds any flipped bit. Columns and rows are compared too, to name the difference.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.layout import FileLayout
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.row_hash import MODULUS, hash_text, stored_hash
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, check_bytes, rows_problems


@dataclass(slots=True)
class FileFindings:
    """The contents of a file, and its problems."""

    rows: int = 0
    hash: int = 0
    problems: list[str] = field(default_factory=list)


def checked_rows(
    store: FileStore,
    file: DataFile,
    layout: FileLayout,
    damaged: DamagedFiles,
    found: FileFindings,
    *,
    place: str,
    hash_of: Callable[[pa.RecordBatch], int] = stored_hash,
) -> Iterator[pa.RecordBatch]:
    """Yield the readable rows of a file, and add differences from its manifest to `found`.

    A file with changed bytes is added to `damaged`. Messages say `place` for where rows belong.
    """
    try:
        changed = check_bytes(store, file)
        if changed:
            found.problems += changed
            damaged.add(file.path, layout)
        for batch in damaged.batches(file.path, layout):
            if batch.num_rows:
                found.rows += batch.num_rows
                found.hash = (found.hash + hash_of(batch)) % MODULUS
                yield batch
    except FileNotFoundError:
        found.problems.append(f"{file.path} is missing: {file.rows} rows of {place}")
    except OSError as error:
        found.problems.append(f"{file.path} can't be read: {error}")
    except FileUnreadable as error:
        found.problems.append(f"{file.path} {error}")
    else:
        if (found.rows, hash_text(found.hash)) != (file.rows, file.hash):
            found.problems.append(
                f"{file.path} holds {found.rows} rows with hash {hash_text(found.hash)}; its "
                f"manifest says {file.rows} rows with hash {file.hash}"
            )


def check_file(
    store: FileStore,
    file: DataFile,
    topic: str,
    layout: FileLayout,
    damaged: DamagedFiles,
    buckets: Buckets = ONE_BUCKET,
) -> FileFindings:
    """Compare one file of a load with its manifest: its offsets rise and lie within its range.

    All its rows have to belong to its bucket of event time.
    """
    found = FileFindings()
    place = f"partition {file.partition}, offsets {file.start} to {file.end}"
    rows = checked_rows(store, file, layout, damaged, found, place=place)
    _check_rows(rows, file, topic, buckets, found)
    return found


def _check_rows(
    batches: Iterable[pa.RecordBatch],
    file: DataFile,
    topic: str,
    buckets: Buckets,
    found: FileFindings,
) -> None:
    last_offset = file.start - 1
    for batch in batches:
        offsets = batch.column("offset")
        steps = pc.min(pc.subtract(offsets[1:], offsets[:-1])).as_py() if len(batch) > 1 else 1
        if steps <= 0 or offsets[0].as_py() <= last_offset or offsets[-1].as_py() >= file.end:
            found.problems.append(f"{file.path} holds an offset twice, or one of another range")
        last_offset = offsets[-1].as_py()
        if pc.unique(batch.column("partition")).to_pylist() != [file.partition]:
            found.problems.append(f"{file.path} holds rows of another partition")
        found.problems += rows_problems(batch, file.path, topic, file.event, buckets)
