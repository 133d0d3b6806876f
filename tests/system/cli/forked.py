"""Runs commands in processes that are forked from one which has imported them already.

Imports are most of what a short command costs. A forked process has standard streams, environment,
exit code and memory of its own, as a started one has.
"""

import multiprocessing
import os
import pkgutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import ottla.cli

# Spark is imported only by the commands that need it.
_IMPORTED = [
    module.name
    for module in pkgutil.walk_packages(ottla.cli.__path__, "ottla.cli.")
    if not module.name.startswith("ottla.cli.lake") and not module.name.endswith("__main__")
]
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(_IMPORTED)


def run_forked(
    words: Sequence[str], environment: Mapping[str, str], stdin: bytes, timeout_s: float
) -> tuple[int, bytes, bytes]:
    """Run `ottla WORDS…`; return its exit code, and what it wrote to its two outputs.

    Raises TimeoutError.
    """
    with tempfile.TemporaryDirectory(prefix="ottla-command-") as folder:
        paths = [Path(folder, name) for name in ("in", "out", "error")]
        paths[0].write_bytes(stdin)
        child = _server.Process(
            target=_run, args=(list(words), dict(environment), os.getcwd(), list(map(str, paths)))
        )
        child.start()
        child.join(timeout_s)
        if child.is_alive():
            child.kill()
            child.join()
            raise TimeoutError(f"ottla {' '.join(words)} still runs after {timeout_s} s")
        assert child.exitcode is not None
        return child.exitcode, paths[1].read_bytes(), paths[2].read_bytes()


def _run(words: list[str], environment: dict[str, str], folder: str, paths: list[str]) -> None:
    from ottla.cli.command import main  # Imported in the forked process only.

    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    for number, path in enumerate(paths):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    sys.argv = ["ottla", *words]
    # The name in usage lines is that of the command, not of this program.
    sys.modules["__main__"].__package__ = ""
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
