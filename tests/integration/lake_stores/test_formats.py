"""Delta and Iceberg tables in a bucket: of several writers one wins, and the table is proven."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable
from rig.s3 import REGION, S3Server

import ottla.lake
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import CommitConflict
from tests.integration.lake_stores.servers import BUCKET
from tests.unit.lake.tables import commit, written

ROUNDS = 3


def options_of(form: Format, server: S3Server, folder: Path) -> dict[str, str]:
    options = {"aws_endpoint": server.endpoint, "aws_region": REGION}
    if form == "iceberg":
        options |= {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
    return options


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_of_several_writers_one_wins_each_version(
    form: Format, s3_server: S3Server, tmp_path: Path
) -> None:
    target = f"s3://{BUCKET}/formats-{form}"
    options = options_of(form, s3_server, tmp_path)
    commit(open_table(target, form, options), 5)
    loads = itertools.count()

    def write(_number: int) -> bool:
        table = open_table(target, None, options)
        load = written(table, 3, f"{next(loads):032x}")
        try:
            table.commit(load)
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = sum(sum(pool.map(write, range(4))) for _ in range(ROUNDS))
    table = open_table(target, None, options)
    newest, _ = table.latest()
    assert newest is not None
    assert won >= ROUNDS
    assert (newest.version, newest.total_rows) == (won + 1, 10 + 6 * won)
    assert len(table.remove_orphans()) == 2 * (4 * ROUNDS - won)
    found = ottla.lake.verify(target, bootstrap=None, store_options=options)
    assert (found.problems, found.rows) == ([], 10 + 6 * won)


def test_delta_tables_are_read_by_delta(s3_server: S3Server, tmp_path: Path) -> None:
    target = f"s3://{BUCKET}/formats-read"
    options = options_of("delta", s3_server, tmp_path)
    for _ in range(2):
        commit(open_table(target, "delta", options), 5)
    found = DeltaTable(target, storage_options={**options, "aws_allow_http": "true"})
    assert sorted(found.file_uris()) == sorted(ottla.lake.files(target, store_options=options))
