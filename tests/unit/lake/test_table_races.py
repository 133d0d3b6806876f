"""Two first loads at once, or one after another that was killed: they make one table between them.

The laws hold before each call of the operating system that making a table consists of; the tests
stop there rather than at steps that the code names, so a step added later is tested as well.
"""

import itertools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable

LIMIT_SECONDS = 120
NO_CALL = frozenset({"fspath"})


class Stopped:
    """`work` in a thread, stopped before its call number `call` of the operating system."""

    def __init__(self, work: Callable[[], object], call: int) -> None:
        self._stop_at = call
        self._calls = 0
        self._standing = threading.Event()
        self._may_go = threading.Event()
        self.stopped = False
        pool = ThreadPoolExecutor(1)
        self._future = pool.submit(self._run, work)
        pool.shutdown(wait=False)
        assert self._standing.wait(LIMIT_SECONDS)

    def go_on(self) -> object:
        """Let the work run to its end; return its result or raise its error."""
        self._may_go.set()
        return self._future.result(LIMIT_SECONDS)

    def _run(self, work: Callable[[], object]) -> object:
        sys.setprofile(self._at_call)
        try:
            return work()
        finally:
            sys.setprofile(None)
            self._standing.set()

    def _at_call(self, _frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or function.__module__ != os.name or function.__name__ in NO_CALL:
            return
        if self._calls == self._stop_at:
            self.stopped = True
            self._standing.set()
            self._may_go.wait(LIMIT_SECONDS)
        self._calls += 1


def make(target: Path) -> Callable[[], OwnTable]:
    target.mkdir(exist_ok=True)
    return partial(open_table, str(target))


def calls_of_making(folder: Path) -> int:
    """How many calls of the operating system make a table."""
    for calls in itertools.count():
        one = Stopped(make(folder / f"counted {calls}"), calls)
        one.go_on()
        if not one.stopped:
            return calls
    raise AssertionError


def test_two_that_make_a_table_at_once_both_open_it(tmp_path: Path) -> None:
    """The one stands before any of its calls, the other before any of its own; none is refused."""
    calls = calls_of_making(tmp_path)
    assert calls > 10
    refused = []
    for mine in range(calls):
        for others in range(calls):
            first = Stopped(make(tmp_path / f"{mine} {others}"), mine)
            second = Stopped(make(tmp_path / f"{mine} {others}"), others)
            for one in (first, second):
                try:
                    one.go_on()
                except OttlaError as error:
                    refused.append((mine, others, error.message))
    assert refused == []


def test_table_left_half_made_is_finished(tmp_path: Path) -> None:
    """What a load leaves that was killed before any of its calls is a table for the next load."""
    for call in range(calls_of_making(tmp_path)):
        making = make(tmp_path / f"killed {call}")
        killed = Stopped(making, call)  # For the file system the same as killed.
        assert making().latest() == (None, None)
        killed.go_on()
