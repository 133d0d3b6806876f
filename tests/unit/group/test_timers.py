"""Laws of deadlines as data."""

from ottla.group.values.timers import Due, TimerKey, Timers

A = TimerKey(Due.SESSION, "g", "a")
B = TimerKey(Due.SESSION, "g", "b")


def _pop_all(timers: Timers, now_ms: int) -> list[TimerKey]:
    popped = []
    while (key := timers.pop_due(now_ms)) is not None:
        popped.append(key)
    return popped


def test_deadlines_come_up_in_their_order() -> None:
    """At their time, not before, and once."""
    timers = Timers()
    timers.set(B, 20)
    timers.set(A, 10)
    assert timers.next_deadline_ms() == 10
    assert _pop_all(timers, 9) == []
    assert _pop_all(timers, 20) == [A, B]
    assert timers.next_deadline_ms() is None


def test_deadline_can_be_moved_both_ways() -> None:
    """Later, as a heartbeat does, or earlier."""
    timers = Timers()
    timers.set(A, 10)
    timers.set(A, 30)
    assert timers.next_deadline_ms() == 30
    assert _pop_all(timers, 29) == []
    timers.set(A, 5)
    assert timers.next_deadline_ms() == 5
    assert _pop_all(timers, 100) == [A]


def test_cancelled_deadline_does_not_come_up() -> None:
    """And can be set again, later or earlier than before."""
    timers = Timers()
    timers.set(A, 10)
    timers.cancel(A)
    timers.cancel(B)
    assert A not in timers
    assert timers.next_deadline_ms() is None
    timers.set(A, 10)
    timers.cancel(A)
    timers.set(A, 20)
    timers.set(A, 15)
    assert _pop_all(timers, 14) == []
    assert _pop_all(timers, 15) == [A]
