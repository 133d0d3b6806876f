"""The file of records that a task could not take in: dead letters, as those of a load."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.decode.layout import DEAD
from ottla.lake.folder.damaged_files import DamagedFiles
from ottla.lake.folder.file_check import FileUnreadable, check_bytes
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.output import ParquetOutput
from ottla.lake.plan import Range
from ottla.lake.proof import batch_hash, keyed_hash
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.lake.stores.store import FileStore


class DeadLetterOutput:
    """A file of dead letters in the making; begun with the first of them."""

    def __init__(self, store: FileStore, path: str) -> None:
        self._path = path
        self._output = ParquetOutput(store, path, layout=DEAD)

    @property
    def rows(self) -> int:
        return self._output.rows

    def write(self, rows: pa.RecordBatch, reasons: Sequence[Any]) -> None:
        """Append rows with their columns `DEAD_FIELDS`."""
        if rows.num_rows:
            self._output.write(rows, reasons)

    def refuse(self, rows: pa.RecordBatch, stage: str, why: str) -> None:
        """Append rows that are refused for one reason."""
        count = rows.num_rows
        millis = pc.divide(rows.column("timestamp").cast(pa.int64()), 1_000)
        reasons = [
            pa.array([stage] * count, pa.string()),
            pa.array([why] * count, pa.string()),
            pa.nulls(count, pa.int64()),
            millis,
        ]
        self._output.write(rows, reasons)

    def finish(self) -> None:
        """End the file and make it durable."""
        self._output.finish()

    def discard(self) -> None:
        """Leave no file behind."""
        self._output.discard()

    def file(self, wanted: Range) -> DataFile | None:
        """The file as a manifest describes it; None where it has no rows."""
        if self.rows == 0:
            return None
        return DataFile(
            path=self._path,
            partition=wanted.partition,
            start=wanted.start,
            end=wanted.end,
            rows=self.rows,
            size_bytes=self._output.size_bytes,
            hash=hash_text(self._output.hash),
            sha256=self._output.sha256,
        )


@dataclass(slots=True)
class LettersFound:
    """The dead letters of a table, and what is wrong with their files."""

    rows: int = 0
    offsets: dict[int, list[int]] = field(default_factory=dict)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def hash_of(self, met: Mapping[int, Collection[int]], key: bytes) -> int:
        """The hash under `key` of those at some offsets of their partitions."""
        total = 0
        for batch in self.batches:
            partition = batch.column("partition")[0].as_py()
            offsets = pa.array(met.get(partition, ()), pa.int64())
            inside = pc.is_in(batch.column("offset"), offsets)
            total += keyed_hash(batch.filter(inside), key)
        return total % MODULUS


def read_letters(store: FileStore, manifests: Sequence[Manifest]) -> LettersFound:
    """Read the files of dead letters, which are few, and compare them with their manifests."""
    found = LettersFound()
    for manifest in manifests:
        for file in manifest.dead_letters:
            _read(store, file, found)
    return found


def _read(store: FileStore, file: DataFile, found: LettersFound) -> None:
    rows, hashed = 0, 0
    try:
        changed = check_bytes(store, file)
        with DamagedFiles(store) as damaged:
            if changed:
                found.problems += changed
                damaged.add(file.path, DEAD)
            for batch in damaged.batches(file.path, DEAD):
                rows += batch.num_rows
                hashed = (hashed + batch_hash(batch)) % MODULUS
                if batch.num_rows:
                    offsets = batch.column("offset").to_pylist()
                    found.offsets.setdefault(file.partition, []).extend(offsets)
                    found.batches.append(batch)
    except FileNotFoundError:
        found.problems.append(f"{file.path} is missing: {file.rows} dead letters")
    except (OSError, FileUnreadable) as error:
        found.problems.append(f"{file.path} can't be read: {error}")
    else:
        if (rows, hash_text(hashed)) != (file.rows, file.hash):
            found.problems.append(
                f"{file.path} holds {rows} dead letters with hash {hash_text(hashed)}; its "
                f"manifest says {file.rows} with hash {file.hash}"
            )
    found.rows += rows
