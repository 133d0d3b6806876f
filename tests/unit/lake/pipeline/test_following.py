"""When a pipeline that follows writes its numbers and its report."""

from ottla.lake.edges.pipeline import NextWrite


def test_what_takes_long_is_due_less_often() -> None:
    """Every ten seconds, or for a twentieth of the time."""
    clock = [0.0]
    due = NextWrite(10.0, lambda: clock[0])
    assert due.is_now()
    clock[0] = 0.25
    due.done(0.0)
    clock[0] = 10.2
    assert not due.is_now()
    clock[0] = 10.25
    assert due.is_now()
    clock[0] = 12.25
    due.done(10.25)
    clock[0] = 52.2
    assert not due.is_now()
    clock[0] = 52.25
    assert due.is_now()
