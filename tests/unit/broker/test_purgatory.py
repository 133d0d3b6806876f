"""Deadlines come up in order, once, and not when cancelled."""

import pytest

from ottla.broker.runtime.purgatory import Purgatory
from ottla.testing.clock import ManualClock


class FakeLoop:
    """Holds the one timer that the purgatory may have armed."""

    def __init__(self, clock):
        self.clock = clock
        self.timer = None
        self.timers_total = 0

    def call_later(self, delay_s, callback):
        assert self.timer is None or self.timer.cancelled
        self.timer = FakeTimer(self.clock.monotonic_ms() + round(delay_s * 1000), callback)
        self.timers_total += 1
        return self.timer

    def advance(self, delta_ms):
        self.clock.advance(delta_ms)
        while (
            self.timer is not None
            and not self.timer.cancelled
            and self.timer.at_ms <= self.clock.monotonic_ms()
        ):
            timer, self.timer = self.timer, None
            timer.callback()


class FakeTimer:
    def __init__(self, at_ms, callback):
        self.at_ms = at_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


@pytest.fixture
def loop():
    return FakeLoop(ManualClock())


@pytest.fixture
def purgatory(loop):
    return Purgatory(loop.clock, loop)


def test_deadlines_come_up_in_order_of_time(loop, purgatory):
    """Whatever the order of scheduling, the earliest is called first."""
    called = []
    for delay_ms in (30, 10, 20):
        purgatory.schedule(delay_ms, lambda delay_ms=delay_ms: called.append(delay_ms))
    loop.advance(9)
    assert called == []
    loop.advance(11)
    assert called == [10, 20]
    loop.advance(10)
    assert called == [10, 20, 30]
    assert len(purgatory) == 0


def test_one_timer_serves_all_deadlines(loop, purgatory):
    """A later deadline arms nothing: only the earliest has the loop's timer."""
    for delay_ms in range(100, 1100):
        purgatory.schedule(delay_ms, lambda: None)
    assert loop.timers_total == 1


def test_a_cancelled_deadline_is_not_called(loop, purgatory):
    """Whoever was answered in time is not answered again."""
    called = []
    deadline = purgatory.schedule(10, lambda: called.append("cancelled"))
    purgatory.schedule(10, lambda: called.append("kept"))
    purgatory.cancel(deadline)
    purgatory.cancel(deadline)
    assert len(purgatory) == 1
    loop.advance(10)
    assert called == ["kept"]
    purgatory.cancel(deadline)
    assert len(purgatory) == 0


def test_cancelled_deadlines_do_not_pile_up(purgatory):
    """43,000 answered requests a second with 30 s of patience must not fill the memory."""
    for _ in range(100_000):
        purgatory.cancel(purgatory.schedule(30_000, lambda: None))
    assert len(purgatory._heap) < 3000


def test_a_deadline_may_cancel_and_schedule_others(loop, purgatory):
    """Callbacks may use the purgatory that calls them."""
    called = []
    second = purgatory.schedule(20, lambda: called.append("second"))

    def first():
        purgatory.cancel(second)
        purgatory.schedule(5, lambda: called.append("third"))

    purgatory.schedule(10, first)
    loop.advance(10)
    loop.advance(20)
    assert called == ["third"]
