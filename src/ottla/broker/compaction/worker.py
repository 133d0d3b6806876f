"""Runs a cleaning job in a child process, or in this process for a simulated disk."""

import contextlib
import json
import os
import subprocess
import sys

from ottla.base.errors import ErrorCode, OttlaError
from ottla.storage.cleaner.compaction import Cleaning
from ottla.storage.cleaner.job import CleaningJob, CleaningOutcome
from ottla.storage.disk.errors import LogCorrupt, storage_error
from ottla.storage.disk.filesystem import FileSystem

# The module `signal` does not define it on every system.
_SIGKILL = 9
_COMMAND = [sys.executable, "-m", "ottla.broker.compaction.child"]


class CleaningStopped(OttlaError):
    """The cleaning was stopped, because the broker stops."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, "the broker stops")


class ChildWorker:
    """Starts a child process for a job.

    The child is a new program, not a fork, so it inherits no open files or locks.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._killed = False

    @property
    def pid(self) -> int | None:
        """The process id of the running child, or None."""
        return None if self._child is None else self._child.pid

    def run(self, job: CleaningJob) -> CleaningOutcome:
        """Run a job; blocks. Raises LogCorrupt, StorageError, other OttlaErrors."""
        if self._killed:
            raise CleaningStopped
        # In a new session a ctrl-C does not reach the child; the broker stops it in order.
        child = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._child = child
        try:
            if self._killed:
                raise CleaningStopped
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stderr is not None
            child.stdin.write(job.encode().encode() + b"\n")
            child.stdin.flush()
            # Keep the child's input open, because closing it would stop the child.
            output, trouble = child.stdout.readline(), child.stderr.read()
            code = child.wait()
        except BrokenPipeError:
            output, trouble, code = b"", b"", child.wait()
        finally:
            self._child = None
            child.kill()
            for pipe in (child.stdin, child.stdout, child.stderr):
                with contextlib.suppress(BrokenPipeError):
                    assert pipe is not None
                    pipe.close()
            child.wait()
        if self._killed:
            raise CleaningStopped
        return _outcome(job, output, trouble, code)

    def kill(self) -> None:
        """Stop the running job, from any thread; `run` then raises CleaningStopped."""
        self._killed = True
        child = self._child
        if child is not None:
            child.kill()


def clean_here(filesystem: FileSystem, job: CleaningJob) -> CleaningOutcome:
    """Run a job in this process, for a simulated disk. Raises LogCorrupt, StorageError."""
    try:
        return Cleaning(filesystem, job, _no_pace).run()
    except OSError as error:
        raise storage_error(error, job.folder, "compact the log") from error


def _outcome(job: CleaningJob, output: bytes, trouble: bytes, code: int) -> CleaningOutcome:
    """Decode the child's answer, or raise the error in it; see `ChildWorker.run`."""
    try:
        answer = json.loads(output)
    except ValueError:
        last = trouble.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{job.folder}: the cleaning process ended {_how(code)}: {last[0]}",
        ) from None
    if "outcome" in answer:
        return CleaningOutcome.decode(answer["outcome"])
    if "corrupt" in answer:
        raise Damaged(answer["corrupt"], answer["path"])
    if "errno" in answer:
        number = int(answer["errno"])
        error = OSError(number, os.strerror(number), job.folder)
        raise storage_error(error, job.folder, "compact the log") from None
    raise OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, answer["error"])


def _how(code: int) -> str:
    """Describe how the child ended: `with code 1`, `by signal 9`."""
    if code == -_SIGKILL:
        return f"by signal {-code}, perhaps as the machine had no memory left"
    return f"by signal {-code}" if code < 0 else f"with code {code}"


class Damaged(LogCorrupt):
    """Damage that the child process has found."""

    def __init__(self, message: str, path: str) -> None:
        OttlaError.__init__(self, ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.path = path
        self.position = self.offset = -1


def _no_pace(_count: int) -> None:
    """Limit nothing, because memory is fast."""
