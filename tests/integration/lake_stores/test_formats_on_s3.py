"""Delta and Iceberg tables in an object store: no lock table, one winner, read back by others."""

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog import load_catalog
from rig.s3 import S3Server

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import CommitConflict
from tests.integration.lake_stores.servers import BUCKET
from tests.unit.lake.tables import commit, written

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


def options_of(kind: str, folder: Path) -> dict[str, str]:
    """Iceberg's catalog is a file outside the store; Delta needs none."""
    if kind == "delta":
        return {}
    return {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}


def offsets(target: str, kind: str, folder: Path, server: S3Server) -> list[tuple[int, int]]:
    """Partition and offset of each row, by the format's own reader."""
    columns = ["partition", "offset"]
    if kind == "delta":
        files = S3FileSystem(endpoint_override=server.endpoint)
        names = [one.removeprefix("s3://") for one in DeltaTable(target).file_uris()]
        found = pa.concat_tables(
            pq.read_table(one, columns=columns, filesystem=files) for one in names
        )
    else:
        uri = f"sqlite:///{folder}/catalog.db"
        settings = {"type": "sql", "uri": uri, "s3.endpoint": server.endpoint}
        catalog = load_catalog("ottla", **settings)
        table = catalog.load_table(("ottla", target.rpartition("/")[2].replace("-", "_")))
        found = table.scan(selected_fields=tuple(columns)).to_arrow()
        catalog.close()
    return sorted((row["partition"], row["offset"]) for row in found.to_pylist())


@BOTH
def test_table_in_an_object_store(s3_server: S3Server, tmp_path: Path, kind: str) -> None:
    """Loads go on from each other, and the loser of two changes nothing."""
    target = f"s3://{BUCKET}/{uuid.uuid4()}"
    options = options_of(kind, tmp_path)
    commit(open_table(target, kind, options), 10)
    first, second = open_table(target), open_table(target)
    mine = written(first, 10, "a" * 32)
    commit(second, 10)
    with pytest.raises(CommitConflict, match="another load committed version 2"):
        first.commit(mine)

    assert offsets(target, kind, tmp_path, s3_server) == [(p, o) for p in (0, 1) for o in range(20)]
    found = ottla.lake.verify(target, bootstrap=None)
    assert (found.problems, found.loads, found.rows) == ([], 2, 40)
    assert len(ottla.lake.files(target)) == 4


def test_iceberg_in_an_object_store_needs_a_catalog(s3_server: S3Server) -> None:
    """A file in the store can't be a catalog: it is named, and nothing is made."""
    target = f"s3://{BUCKET}/{uuid.uuid4()}"
    with pytest.raises(OttlaError, match=r"needs a catalog .*catalog\.type=rest"):
        open_table(target, "iceberg")
    assert open_table(target).format == "parquet"
