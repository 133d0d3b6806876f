"""Progress in tasks becomes offsets, bytes and seconds left."""

import pytest

from ottla.lake.job.progress import Share, brief, progress_of

MIB = 1 << 20
SHARES = [Share(1_000, 10 * MIB), Share(3_000, 30 * MIB)]


def test_bytes_done_are_those_of_finished_tasks() -> None:
    """The sizes are the plan's."""
    found = progress_of(SHARES, 1, 2.0, 60.0)
    assert (found.offsets_done, found.bytes_done, found.left_s) == (1_000, 10 * MIB, 6.0)
    assert found.line() == (
        "25% · 1,000 of 4,000 offsets · 10.0 MiB of 40.0 MiB · 1 of 2 tasks · 5.0 MiB/s · "
        "6 s left · 1 min 2 s behind"
    )


def test_at_the_start_nothing_is_guessed() -> None:
    """No pace, no time left."""
    assert progress_of(SHARES, 0, 0.0, None).line() == (
        "0% · 0 of 4,000 offsets · 0 bytes of 40.0 MiB · 0 of 2 tasks"
    )


def test_end_has_no_time_left() -> None:
    assert progress_of(SHARES, 2, 4.0, None).line() == (
        "100% · 4,000 of 4,000 offsets · 40.0 MiB of 40.0 MiB · 2 of 2 tasks · 10.0 MiB/s"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.04, "0.0 s"),
        (1.25, "1.2 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (3_599, "59 min 59 s"),
        (7_500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
        (86_400 * 2_000, "2,000 d"),
    ],
)
def test_spans_have_two_units_at_most(seconds: float, words: str) -> None:
    assert brief(seconds) == words
