"""Bytes that would end the process are read by another one, whose end is reported."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from ottla.lake.check.damaged_files import CallFailed, DamagedFiles, run_apart
from ottla.lake.check.foreign_files import read_foreign
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.file_check import FileUnreadable
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import FilesOfOthers, LiveFile
from tests.unit.lake.tables import TOPIC, commit


class DeadlyStore(LocalStore):
    """A store of which one file ends each process but this one that opens it."""

    this_process = 0

    def open(self, path: str) -> BinaryIO:
        if "-p0-" in path:
            assert os.getpid() != self.this_process
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().open(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeadlyStore:
    commit(open_table(str(tmp_path)), 10)
    monkeypatch.setattr(DeadlyStore, "this_process", os.getpid())
    return DeadlyStore(tmp_path)


def paths(store: LocalStore) -> list[str]:
    return sorted(file.path for file in store.files("data/"))


def test_result_comes_back() -> None:
    assert run_apart(partial(int, "7")) == 7


def test_error_of_the_call_is_reported() -> None:
    with pytest.raises(CallFailed, match="ValueError: invalid literal"):
        run_apart(partial(int, "x"))


def test_end_of_the_process_is_reported() -> None:
    with pytest.raises(CallFailed, match="the process that reads it was ended by SIGKILL"):
        run_apart(partial(signal.raise_signal, signal.SIGKILL))


def test_damaged_file_that_ends_its_reader_is_reported(store: DeadlyStore) -> None:
    """The other file has its rows; this process goes on."""
    deadly, sound = paths(store)
    with DamagedFiles(store) as damaged:
        damaged.add(deadly)
        damaged.add(sound)
        with pytest.raises(FileUnreadable, match="was ended by SIGSEGV"):
            list(damaged.batches(deadly))
        assert sum(batch.num_rows for batch in damaged.batches(sound)) == 10


def others(store: DeadlyStore, *paths: str) -> FilesOfOthers:
    """Files of other programs, with what their log says of them."""
    return FilesOfOthers(instead={path: LiveFile(path, store.size(path), None) for path in paths})


def test_foreign_file_that_ends_its_reader_is_reported(store: DeadlyStore) -> None:
    """No load knows the bytes of a file of another program: each is read apart first."""
    deadly, sound = paths(store)
    found = read_foreign(store, others(store, deadly, sound), TOPIC)
    assert found.problems[0].startswith(f"{deadly}, written by another program, can't be read")
    assert found.rows == 10
