"""The judge of who leaves an ISR: what it calls needless, and whom it calls late."""

from verify.punctuality import FollowerLimits, TermSeen

LIMITS = FollowerLimits(lag_ms=100, silence_ms=40, min_isr=1)
ISR = (1, 2, 3)


def idle_until(now_ms: int) -> TermSeen:
    """1 leads; 2 and 3 fetched 5 records at once, and the next is appended at `now_ms`."""
    seen = TermSeen(5, (2, 3), 0)
    seen.on_fetch(2, 5, 1)
    seen.on_fetch(3, 5, 1)
    seen.on_end(6, now_ms)
    return seen


def test_a_follower_is_needed_until_it_lacked_records_in_silence_for_long_enough() -> None:
    """Time in which there was nothing to fetch is no silence."""
    seen = idle_until(1_000)
    (wrong,) = seen.needless(ISR, (3,), LIMITS, 1_039)
    assert wrong == (
        "needless shrink: 3 leaves [1, 2, 3]: caught up 39 ms ago, heard of 1038 ms ago"
    )
    assert seen.needless(ISR, (3,), LIMITS, 1_040) == []


def test_a_follower_with_a_full_disk_may_leave_at_once_where_enough_remain() -> None:
    """Once it reports room again it is needed as before."""
    seen = idle_until(1_000)
    seen.on_room(3, 1_001, is_full=True)
    assert seen.needless(ISR, (3,), LIMITS, 1_001) == []
    assert len(seen.needless(ISR, (3,), FollowerLimits(100, 40, min_isr=3), 1_001)) == 1
    seen.on_room(3, 1_002, is_full=False)
    assert len(seen.needless(ISR, (3,), LIMITS, 1_002)) == 1


def test_too_few_may_not_remain_for_the_sake_of_silence() -> None:
    """Silent followers stay where writes could not go on without them; late ones do not."""
    seen = idle_until(1_000)
    limits = FollowerLimits(lag_ms=100, silence_ms=40, min_isr=2)
    assert len(seen.needless(ISR, (2, 3), limits, 1_040)) == 2
    assert seen.needless(ISR, (2, 3), limits, 1_100) == []


def test_a_follower_is_late_by_the_first_record_it_lacks() -> None:
    """Later records give no time, and a fetch that does not reach the last end gives none."""
    seen = idle_until(1_000)
    seen.on_end(7, 1_050)
    seen.on_fetch(3, 6, 1_060)
    assert seen.late(ISR, LIMITS, 1_099) == []
    assert seen.late(ISR, LIMITS, 1_100) == [2, 3]


def test_a_follower_of_a_busy_leader_held_all_at_the_fetch_before() -> None:
    """Its next fetch reached where the log ended then."""
    seen = idle_until(1_000)
    seen.on_fetch(3, 5, 1_010)
    seen.on_end(9, 1_020)
    seen.on_fetch(3, 6, 1_030)
    assert seen.late(ISR, LIMITS, 1_109) == [2]
    assert seen.late(ISR, LIMITS, 1_110) == [2, 3]
