"""A file holds the rows it was given, in plain Parquet types, and knows their hash."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.columns import ColumnBuilder
from ottla.lake.output import ParquetOutput
from ottla.lake.proof import batch_hash
from ottla.lake.schema import ROW_SCHEMA
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
    output = ParquetOutput(tmp_path / "part.parquet")
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
    output = ParquetOutput(tmp_path / "part.parquet")
    output.write(columns(70, 30))
    output.finish()

    group = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0)
    by_name = {group.column(n).path_in_schema: group.column(n).statistics for n in range(9)}
    assert (by_name["offset"].min, by_name["offset"].max) == (70, 99)
    assert by_name["timestamp"].has_min_max
    assert by_name["value"] is None or not by_name["value"].has_min_max


def test_no_rows_no_file(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path / "part.parquet")
    output.finish()
    output.discard()

    assert list(tmp_path.iterdir()) == []


def test_discarded_file_is_gone(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path / "part.parquet")
    output.write(columns(0, 3))
    output.discard()

    assert list(tmp_path.iterdir()) == []
