"""Processes that commit to one table at once, and processes that are killed while they do."""

import random
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import CommitConflict
from tests.unit.lake.forked import SERVER
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import written

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])
ROUNDS = 4
KILLS = 2


def compete(folder: str, kind: str, rounds: int, together: Barrier, results: Any) -> None:
    """Plan the next load when the other does, and commit when the other does."""
    won = []
    try:
        for _ in range(rounds):
            together.wait()
            table = open_table(folder, kind)
            manifest = written(table, 10, uuid.uuid4().hex, partitions=1)
            together.wait()
            with suppress(CommitConflict):
                table.commit(manifest)
                won.append(manifest.version)
    except BaseException:
        together.abort()
        raise
    finally:
        results.put(won)


def race(folder: Path, kind: str, rounds: int) -> list[list[int]]:
    """The versions that each of two processes has committed."""
    together, results = SERVER.Barrier(2), SERVER.Queue()
    runners = [
        SERVER.Process(target=compete, args=(str(folder), kind, rounds, together, results))
        for _ in range(2)
    ]
    for one in runners:
        one.start()
    # As long as it takes; one that fails or is killed lets the other go.
    waiting = runners
    while waiting:
        connection.wait([one.sentinel for one in waiting])
        if any(one.exitcode for one in waiting):
            together.abort()
        waiting = [one for one in waiting if one.exitcode is None]
    assert [one.exitcode for one in runners] == [0, 0]
    return [results.get() for _ in runners]


@BOTH
def test_of_two_processes_one_commits_each_version(tmp_path: Path, kind: str) -> None:
    """Each round one wins and the other raises CommitConflict; no row is there twice (P13)."""
    first, second = race(tmp_path, kind, ROUNDS)

    assert sorted(first + second) == list(range(1, ROUNDS + 1))
    open_table(str(tmp_path)).remove_orphans()
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(1, 10 * ROUNDS)
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.uncounted, found.loads) == ([], [], ROUNDS)


LOADING = """
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit
table = open_table({folder!r}, {kind!r})
print("ready", flush=True)
while True:
    commit(table, 10, partitions=1)
    print("committed", flush=True)
"""


@BOTH
def test_killed_anywhere_the_table_stays_whole(tmp_path: Path, kind: str) -> None:
    """SIGKILL within the libraries as well: what was answered is there, and each row once."""
    chance = random.Random(11)
    answered = 0
    for _ in range(KILLS):
        code = LOADING.format(folder=str(tmp_path), kind=kind)
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as loader:
            assert loader.stdout is not None
            assert loader.stdout.readline() == b"ready\n"
            for _ in range(chance.randint(1, 4)):
                assert loader.stdout.readline() == b"committed\n"
                answered += 1
            time.sleep(chance.random() * 0.05)  # Anywhere in the next commit.
            loader.send_signal(signal.SIGKILL)
            answered += loader.stdout.read().count(b"committed")
        table = open_table(str(tmp_path))
        newest, _ = table.latest()
        assert newest is not None
        assert newest.version >= answered
        table.remove_orphans()
        count = newest.positions[0]
        assert readers.rows_by_format(tmp_path, kind) == readers.expected(1, count)
        found = ottla.lake.verify(str(tmp_path), bootstrap=None)
        assert (found.problems, found.rows) == ([], count)
