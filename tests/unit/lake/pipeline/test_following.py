"""When a pipeline that follows writes its numbers."""

from ottla.lake.edges.pipeline import next_write_s


def test_what_takes_long_is_due_less_often() -> None:
    """Every ten seconds, or for a twentieth of the time."""
    assert next_write_s(0.0, 0.25) == 10.25
    assert next_write_s(10.25, 12.25) == 52.25
