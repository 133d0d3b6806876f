"""Reads files with damaged bytes in another process.

Arrow may crash on damaged bytes: a flipped bit in a Parquet file can end the whole process instead
of raising an exception. The rows that can be read show which offsets are damaged.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import pyarrow as pa

from ottla.lake.model.layout import RAW, FileLayout
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, file_batches

_Result = TypeVar("_Result")
# The time limit of a call, generous enough for a busy machine.
_TIMEOUT_SECONDS = 600


class DamagedFiles:
    """Reads files of a store. Readable rows of damaged files are copied to a temporary folder.

    The folder is removed when the context is left.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._read: dict[str, str | None] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, path: str, layout: FileLayout = RAW) -> None:
        """Copy the readable rows of this damaged file, in another process."""
        if path in self._read:
            return
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="ottla-damaged-")
        copy = self._copy(len(self._read))
        try:
            problem = run_apart(partial(_copy_rows, self._store, path, layout, copy))
        except CallFailed as error:
            copy.unlink(missing_ok=True)
            problem = f"can't be read: {error}"
        self._read[path] = problem

    def batches(self, path: str, layout: FileLayout = RAW) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file as `file_batches` does; of a damaged file, the copied rows."""
        if path not in self._read:
            yield from file_batches(self._store, path, layout)
            return
        copy = self._copy(list(self._read).index(path))
        if copy.exists():
            with pa.memory_map(str(copy)) as content, pa.ipc.open_file(content) as rows:
                for number in range(rows.num_record_batches):
                    yield rows.get_batch(number)
        problem = self._read[path]
        if problem is not None:
            raise FileUnreadable(problem)

    def _copy(self, number: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{number}.arrow"


def _copy_rows(store: FileStore, path: str, layout: FileLayout, copy: Path) -> str | None:
    """Copy the readable rows of a file, and return its problem if it has one.

    Runs in another process.
    """
    batches = file_batches(store, path, layout)
    try:
        first = next(batches, None)
        if first is not None:
            with pa.ipc.new_file(str(copy), first.schema) as out:
                for batch in chain([first], batches):
                    out.write_batch(batch)
    except FileUnreadable as error:
        return str(error)
    return None


class CallFailed(Exception):
    """Raised if the call raised, did not end in time, or ended its process."""


def run_apart(call: Callable[[], _Result]) -> _Result:
    """Run `call` in another Python process and return its result. Both must be picklable.

    Raises CallFailed.
    """
    with TemporaryDirectory(prefix="ottla-apart-") as folder:
        answer = Path(folder) / "answer"
        # Pass this process's module path on, as it may have been changed at runtime.
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "ottla.lake.check.damaged_files", str(answer)],
                input=pickle.dumps(call),
                env={**os.environ, **paths},
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CallFailed(f"it takes more than {_TIMEOUT_SECONDS} seconds") from None
        if done.returncode != 0 or not answer.exists():
            raise CallFailed(f"the process that reads it {_end(done.returncode)}")
        result, problem = pickle.loads(answer.read_bytes())
    if problem is not None:
        raise CallFailed(problem)
    return result  # type: ignore[no-any-return]  # pickle returns Any.


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _answer(call: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001  # A panic of Rust is no Exception.
        return None, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(pickle.dumps(_answer(pickle.loads(sys.stdin.buffer.read()))))
