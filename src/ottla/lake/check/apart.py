"""Runs calls that may crash their process in a process of their own.

A library that reads binary files may crash on damaged bytes: a flipped bit in a Parquet file can
end the process inside Arrow, where no exception can be caught.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

_Result = TypeVar("_Result")
# The time limit of a call, generous enough for a busy machine.
_TIMEOUT_SECONDS = 600


class CallFailed(Exception):
    """Raised if the call raised, did not end in time, or ended its process."""


def run_apart(call: Callable[[], _Result]) -> _Result:
    """Return the result of `call` in another Python process. Both must be picklable.

    Raises CallFailed.
    """
    with TemporaryDirectory(prefix="ottla-apart-") as folder:
        answer = Path(folder) / "answer"
        # The modules of this process may be on a path that only this process has.
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "ottla.lake.check.apart", str(answer)],
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
    return result  # type: ignore[no-any-return]  # Of the call's type, which pickle does not say.


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
