"""Counts the times in which the event loop was held, and names the code that held it.

A timer of the loop that fires late shows that the loop served nothing meanwhile. In the process of
a broker, a signal interrupts a loop that is late, and shows the function that it is in.
"""

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from ottla.base import system
from ottla.base.log_lines import Seldom

_log = logging.getLogger(__name__)

# A loop that is late by this much was held: by its own work, or it waited.
STALL_MS: Final = 20
# How often the timer fires in a loop that works: a stall longer than both together is always seen.
_BEAT_S: Final = 0.01
# A loop that worked less than this between two beats is idle. Then the timer fires more and more
# seldom: a hundred times a second would take a third of a percent of a core for nothing.
_IDLE_S: Final = 0.001
_IDLE_BEAT_S: Final = 0.16
# A wait is logged from here on.
_LONG_WAIT_MS: Final = 100
# After this time clients and other brokers may consider this broker dead.
_GRAVE_MS: Final = 1_000
_INTERVAL_MS: Final = 60_000
_UNKNOWN: Final = "code outside of Ottla"


class LoopWatch:
    """Watches one event loop. It watches only after `start`.

    `monotonic_s` is the time, and `worked_s` the processor time of the loop's thread, in seconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_s: Callable[[], float] = time.monotonic,
        worked_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._loop = loop
        self._monotonic_s = monotonic_s
        self.worked_s = worked_s
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = self._worked_before_s = self._collecting_s = 0.0
        self._beat_s = _BEAT_S
        self._cause = ""
        self._seldom = Seldom(_INTERVAL_MS)
        self._has_alarm = False
        # How many times the loop computed for STALL_MS or longer, and the longest of these times.
        self.stalls = self.longest_ms = 0
        # The same for times in which it mostly waited: for a disk, the interpreter lock, or its
        # turn on a processor.
        self.waits = self.longest_wait_ms = 0

    def start(self, *, alarm: bool = False) -> None:
        """Watch until `stop`. With `alarm`, name causes by SIGALRM; needs the main thread."""
        self._has_alarm = alarm and system.HAS_INTERVAL_TIMER
        if self._has_alarm:
            signal.signal(signal.SIGALRM, self._on_alarm)
        gc.callbacks.append(self._on_collection)
        self._arm()

    def stop(self) -> None:
        """Stop watching; the counts stay. Does nothing if it does not watch."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        gc.callbacks.remove(self._on_collection)
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    # Hot: up to a hundred times a second.
    def _arm(self) -> None:
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, self._beat_s + STALL_MS / 1000)
        self._cause = ""
        self._worked_before_s = self.worked_s()
        self._due_s = self._monotonic_s() + self._beat_s
        self._timer = self._loop.call_later(self._beat_s, self._beat)

    def _beat(self) -> None:
        late_ms = round((self._monotonic_s() - self._due_s) * 1000)
        worked_s = self.worked_s() - self._worked_before_s
        if late_ms >= STALL_MS:
            self._note(late_ms, round(worked_s * 1000))
        self._beat_s = _BEAT_S if worked_s >= _IDLE_S else min(2 * self._beat_s, _IDLE_BEAT_S)
        self._arm()

    def _note(self, late_ms: int, worked_ms: int) -> None:
        # A thread that shares its processor is late by more than it computed.
        held_ms = min(late_ms, worked_ms)
        if held_ms >= STALL_MS:
            self.stalls += 1
            self.longest_ms = max(self.longest_ms, held_ms)
            self._log(held_ms, "%s held the event loop for %d ms", "please report this line")
            return
        self.waits += 1
        self.longest_wait_ms = max(self.longest_wait_ms, late_ms)
        if late_ms >= _LONG_WAIT_MS:
            advice = "see whether the disk is slow, or other programs need the processors"
            self._log(late_ms, "in %s the event loop waited for %d ms", advice)

    def _log(self, late_ms: int, what: str, advice: str) -> None:
        cause = self._cause or _UNKNOWN
        # A wait may be anywhere.
        kind = cause if advice.startswith("please") else ""
        if self._seldom.admit(kind, int(self._monotonic_s() * 1000)) is None:
            return
        _log.log(
            logging.WARNING if late_ms >= _GRAVE_MS else logging.INFO,
            f"{what}, in which no request was served (since the start: %d times of work, the"
            " longest %d ms; %d waits, the longest %d ms): %s",
            cause,
            late_ms,
            self.stalls,
            self.longest_ms,
            self.waits,
            self.longest_wait_ms,
            advice,
        )

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        if not self._cause:
            self._cause = _named(frame)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        now_s = self._monotonic_s()
        if phase == "start":
            self._collecting_s = now_s
        elif now_s - self._collecting_s >= STALL_MS / 1000:
            took_ms = round((now_s - self._collecting_s) * 1000)
            self._cause = f"a garbage collection of generation {info['generation']} ({took_ms} ms)"


def _named(frame: FrameType | None) -> str:
    """Return the innermost function of Ottla in the stack, with its module and line."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("ottla.") and module != __name__:
            return f"{frame.f_code.co_qualname} ({module}, line {frame.f_lineno})"
        frame = frame.f_back
    return _UNKNOWN
