"""A file holds the rows it was given, in plain Parquet types, and knows their hash."""

import errno
import hashlib
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rig.paths import ROOT

from ottla.base.errors import OttlaError
from ottla.lake.job.output import ParquetOutput, completed
from ottla.lake.model.row_hash import batch_hash
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.columns import ColumnBuilder
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import StoreWriter
from ottla.record.builder import BatchBuilder
from ottla.record.reader import batches


def columns(base_offset: int, count: int) -> pa.RecordBatch:
    builder = BatchBuilder(0, base_offset=base_offset)
    for number in range(base_offset, base_offset + count):
        key = None if number % 3 == 0 else b"key%d" % number
        builder.append(1000 + number, key, b"value%d" % number, [("h", b"1")])
    buffer = bytes(builder.build())
    rows = ColumnBuilder("flights", 4, 0, 1 << 40)
    for position, header in batches(buffer):
        rows.add(buffer, position, header)
    return rows.take()


def test_file_holds_the_rows_in_the_schemas_types(tmp_path: Path) -> None:
    """A reader sees the columns of the schema (no dictionary), and the hash is that of its rows."""
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet")
    given = [columns(0, 300), columns(300, 200)]
    for batch in given:
        output.write(batch)
    output.finish()

    table = pq.read_table(tmp_path / "part.parquet")
    assert table.schema.equals(ROW_SCHEMA)
    assert table.to_pylist() == [row for batch in given for row in batch.to_pylist()]
    assert table["offset"].to_pylist() == list(range(500))
    assert output.rows == 500
    assert output.hash == batch_hash(table)


def test_statistics_stand_where_a_query_can_prune(tmp_path: Path) -> None:
    """Offsets and times have a least and a greatest value in each row group."""
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet")
    output.write(columns(70, 30))
    output.finish()

    group = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0)
    by_name = {group.column(n).path_in_schema: group.column(n).statistics for n in range(9)}
    assert (by_name["offset"].min, by_name["offset"].max) == (70, 99)
    assert by_name["timestamp"].has_min_max
    assert by_name["value"] is None or not by_name["value"].has_min_max


def test_values_that_get_no_smaller_are_written_as_they_are(tmp_path: Path) -> None:
    """Random bytes are, text is not; rows, hash and the other columns are the same."""
    chance = Random(5)
    for name, value, codec in (
        ("random", chance.randbytes, "UNCOMPRESSED"),
        (
            "text",
            lambda size: (b'{"flight": "KL%d"}' % chance.randrange(9)) * (size // 10),
            "SNAPPY",
        ),
    ):
        values = [value(100) for _ in range(2000)]
        batch = columns(0, 2000)
        at = ROW_SCHEMA.get_field_index("value")
        batch = batch.set_column(at, ROW_SCHEMA.field(at), pa.array(values, pa.binary()))
        output = ParquetOutput(LocalStore(tmp_path), f"{name}.parquet", row_group_rows=1000)
        output.write(batch.slice(0, 1500))
        output.write(batch.slice(1500))
        output.finish()
        path = tmp_path / f"{name}.parquet"
        footer = pq.read_metadata(path)
        group = footer.row_group(footer.num_row_groups - 1)
        found = {c.path_in_schema: c.compression for c in map(group.column, range(9))}
        assert found.pop("value") == codec
        assert set(found.values()) == {"SNAPPY"}
        assert footer.num_row_groups == 2
        assert pq.read_table(path).column("value").to_pylist() == values
        assert output.hash == batch_hash(pq.read_table(path))


def test_no_rows_no_file(tmp_path: Path) -> None:
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet")
    output.finish()
    output.discard()

    assert list(tmp_path.iterdir()) == []


def test_discarded_file_is_gone(tmp_path: Path) -> None:
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet")
    output.write(columns(0, 3))
    output.discard()

    assert list(tmp_path.iterdir()) == []


def test_a_large_file_has_the_size_and_digest_of_its_bytes(tmp_path: Path) -> None:
    """Its parts are written by a thread, in order, and all of them before the file is finished."""
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet", row_group_rows=500)
    batch = random_values(2000, 20_000)
    for start in range(0, 2000, 300):
        output.write(batch.slice(start, 300))
    output.finish()

    content = (tmp_path / "part.parquet").read_bytes()
    assert output.size_bytes == len(content) > 32 << 20
    assert output.sha256 == hashlib.sha256(content).hexdigest()
    assert batch_hash(pq.read_table(tmp_path / "part.parquet")) == output.hash == batch_hash(batch)


@pytest.mark.parametrize("fails_at", ["write", "sync"])
def test_an_error_of_the_disk_ends_the_task(tmp_path: Path, fails_at: str) -> None:
    """Whether a part is written or synced while the next is made: nothing counts, nothing stays."""
    store = FullStore(tmp_path, fails_at)
    output = ParquetOutput(store, "part.parquet", row_group_rows=500)

    def load() -> None:
        with completed(output):
            output.write(random_values(2000, 20_000))

    with pytest.raises(OttlaError, match="no space is left on the disk"):
        load()

    assert list(tmp_path.iterdir()) == []
    assert output.sha256 == ""


def random_values(count: int, size: int) -> pa.RecordBatch:
    batch = columns(0, count)
    at = ROW_SCHEMA.get_field_index("value")
    values = pa.array([Random(number).randbytes(size) for number in range(count)], pa.binary())
    return batch.set_column(at, ROW_SCHEMA.field(at), values)


class FullStore(LocalStore):
    """A folder on a disk that is full after the first bytes of a file."""

    def __init__(self, root: Path, fails_at: str) -> None:
        super().__init__(root)
        object.__setattr__(self, "fails_at", fails_at)

    def create(self, path: str) -> StoreWriter:
        return FullWriter(super().create(path), self.fails_at)


class FullWriter(StoreWriter):
    def __init__(self, file: StoreWriter, fails_at: str) -> None:
        self._file, self._fails_at = file, fails_at

    def write(self, content: bytes) -> int:
        if self._fails_at == "write" and self.tell() > 8 << 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(content)

    def tell(self) -> int:
        return self._file.tell()

    def sync_ahead(self) -> None:
        if self._fails_at == "sync":
            raise OSError(errno.ENOSPC, "No space left on device")
        self._file.sync_ahead()

    def finish(self, *, durable: bool = True) -> None:
        self._file.finish(durable=durable)

    def discard(self) -> None:
        self._file.discard()


def row_groups(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    return [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]


def test_batches_of_answers_share_a_row_group(tmp_path: Path) -> None:
    """What one fetch gives is a few thousand rows; engines want hundreds of thousands."""
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet")
    for start in range(0, 80_000, 8_000):
        output.write(columns(start, 8_000))
    output.finish()

    assert row_groups(tmp_path / "part.parquet") == [80_000]


def test_row_group_ends_with_its_rows_or_its_bytes(tmp_path: Path) -> None:
    """Nothing waits beyond that, so that a task needs bounded memory; no row is lost between."""
    by_rows = ParquetOutput(LocalStore(tmp_path), "rows.parquet", row_group_rows=250)
    batch_bytes = columns(100, 100).nbytes
    by_bytes = ParquetOutput(
        LocalStore(tmp_path), "bytes.parquet", row_group_bytes=batch_bytes * 3 // 2
    )
    for start in range(100, 600, 100):
        by_rows.write(columns(start, 100))
        by_bytes.write(columns(start, 100))
    assert (tmp_path / "rows.parquet").exists()
    by_rows.finish()
    by_bytes.finish()

    assert row_groups(tmp_path / "rows.parquet") == [250, 250]
    assert row_groups(tmp_path / "bytes.parquet") == [200, 200, 100]
    for name in ("rows.parquet", "bytes.parquet"):
        table = pq.read_table(tmp_path / name)
        assert table["offset"].to_pylist() == list(range(100, 600))
        assert batch_hash(table) == by_rows.hash == by_bytes.hash


def test_rows_beyond_a_full_row_group_begin_the_next(tmp_path: Path) -> None:
    """No batch's end leaves a row group of a few thousand rows in the middle of a file."""
    output = ParquetOutput(LocalStore(tmp_path), "part.parquet", row_group_bytes=1 << 40)
    batch = pa.RecordBatch.from_arrays(
        [
            *[pa.nulls(150_000, ROW_SCHEMA.field(number).type) for number in range(3)],
            pa.repeat(pa.scalar("flights"), 150_000),
            pa.repeat(pa.scalar(0, pa.int32()), 150_000),
            pa.array(range(150_000), pa.int64()),
            pa.array(range(150_000), pa.timestamp("us", tz="UTC")),
            pa.repeat(pa.scalar(0, pa.int32()), 150_000),
        ],
        schema=ROW_SCHEMA,
    )
    for _ in range(8):
        output.write(batch)
    output.finish()

    assert row_groups(tmp_path / "part.parquet") == [1_048_576, 151_424]


def test_rows_are_made_and_written_without_pandas(tmp_path: Path) -> None:
    """pyarrow imports it for lists and scalars: half a second of each process that runs tasks."""
    code = (
        "import sys; from pathlib import Path; from tests.unit.lake import test_output as here;"
        "print('pandas' in sys.modules); output = here.ParquetOutput("
        "here.LocalStore(Path(sys.argv[1])), 'part.parquet');"
        "rows = here.columns(0, 9); output.write(rows); output.finish();"
        "from ottla.lake.source.tasks import _as_source; _as_source(rows, ['key', 'headers']);"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout.split() == ["False", "False"]
