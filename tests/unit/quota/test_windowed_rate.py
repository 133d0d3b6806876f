"""Use counted in windows: never more than the limit in the long run, and hardly ever less."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.quota.rates import WindowedRate


def rate(
    limit: float, window_num: int = 11, window_ms: int = 1000, grace_ms: int = 1000
) -> WindowedRate:
    return WindowedRate(limit, window_num=window_num, window_ms=window_ms, grace_ms=grace_ms)


def test_use_within_the_limit_waits_for_nothing() -> None:
    """Who uses 100 a second of 100 is never slowed."""
    used = rate(100)

    assert [used.record(50, now_ms) for now_ms in range(0, 30_000, 500)] == [0] * 60


def test_use_beyond_the_limit_waits_until_time_has_paid_for_it() -> None:
    """300 at once are worth three seconds, one of them in advance; 300 more, three more."""
    used = rate(100)

    assert used.record(300, 7000) == 2000
    assert used.record(300, 8000) == 4000
    assert used.wait_ms(11_999) == 1
    assert used.wait_ms(12_000) == 0
    assert used.available(12_500) == 50


def test_who_begins_has_the_worth_of_the_grace() -> None:
    """A second's worth at once, and not a byte without a grace."""
    assert rate(100).record(100, 0) == 0
    assert rate(100).record(101, 0) == 10
    assert rate(100, grace_ms=0).record(1, 0) == 10


def test_what_was_used_too_much_outlives_its_window() -> None:
    """2,000 at once are paid for 19 s later, though only three windows are remembered."""
    used = rate(100, window_num=3)

    assert used.record(2000, 0) == 19_000
    assert used.wait_ms(10_000) == 9000
    assert not used.at_rest(19_000)
    assert used.wait_ms(19_000) == 0
    assert used.at_rest(30_000)


def test_silence_is_worth_nothing_later() -> None:
    """After a minute without use there is a second's worth, as at the beginning."""
    used = rate(100)
    used.record(1, 0)

    assert used.available(60_000) == 100
    assert used.record(300, 60_000) == 2000


def test_little_use_leaves_room_as_far_as_the_windows_reach() -> None:
    """Ten a second of a hundred for five seconds: what they left may be used at once."""
    used = rate(100)
    for second in range(5):
        used.record(10, second * 1000)

    assert used.available(5000) == 550
    assert used.record(550, 5000) == 0
    assert used.record(1, 5000) == 10


def test_nothing_may_be_used_of_nothing() -> None:
    """A limit of 0 waits for as long as the windows are, again and again."""
    used = rate(0)

    assert used.available(0) == 0
    assert used.record(1, 0) == 11_000
    assert used.wait_ms(100_000) == 11_000


def test_a_rate_tells_use_per_second() -> None:
    """Over the time since the first use, at least one window."""
    used = rate(1000)
    used.record(500, 0)
    assert used.rate(100) == 500
    used.record(500, 1900)
    assert used.rate(2000) == 500
    assert used.rate(60_000) == 0


@settings(deadline=None)
@given(
    limit=st.integers(1, 1000),
    window_num=st.integers(1, 30),
    window_ms=st.sampled_from([100, 1000, 7000]),
    amounts=st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 20_000)), max_size=60),
)
def test_who_waits_as_told_never_uses_more_than_the_limit(
    limit: int, window_num: int, window_ms: int, amounts: list[tuple[int, int]]
) -> None:
    """Up to any moment: what time is worth, the grace, and the last use, which nobody stops."""
    used = rate(limit, window_num, window_ms, window_ms)
    now_ms = total = 0
    for amount, pause_ms in amounts:
        assert total <= limit * (now_ms + window_ms) / 1000 + 1e-6
        total += amount
        now_ms += used.record(amount, now_ms) + pause_ms


@settings(deadline=None)
@given(
    limit=st.integers(1, 1000),
    window_num=st.integers(2, 30),
    amount=st.integers(20, 3000),
    late_ms=st.integers(0, 20),
)
def test_who_asks_again_when_told_gets_the_limit(
    limit: int, window_num: int, amount: int, late_ms: int
) -> None:
    """Being late by a little costs only what it costs once for each time the windows cover."""
    used = rate(limit, window_num)
    now_ms = total = 0
    while now_ms < 100_000:
        total += amount
        now_ms += used.record(amount, now_ms)
        now_ms += late_ms if used.available(now_ms) < amount else 0
    lost = late_ms / (window_num - 1) / 1000

    assert total >= limit * now_ms / 1000 * (1 - lost) - amount - limit


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 5000)), max_size=40),
    st.integers(2, 20),
)
def test_many_who_share_a_rate_get_no_more_than_one(
    uses: list[tuple[int, int]], users: int
) -> None:
    """Each waits only for itself: the sum stays at the limit, and one last use of each."""
    used = rate(100)
    ready_ms = [0] * users
    total = 0
    for index, (amount, pause_ms) in enumerate(uses):
        user = index % users
        now_ms = max(ready_ms)
        assert total <= 100 * (now_ms / 1000 + 1) + 500 * users
        total += amount
        ready_ms[user] = now_ms + used.record(amount, now_ms) + pause_ms
