"""kill -9 before each call of the operating system that a commit in a folder consists of."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import ottla.lake
from ottla.lake.model.manifest import Manifest
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from tests.unit.lake.tables import commit, written


def committed_until(table: OwnTable, manifest: Manifest, call: int) -> bool:
    """Commit in a process that is killed before its call number `call`; whether it got there."""
    child = os.fork()
    if child == 0:
        calls = 0

        def at_call(_frame: FrameType, event: str, function: Any) -> None:
            nonlocal calls
            if event == "c_call" and function.__module__ == os.name:
                if calls == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                calls += 1

        sys.setprofile(at_call)
        table.commit(manifest)
        sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_before_any_call_it_neither_loses_nor_doubles(tmp_path: Path) -> None:
    """The load counts whole or not at all, and the next one goes on from what counts."""
    seen = set()
    for call in range(1000):
        target = str(tmp_path / str(call))
        table = open_table(target)
        commit(table, 3)
        was_killed = committed_until(table, written(table, 3, "f" * 32), call)
        found = ottla.lake.verify(target, bootstrap=None)
        assert found.problems == [], call
        seen.add(found.rows)
        table = open_table(target)
        commit(table, 3)
        table.remove_orphans()
        again = ottla.lake.verify(target, bootstrap=None)
        assert (again.problems, again.rows, again.uncounted) == ([], found.rows + 6, []), call
        if not was_killed:
            break
    assert call > 15
    assert seen == {6, 12}
