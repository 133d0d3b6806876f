"""The table's laws in each kind of storage: races, kills, damage, other engines that read it."""

import itertools
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset
from pyarrow.fs import S3FileSystem
from rig.s3 import KEY, REGION, SECRET, S3Server

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.store.targets import open_store
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import CommitConflict
from tests.integration.lake_stores.servers import BUCKET
from tests.unit.lake.forked import exit_code_of
from tests.unit.lake.tables import commit, written

ROUNDS = 4


def problems(target: str) -> list[str]:
    return ottla.lake.verify(target, bootstrap=None).problems


def test_loads_follow_each_other_and_are_proven(target: str) -> None:
    """Through a checkpoint; what counts is named by addresses that can be read."""
    for _ in range(12):
        commit(open_table(target), 2)
    found = ottla.lake.verify(target, bootstrap=None)
    assert (found.problems, found.uncounted, found.rows, found.loads) == ([], [], 48, 12)
    assert len(ottla.lake.files(target)) == 24
    assert all(path.startswith(target) for path in ottla.lake.files(target))


def test_two_first_loads_make_one_table(target: str) -> None:
    """At the same moment, again and again."""
    with ThreadPoolExecutor(8) as pool:
        for turn in range(ROUNDS):
            at = f"{target}/{turn}"
            tables = list(pool.map(lambda _n, at=at: open_table(at), range(4)))
            assert [table.latest() for table in tables] == [(None, None)] * 4


def test_of_several_writers_one_wins_each_version(target: str) -> None:
    """The others say so and leave nothing; no row is lost or doubled."""
    loads = itertools.count()

    def write(_number: int) -> bool:
        table = open_table(target)
        load = written(table, 3, f"{next(loads):032x}")
        try:
            table.commit(load)
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = [list(pool.map(write, range(4))) for _ in range(ROUNDS)]
    assert all(any(turn) for turn in won)
    table = open_table(target)
    newest, _ = table.latest()
    assert newest is not None
    wins = sum(map(sum, won))
    assert (newest.version, newest.positions) == (wins, {0: 3 * wins, 1: 3 * wins})
    removed = table.remove_orphans()
    assert len(removed) == 2 * (4 * ROUNDS - wins)
    assert problems(target) == []
    assert len(open_store(target).names("data/")) == 2 * wins


KILLED = """
import os, signal, sys
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import written
def kill(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
table = open_table(sys.argv[1], on_step=kill)
table.commit(written(table, 10, sys.argv[3]))
"""


def test_killed_at_any_step_it_neither_loses_nor_doubles(target: str) -> None:
    """kill -9 after each step of a commit; the next load goes on from what counts."""
    rows = 0
    for number, step in enumerate(["manifest offered", "manifest written", "head written"]):
        assert exit_code_of(KILLED, target, step, f"{number:032x}") == -signal.SIGKILL
        rows += 0 if step == "manifest offered" else 20
        table = open_table(target)
        newest, _ = table.latest()
        assert (newest.total_rows if newest else 0) == rows
        commit(table, 10)
        rows += 20
        table.remove_orphans()
        assert problems(target) == []
    assert ottla.lake.verify(target, bootstrap=None).rows == rows


def test_missing_and_altered_files_are_named(target: str) -> None:
    table = open_table(target)
    for _ in range(3):
        commit(table, 10)
    store = table.store
    chance = random.Random(3)
    files = [file.path for file in table.live_files()]
    paths = [*files, *(f"_ottla/manifests/{n:020d}.json" for n in (1, 2, 3))]
    for path in paths:
        content = store.read(path)
        flipped = bytearray(content)
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        store.replace(path, bytes(flipped))
        assert path.rpartition("/")[2] in "".join(problems(target))
        store.remove(path)
        assert path.rpartition("/")[2] in "".join(problems(target))
        if path.startswith("_ottla"):
            with pytest.raises(OttlaError, match=r"is missing|can't be read"):
                open_table(target).latest()
        store.replace(path, content)
    assert problems(target) == []
    store.replace("data/stray.parquet", store.read(files[0]))
    assert "data/stray.parquet does not belong to the table" in "".join(problems(target))


def test_planning_reads_few_files(target: str) -> None:
    """From the newest checkpoint on, however many loads there were."""
    for _ in range(13):
        commit(open_table(target), 1)
    asked: list[str] = []
    table = open_table(target)
    read = type(table.store).read

    def counted(store: object, path: str) -> bytes:
        asked.append(path)
        return read(store, path)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table.store), "read", counted)
        assert table.latest()[0] is not None
    assert len([path for path in asked if "manifests" in path]) == 4


def test_a_running_load_keeps_its_files(target: str) -> None:
    """Its version is taken, and it is still to find that out."""
    table = open_table(target)
    late = written(table, 3, "e" * 32)
    with table.running.mark("e" * 32):
        other = open_table(target)
        commit(other, 3)
        assert other.remove_orphans() == []
        with suppress(CommitConflict):
            table.commit(late)
    assert len(other.remove_orphans()) == 2


def test_other_engines_read_the_files_that_count(s3_server: S3Server) -> None:
    """DuckDB and pyarrow read the objects themselves; the sum is the table's."""
    target = f"s3://{BUCKET}/engines"
    for _ in range(3):
        commit(open_table(target), 10)
    paths = [path.removeprefix("s3://") for path in ottla.lake.files(target)]
    plain = S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=s3_server.endpoint
    )
    assert sum(len(pq.read_table(path, filesystem=plain)) for path in paths) == 60
    with duckdb.connect() as engine:
        engine.register("rows", dataset(paths, filesystem=plain))
        query = 'select count(*), count(distinct "offset"), min(value), max("offset") from rows'
        assert engine.execute(query).fetchall() == [(60, 30, b"v0", 29)]


def test_old_orphans_are_found_though_names_cost(s3_server: S3Server) -> None:
    """A load looks at files of the last versions; each twentieth one looks at all."""
    del s3_server
    target = f"s3://{BUCKET}/orphans"
    for _ in range(38):
        commit(open_table(target), 1, partitions=1)
    table = open_table(target)
    files = [file.path for file in table.live_files()]
    old, recent = (path.replace(path[17:49], "e" * 32) for path in (files[0], files[30]))
    for path in (old, recent):
        table.store.replace(path, b"x")
    assert table.remove_orphans() == [recent.removeprefix("data/")]
    for _ in range(2):
        commit(table, 1, partitions=1)
    assert table.remove_orphans() == [old.removeprefix("data/")]
