"""Laws of the watch of the event loop: what it counts, and what it names."""

import asyncio
import signal
import time

import pytest

from ottla.base.log_lines import Seldom
from ottla.broker.runtime.loop_watch import LoopWatch


class Loop:
    """A loop whose time goes on only where a test says so; `now_s` and `worked_s` are seconds."""

    def __init__(self):
        self.now_s = self.worked_s = 100.0
        self.timers = []

    def call_later(self, delay_s, callback):
        self.timers.append((self.now_s + delay_s, callback))
        return asyncio.TimerHandle(0.0, callback, (), self)

    def get_debug(self):
        return False

    def _timer_handle_cancelled(self, handle):
        pass

    def turn(self, held_s=0.0, worked_s=0.0):
        """Let the next timer be due, hold the loop, and call the timer."""
        due_s, callback = self.timers.pop()
        self.now_s = due_s + held_s
        self.worked_s += worked_s
        callback()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def watch(loop):
    watch = LoopWatch(loop, lambda: loop.now_s, lambda: loop.worked_s)
    watch.start()
    yield watch
    watch.stop()


def test_a_loop_that_computes_for_long_is_counted(loop, watch):
    """From 20 ms on; the longest time is kept."""
    for held_s in (0.0, 0.019, 0.021, 0.08, 0.03):
        loop.turn(held_s, worked_s=held_s)
    assert (watch.stalls, watch.longest_ms, watch.waits) == (3, 80, 0)


def test_a_loop_that_waits_is_counted_apart(loop, watch, caplog):
    """Disks and other programs are not the broker's work; only long waits are logged."""
    caplog.set_level("INFO")
    loop.turn(0.05, worked_s=0.001)
    assert (watch.stalls, watch.waits, watch.longest_wait_ms, caplog.text) == (0, 1, 50, "")
    loop.turn(0.15, worked_s=0.01)
    assert (watch.stalls, watch.waits, watch.longest_wait_ms) == (0, 2, 150)
    assert "waited for 150 ms" in caplog.text


def test_a_stall_is_logged_once_in_a_minute(loop, watch, caplog):
    """As a warning if other brokers may have taken this one for dead."""
    caplog.set_level("INFO")
    loop.turn(0.05, worked_s=0.05)
    loop.turn(0.05, worked_s=0.05)
    loop.turn(60.0, worked_s=60.0)
    assert [each.levelname for each in caplog.records] == ["INFO", "WARNING"]
    assert "3 times of work, the longest 60000 ms" in caplog.messages[-1]


def test_an_idle_loop_is_looked_at_more_seldom(loop, watch):
    """A hundred times a second again as soon as it works."""

    def delays_ms(worked_s):
        found = []
        for _ in range(6):
            before_s = loop.now_s
            loop.turn(0.0, worked_s)
            found.append(round((loop.timers[-1][0] - loop.now_s) * 1000))
            assert loop.now_s > before_s
        return found

    assert delays_ms(0.0) == [20, 40, 80, 160, 160, 160]
    assert delays_ms(0.002) == [10] * 6


def test_a_garbage_collection_is_named(loop, watch, caplog):
    caplog.set_level("INFO")
    watch._on_collection("start", {"generation": 2})
    loop.now_s += 0.05
    watch._on_collection("stop", {"generation": 2})
    loop.turn(0.05, worked_s=0.05)
    assert "a garbage collection of generation 2 (50 ms) held the event loop" in caplog.text


class Busy:
    """Computes for 50 ms in each call of its hash."""

    def __hash__(self):
        end_s = time.thread_time() + 0.05
        while time.thread_time() < end_s:
            pass
        return 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timers")
def test_the_function_that_holds_the_loop_is_named(caplog):
    """A signal comes while the loop is held; the innermost function of Ottla is named."""
    caplog.set_level("INFO")

    async def scenario():
        watch = LoopWatch(asyncio.get_running_loop())
        watch.start(alarm=True)
        try:
            while not watch.stalls:
                Seldom(1).admit(Busy(), 0)
                await asyncio.sleep(0)
        finally:
            watch.stop()
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)

    asyncio.run(scenario())
    assert "Seldom.admit (ottla.base.log_lines, line " in caplog.text
