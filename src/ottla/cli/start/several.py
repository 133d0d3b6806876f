"""Runs several brokers on one machine, one process each, under one command.

The brokers' code is imported before the processes are forked, so that they start fast and share
memory. Before the forks there is no event loop, no thread and no lock.
"""

import contextlib
import logging
import os
import re
import select
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.log_lines import OneLineFormatter
from ottla.base.private_files import make_private_folder, write_private
from ottla.base.settings import BrokerSettings, properties_text
from ottla.base.system import broker_process, name_process

_log = logging.getLogger(__name__)

STORE_FILE = "store.sqlite"
_PROPERTIES = re.compile(r"broker-(\d+)\.properties")
# The signal that stops all brokers. The terminal sends it to all processes on Ctrl-C; SIGTERM
# stops a single broker.
ALL_STOP = signal.SIGINT
_STOPPING = (signal.SIGINT, signal.SIGTERM)
# A broker that is to be restarted ends with this exit code (EX_TEMPFAIL of sysexits).
_AGAIN = 75
_REPLICAS = 3
# For brokers that are started by hand: the first consumer of a group need not wait for others.
AT_HAND = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The brokers to start, their folders, and settings to add."""

    brokers: int
    data: Path
    host: str
    port: int
    assignments: Mapping[str, str]
    protocol: str = "PLAINTEXT"

    def settings(self, number: int) -> dict[str, str]:
        """Return the settings of broker `number` (from 1)."""
        replicas = str(min(_REPLICAS, self.brokers))
        port = self.port + number - 1 if self.port else 0
        return {
            "broker.id": str(number),
            "listeners": f"{self.protocol}://{self.host}:{port}",
            "log.dirs": str(self.folder(number)),
            **AT_HAND,
            "coordination.connect": f"sqlite://{self.data.absolute() / STORE_FILE}",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "share.coordinator.state.topic.replication.factor": replicas,
            "min.insync.replicas": "2" if self.brokers >= _REPLICAS else "1",
            **self.assignments,
        }

    def folder(self, number: int) -> Path:
        """Return the folder of a broker's logs."""
        return self.data.absolute() / f"broker-{number}"

    def properties(self, number: int) -> Path:
        """Return the path of a settings file with which the broker can be started separately."""
        return self.data.absolute() / f"broker-{number}.properties"

    def left_out(self) -> list[int]:
        """Return the brokers of an earlier start in this folder that this plan does not start."""
        return [number for number in brokers_in(self.data) if number > self.brokers]

    def require_place(self) -> None:
        """Raise OttlaError if the folder has the logs of a single broker."""
        if (self.data / "meta.properties").exists():
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{self.data} holds the logs of a single broker; choose another --data for"
                " several, or start one with `ottla start`",
            )

    def prepare(self) -> None:
        """Create the folders and the settings files."""
        make_private_folder(self.data)
        for number in range(1, self.brokers + 1):
            # The settings may contain passwords.
            write_private(self.properties(number), properties_text(self.settings(number)).encode())


def brokers_in(data: Path) -> list[int]:
    """Return the numbers of the brokers that `ottla start --brokers N` created in a folder."""
    if not (data / STORE_FILE).exists():
        return []
    found = (_PROPERTIES.fullmatch(path.name) for path in data.glob("broker-*.properties"))
    return sorted(int(match[1]) for match in found if match)


def require_single(data: Path) -> None:
    """Raise OttlaError if `data` belongs to a broker or to all brokers of a cluster."""
    member = data.absolute().with_suffix(".properties")
    if member.exists() and brokers_in(member.parent):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{data} belongs to a broker of the cluster in {member.parent}. Start that broker with "
            f"`ottla broker run {shlex.quote(str(member))}`, or a new one with another --data",
        )
    numbers = brokers_in(data)
    if numbers:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{data} holds a cluster of {len(numbers)} brokers, and a single one would begin there "
            f"without their topics. Start the cluster with `ottla start --brokers {numbers[-1]} "
            f"--data {shlex.quote(str(data))}`, or a new broker with another --data",
        )


class Brokers:
    """The brokers' processes. Call `start`, then, inside `stopped_by_signals`, `watch`.

    `log_layout` is the layout of log lines; each line also names its broker.
    """

    def __init__(self, plan: Plan, log_layout: str) -> None:
        self._plan = plan
        self._log_layout = log_layout
        self._numbers: dict[int, int] = {}
        # Brokers write their ports to one pipe. The other is closed when the parent dies.
        self._ports_in, self._ports_out = os.pipe()
        self._alive, self._hold = os.pipe()
        self._stopping = False

    def start(self) -> None:
        """Fork a process for each broker. Raises OttlaError if a setting is wrong."""
        settings = {
            number: BrokerSettings(self._plan.settings(number))
            for number in range(1, self._plan.brokers + 1)
        }
        if not hasattr(os, "fork"):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                "this system cannot fork, so that one command starts one broker: start each by"
                f" itself with `ottla broker run`, the first with {self._plan.properties(1)}",
            )
        from ottla.broker.process import main as _  # noqa: F401, PLC0415  # Imported once for all.

        for number, chosen in settings.items():
            self._fork(number, chosen)

    def _fork(self, number: int, settings: BrokerSettings) -> None:
        # Block signals until the child is registered. An earlier signal would not stop the child,
        # and in the child the inherited handler would stop the other brokers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        process = os.fork()
        if process == 0:
            for stopping in _STOPPING:
                signal.signal(stopping, signal.SIG_DFL)
        else:
            self._numbers[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        if process == 0:
            self._run(number, settings)

    def ports(self) -> Iterator[tuple[int, int]]:
        """Yield number and port of each broker once it is ready; omit brokers that fail."""
        waiting = set(self._numbers.values())
        text = ""
        while waiting:
            readable, _, _ = select.select([self._ports_in], [], [], 0.1)
            if readable:
                text += os.read(self._ports_in, 4096).decode()
                *lines, text = text.split("\n")
                for line in lines:
                    number, port = map(int, line.split())
                    waiting.discard(number)
                    yield number, port
            waiting -= set(self._reap())

    def watch(self) -> int:
        """Wait until every broker has ended; return the exit code."""
        while self._numbers:
            try:
                process, status = os.wait()
            except InterruptedError:
                continue
            self._ended(process, status)
        return 0 if self._stopping else 1

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Stop all brokers on SIGINT or SIGTERM inside this context. Enter it after `start`."""
        before = {
            number: signal.signal(number, lambda _number, _frame: self._stop())
            for number in _STOPPING
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _reap(self) -> list[int]:
        ended = []
        for process, number in list(self._numbers.items()):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                self._ended(process, status)
                ended.append(number)
        return ended

    def _ended(self, process: int, status: int) -> None:
        number = self._numbers.pop(process, None)
        if number is None or self._stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        if code == _AGAIN:
            self._fork(number, BrokerSettings(self._plan.settings(number)))
            return
        if code == 0:
            _log.warning(
                "broker %d was stopped; the others go on. `ottla broker run %s` starts it again",
                number,
                self._plan.properties(number),
            )
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        _log.error(
            "broker %d %s; the others go on. Start it again with `ottla broker run %s`",
            number,
            how,
            self._plan.properties(number),
        )

    def _stop(self) -> None:
        self._stopping = True
        for process in self._numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, ALL_STOP)

    def _run(self, number: int, settings: BrokerSettings) -> None:
        """Run one broker in its own process. Does not return."""
        os.close(self._ports_in)
        os.close(self._hold)
        layout = self._log_layout.replace("%(message)s", f"broker {number}: %(message)s")
        for handler in logging.getLogger().handlers:
            handler.setFormatter(OneLineFormatter(layout))
        # The parent forwards signals. If the parent dies, this thread stops the broker.
        threading.Thread(target=_end_with, args=(self._alive,), daemon=True).start()
        from ottla.broker.process.broker import Broker  # noqa: PLC0415
        from ottla.broker.process.main import run  # noqa: PLC0415

        def on_ready(broker: Broker) -> None:
            # If the parent has died, the pipe has no reader, and `_end_with` stops this broker.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._ports_out, f"{number} {broker.port}\n".encode())

        again = threading.Event()

        def on_restart(_number: int, _frame: object) -> None:
            again.set()
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGHUP, on_restart)
        name_process(broker_process(number))
        code = 1
        try:
            run(settings, on_ready=on_ready, ends_with_others=True)
            code = _AGAIN if again.is_set() else 0
        except OttlaError as error:
            sys.stderr.write(f"broker {number} cannot start: {error.message}\n")
        except Exception:  # noqa: BLE001
            # The process ends here, so the error must be logged here.
            _log.exception("broker %d ended by a mistake of ours", number)
        finally:
            sys.stderr.flush()
            os._exit(code)


def _end_with(pipe: int) -> None:
    """Stop this process in a controlled way once the process at the pipe's other end has ended."""
    os.read(pipe, 1)
    os.kill(os.getpid(), ALL_STOP)
