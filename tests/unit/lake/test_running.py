"""A load counts as running until it ends, or its process does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.lake.store.local import LocalStore
from ottla.lake.tables.markers import RunningLoads

DAY_S = 24 * 3600
MARKS_AND_DIES = """
import os, pathlib, signal, sys
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.markers import RunningLoads
with RunningLoads(LocalStore(pathlib.Path(sys.argv[1]))).mark("a"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "_ottla/running"


def running(folder: Path) -> RunningLoads:
    return RunningLoads(LocalStore(folder.parent.parent))


def test_load_runs_between_its_marks(folder: Path) -> None:
    loads, others = running(folder), running(folder)
    assert not others.may_run("a")
    with loads.mark("a"):
        others.sweep()
        assert others.may_run("a")
        assert not others.may_run("b")
    assert not others.may_run("a")
    assert list(folder.iterdir()) == []


def test_failed_load_runs_no_more(folder: Path) -> None:
    with pytest.raises(KeyError), running(folder).mark("a"):
        raise KeyError
    assert not running(folder).may_run("a")


def test_load_of_a_killed_process_runs_no_more(folder: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", MARKS_AND_DIES, str(folder.parent.parent)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (folder / "a").exists()
    loads = running(folder)
    assert not loads.may_run("a")
    loads.sweep()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("age_s", "may_run"), [(DAY_S - 900, True), (DAY_S + 900, False)])
def test_marker_of_another_machine_counts_for_a_day(
    folder: Path, age_s: int, may_run: bool
) -> None:
    """Its lock may not be seen from here."""
    folder.mkdir(parents=True)
    marker = folder / "a"
    marker.write_bytes(b"another kernel")
    then = marker.stat().st_mtime - age_s
    os.utime(marker, (then, then))
    assert running(folder).may_run("a") is may_run
