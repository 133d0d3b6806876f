"""A table as other programs read it: delta-rs, pyiceberg, and DuckDB over the list of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

import ottla.lake


def delta(folder: Path) -> DeltaTable:
    return DeltaTable(str(folder))


@contextmanager
def iceberg_catalog(folder: Path) -> Iterator[Catalog]:
    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{folder}/_ottla/catalog.db")
    try:
        yield catalog
    finally:
        catalog.close()


def iceberg(folder: Path) -> Table:
    with iceberg_catalog(folder) as catalog:
        return catalog.load_table(("ottla", folder.name))


def rows_by_format(folder: Path, kind: str) -> list[tuple[int, int]]:
    """Partition and offset of each row, in order, as the format's own reader finds them."""
    if kind == "delta":
        # Not `to_pyarrow_table`, which ends some processes with an abort.
        found = pa.concat_tables(
            pq.read_table(path, columns=["partition", "offset"])
            for path in delta(folder).file_uris()
        )
    else:
        found = iceberg(folder).scan(selected_fields=("partition", "offset")).to_arrow()
    return sorted((row["partition"], row["offset"]) for row in found.to_pylist())


def rows_by_duckdb(folder: Path) -> list[tuple[int, int]]:
    """The same as DuckDB reads the files that `ottla lake files` names."""
    query = 'select partition, "offset" from read_parquet(?) order by all'
    found: list[tuple[int, int]] = duckdb.execute(query, [ottla.lake.files(str(folder))]).fetchall()
    return found


def expected(partitions: int, count: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(partitions) for offset in range(count)]
