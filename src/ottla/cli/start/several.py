"""Runs several brokers on one machine, one process each, under one command.

The brokers' code is imported before the processes are forked, so that they start fast and share
memory. Before the first forks there is no event loop, no thread and no lock.
"""

import contextlib
import gc
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.log_lines import OneLineFormatter
from ottla.base.settings import BrokerSettings
from ottla.base.system import broker_process, name_process
from ottla.cli.start.plan import Plan

_log = logging.getLogger(__name__)

# The signal that stops all brokers. The terminal sends it to all processes on Ctrl-C; SIGTERM
# stops a single broker.
ALL_STOP = signal.SIGINT
# A broker that is to be restarted ends with this exit code (EX_TEMPFAIL of sysexits).
_AGAIN = 75
# A broker of a unit that ends is started again after this time, doubled for each failure until it
# has served for long enough.
_RETRY_S = 0.5
_RETRY_MAX_S = 30.0
_SERVED_S = 60.0


class Brokers:
    """The brokers' processes. Call `start`, then, inside `handling_signals`, `watch`.

    `log_layout` is the layout of log lines; each line also names its broker. `plan_again` reads the
    settings again for a rolling restart, which else keeps them.
    """

    def __init__(
        self, plan: Plan, log_layout: str, plan_again: Callable[[], Plan] | None = None
    ) -> None:
        self._plan = plan
        self._plan_again = plan_again or (lambda: plan)
        self._log_layout = log_layout
        self._numbers: dict[int, int] = {}
        # The brokers that serve, with the monotonic times at which they began.
        self._serving: dict[int, float] = {}
        self._has_served = False
        # The delays of failed brokers, and the monotonic times of their next starts.
        self._delays: dict[int, float] = {}
        self._due: dict[int, float] = {}
        # Whether a rolling restart is to begin, and the brokers that it has still to restart.
        self._restart_wanted = False
        self._to_restart: list[int] = []
        # Brokers write their ports to one pipe. The other is closed when the parent dies.
        self._ports_in, self._ports_out = os.pipe()
        self._alive, self._hold = os.pipe()
        # Signals write to this pipe, so that none comes too early for `select`.
        self._signals_in, self._signals_out = os.pipe()
        self._text = ""
        self._stopping = False

    def start(self) -> None:
        """Fork a process for each broker. Raises OttlaError if a setting is wrong."""
        settings = {
            number: BrokerSettings(self._plan.settings(number)) for number in self._plan.numbers
        }
        if not hasattr(os, "fork"):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                "this system cannot fork, so that one command starts one broker: start each by"
                " itself with `ottla broker run`, the first with"
                f" {self._plan.properties(self._plan.numbers[0])}",
            )
        from ottla.broker.process import main as _  # noqa: F401, PLC0415  # Imported once for all.

        # A collection in a child would write to, and so copy, the memory of all objects.
        gc.freeze()
        for number, chosen in settings.items():
            self._fork(number, chosen)

    def _fork(self, number: int, settings: BrokerSettings) -> None:
        # Block signals until the child is registered. An earlier signal would not stop the child,
        # and in the child the inherited handler would stop the other brokers.
        handled = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD]
        signal.pthread_sigmask(signal.SIG_BLOCK, handled)
        # A broker that is started after the others were stopped would go on.
        process = os.fork() if not self._stopping else -1
        if process == 0:
            signal.set_wakeup_fd(-1)
            for each in handled:
                signal.signal(each, signal.SIG_DFL)
        elif process > 0:
            self._numbers[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
        if process == 0:
            self._run(number, settings)

    def ports(self) -> Iterator[tuple[int, int]]:
        """Yield number and port of each broker once it is ready; omit brokers that fail."""
        waiting = set(self._numbers.values())
        while waiting:
            for number, port in self._next_ready():
                waiting.discard(number)
                yield number, port
            waiting &= set(self._numbers.values())

    def watch(self) -> int:
        """Wait until every broker has ended for good; return the exit code."""
        while self._numbers or self._due:
            for number, port in self._next_ready():
                _log.info("broker %d serves again on port %d", number, port)
        return 0 if self._stopping else 1

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Stop all brokers on SIGINT or SIGTERM inside this context. Enter it after `start`.

        SIGHUP restarts the brokers of a unit, one after another; a terminal that is closed sends it
        to end them.
        """
        handled = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if self._plan.is_unit and not os.isatty(0):
            handled.append(signal.SIGHUP)
        for pipe_end in (self._signals_in, self._signals_out):
            os.set_blocking(pipe_end, False)
        wakeup_before = signal.set_wakeup_fd(self._signals_out, warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._on_signal) for number in handled}
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup_before)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _next_ready(self) -> list[tuple[int, int]]:
        """Do what is due, wait for an event, and return number and port of brokers now ready."""
        self._reap()
        self._start_due()
        if self._restart_wanted and not self._stopping:
            self._restart_all()
        self._restart_next()
        if not self._numbers and not self._due:
            return []
        wait_s = max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None
        readable, _, _ = select.select([self._ports_in, self._signals_in], [], [], wait_s)
        if self._signals_in in readable:
            os.read(self._signals_in, 4096)
        if self._ports_in not in readable:
            return []
        *lines, self._text = (self._text + os.read(self._ports_in, 4096).decode()).split("\n")
        ready = [(int(number), int(port)) for number, port in map(str.split, lines)]
        self._serving |= {number: time.monotonic() for number, _ in ready}
        self._has_served |= bool(ready)
        return ready

    def _reap(self) -> None:
        for process in list(self._numbers):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                number = self._numbers.pop(process)
                served_s = time.monotonic() - self._serving.pop(number, time.monotonic())
                if not self._stopping:
                    self._ended(number, os.waitstatus_to_exitcode(status), served_s)

    def _ended(self, number: int, code: int, served_s: float) -> None:
        if code == _AGAIN:
            self._fork(number, BrokerSettings(self._plan.settings(number)))
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if code == 0:
            how = "was stopped"
        level = logging.WARNING if code == 0 else logging.ERROR
        if not self._plan.is_unit:
            remedy = "`ottla broker run %s` starts it again"
            _log.log(
                level,
                f"broker %d %s; the others go on. {remedy}",
                number,
                how,
                self._plan.properties(number),
            )
            return
        delay_s = _RETRY_S
        if number in self._delays and served_s < _SERVED_S:
            delay_s = min(2 * self._delays[number], _RETRY_MAX_S)
        self._delays[number] = delay_s
        self._due[number] = time.monotonic() + delay_s
        _log.log(
            level,
            "broker %d %s; it is started again in %.1f s, and the others go on",
            number,
            how,
            delay_s,
        )
        if not self._has_served and self._delays.keys() >= set(self._plan.numbers):
            _log.error("none of the brokers could start; mend what the lines above name")
            self._due.clear()

    def _start_due(self) -> None:
        for number, due_s in list(self._due.items()):
            if due_s <= time.monotonic():
                del self._due[number]
                self._fork(number, BrokerSettings(self._plan.settings(number)))

    def _restart_all(self) -> None:
        """Begin a rolling restart, unless the settings have become wrong."""
        self._restart_wanted = False
        try:
            plan = self._plan_again()
            plan.check()
            if plan.numbers != self._plan.numbers:
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"another number of brokers, or other ids, than {self._plan.brokers} from"
                    f" {self._plan.numbers[0]} on: stop the command and start it again",
                )
        except OttlaError as error:
            _log.error("no broker is restarted, and all go on as before: %s", error.message)
            return
        self._plan = plan
        self._to_restart = list(plan.numbers)

    def _restart_next(self) -> None:
        """Continue a rolling restart, if all brokers serve.

        Brokers of a unit share no partition, so the next need not wait for replicas to be in sync.
        """
        if not self._to_restart or self._serving.keys() < set(self._plan.numbers):
            return
        number = self._to_restart.pop(0)
        _log.info("broker %d is restarted", number)
        del self._serving[number]
        for process, each in self._numbers.items():
            if each == number:
                os.kill(process, signal.SIGHUP)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._restart_wanted |= number == signal.SIGHUP
        if number not in (signal.SIGINT, signal.SIGTERM):
            return
        self._stopping = True
        self._due.clear()
        self._to_restart.clear()
        for process in self._numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, ALL_STOP)

    def _run(self, number: int, settings: BrokerSettings) -> None:
        """Run one broker in its own process. Does not return."""
        for inherited in (self._ports_in, self._hold, self._signals_in, self._signals_out):
            os.close(inherited)
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
            run(settings, on_ready=on_ready, ends_with_others=self._plan.ends_with_others)
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
