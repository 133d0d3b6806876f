"""Runs programs in processes that are forked from one which has imported the lake already.

Its imports are most of what a program costs that ends itself after a step of a load.
"""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess

SERVER = multiprocessing.get_context("forkserver")
_IMPORTED = [
    "ottla.lake.edges.public",
    "ottla.lake.tables.delta",
    "ottla.lake.tables.iceberg",
    "tests.unit.lake.tables",
]
_LIMIT_SECONDS = 200
SERVER.set_forkserver_preload(_IMPORTED)


def begin(program: str, *arguments: str) -> ForkServerProcess:
    """Start a program, with `arguments` in `sys.argv` after its name; it can be killed."""
    child = SERVER.Process(target=_run, args=(program, arguments, dict(os.environ)))
    child.start()
    return child


def end_of(child: ForkServerProcess) -> int | None:
    """Wait for its end; its exit code, below 0 where a signal has ended it."""
    child.join(_LIMIT_SECONDS)
    return child.exitcode


def exit_code_of(program: str, *arguments: str) -> int | None:
    """Run a program to its end; its exit code."""
    return end_of(begin(program, *arguments))


def _run(program: str, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["program", *arguments]
    exec(program, {"__name__": "__main__"})
