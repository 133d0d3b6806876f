"""The dead letters of a changelog table, compared with their manifests and with the topic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.decode.layout import DEAD
from ottla.lake.folder.damaged_files import DamagedFiles
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.proof import keyed_hash
from ottla.lake.row_hash import MODULUS
from ottla.lake.stores.store import FileStore
from ottla.lake.verifying.file_findings import FileFindings, checked_rows


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
    in_file = FileFindings()
    place = f"dead letters of partition {file.partition}"
    with DamagedFiles(store) as damaged:
        for batch in checked_rows(store, file, DEAD, damaged, in_file, place=place):
            offsets = batch.column("offset").to_pylist()
            found.offsets.setdefault(file.partition, []).extend(offsets)
            found.batches.append(batch)
    found.rows += in_file.rows
    found.problems += in_file.problems
