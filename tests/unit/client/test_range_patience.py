"""How long a task's client tries again, and when it says so; in virtual time."""

from ottla.client.ranges import RetryPatience, setup_limit_s


def test_a_wait_is_said_once_after_a_moment() -> None:
    """Not of the first failures, and not again until an answer came."""
    patience = RetryPatience(60.0, 100.0)
    assert patience.seconds_to_report(100.5) is None
    assert patience.seconds_to_report(101.5) == 58.5
    assert patience.seconds_to_report(120.0) is None
    assert not patience.is_over(159.9)
    patience.answered(150.0)
    assert not patience.is_over(209.9)
    assert patience.is_over(210.0)
    assert patience.seconds_to_report(152.0) == 58.0


def test_an_end_that_is_near_is_not_announced() -> None:
    """An error follows at once, or the caller says itself what it waits for."""
    patience = RetryPatience(4.0, 0.0)
    assert patience.seconds_to_report(1.5) is None


def test_attempts_are_counted_from_the_last_answer() -> None:
    """They decide how long the next pause is."""
    patience = RetryPatience(60.0, 0.0)
    assert [patience.failed(), patience.failed()] == [0, 1]
    patience.answered(1.0)
    assert patience.failed() == 0


def test_the_first_set_up_is_short() -> None:
    """A silent broker is left after two seconds; a slow one gets more time with each try."""
    assert [setup_limit_s(failures, 30.0) for failures in (0, 1, 2, 3, 4, 90)] == [
        2.0,
        4.0,
        8.0,
        16.0,
        30.0,
        30.0,
    ]
    assert setup_limit_s(3, 1.0) == 1.0
