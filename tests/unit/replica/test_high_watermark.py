"""What is committed: the least end of all who may be in sync, and no sooner."""

from ottla.base.errors import ErrorCode
from ottla.replica.effects import SERVE, AdvanceHighWatermark, BelowMinIsr

from .parts import (
    EPOCH,
    ONE,
    THREE,
    TWO,
    Fetches,
    append,
    follower,
    image,
    leader,
    log_of,
    without_decisions,
)


def test_high_watermark_travels_as_the_paper_tells() -> None:
    """P15: 000 section 8.1.3, step by step and with its numbers."""
    near_log, far_log = log_of([]), log_of([])
    near, far = follower(near_log), follower(far_log)
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    # 1. The leader's end is 5, every high watermark 0.
    assert (leading.term.log.log_end_offset, leading.term.high_watermark) == (5, 0)
    # 2. and 3. Both ask from 0: HW = min(0, 0, 5) = 0, and that is what the answers say.
    assert fetch(TWO, 0) is SERVE
    assert fetch(THREE, 0) is SERVE
    assert leading.term.high_watermark == 0
    # 4. They come to 3 and 4: HW = min(0, 3) and min(0, 4).
    for one, log, end in ((near, near_log, 3), (far, far_log, 4)):
        assert one.begin_fetch(0, now_ms=0)
        one.on_records(one.nonce, EPOCH, 0, 0, empty=False)
        for value in range(end):
            log.append((EPOCH, value))
        assert one.on_appended() == ()
    # 5. The leader, at 15 by now, hears 3 and 4: HW = min(3, 4, 15) = 3.
    append(leading, 10)
    assert fetch(TWO, 3) is SERVE
    assert fetch(THREE, 4) == (AdvanceHighWatermark(3), *SERVE)
    # 6. With the answers they come to 6 and 8: HW = min(6, 3) and min(8, 3).
    for one, log, end in ((near, near_log, 6), (far, far_log, 8)):
        assert one.begin_fetch(log.log_end_offset, now_ms=0)
        one.on_records(one.nonce, EPOCH, 3, 0, empty=False)
        while log.log_end_offset < end:
            log.append((EPOCH, log.log_end_offset))
        assert one.on_appended() == (AdvanceHighWatermark(3),)


def test_a_fetch_that_changes_nothing_gives_the_same_answer_object() -> None:
    """The hot path allocates nothing: thousands of followers' fetches per second come here."""
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(TWO, 5)
    assert fetch(TWO, 5) is SERVE


def test_leader_counts_its_own_flushed_end() -> None:
    """With group commit the leader's own end is what it has flushed."""
    leading = leader(log_of([EPOCH] * 5), own_end=2)
    fetch = Fetches(leading)
    fetch(TWO, 5)
    assert fetch(THREE, 5) == (AdvanceHighWatermark(2), *SERVE)
    assert leading.on_own_end(5) == (AdvanceHighWatermark(5),)


def test_leader_alone_commits_at_once() -> None:
    """One replica, or one in sync with a minimum of one, waits for nobody."""
    leading = leader(log_of([EPOCH] * 5), (ONE,))
    assert leading.begin(now_ms=0) == (AdvanceHighWatermark(5),)
    assert append(leading, 1) == (AdvanceHighWatermark(6),)


def test_a_new_leader_knows_nothing_of_followers() -> None:
    """P23: before a follower has fetched in the new term it holds nobody knows what."""
    leading = leader(log_of([4] * 5), high_watermark=3)
    fetch = Fetches(leading)
    assert leading.begin(now_ms=0) == ()
    assert fetch(TWO, 5) is SERVE
    assert leading.term.high_watermark == 3
    assert fetch(THREE, 5) == (AdvanceHighWatermark(5), *SERVE)


def test_below_the_minimum_nothing_is_committed_and_acks_all_is_refused() -> None:
    """P25: not enough replicas is said before and after an append, and never a lie."""
    leading = leader(log_of([EPOCH] * 5), high_watermark=5, min_isr=2)
    alone = image((ONE,), version=5)
    assert without_decisions(leading.on_state(alone, now_ms=0)) == [BelowMinIsr()]
    assert append(leading, 1) == ()
    assert leading.term.under_min_isr, "acks=all is refused"
    assert leading.term.is_certain(now_ms=0), "acks=1 is not"
    assert leading.term.high_watermark == 5, "the last append is not committed"


def test_minimum_asks_for_no_more_replicas_than_there_are() -> None:
    """min.insync.replicas above the replication factor means all of them."""
    leading = leader(log_of([EPOCH]), min_isr=9)
    fetch = Fetches(leading)
    fetch(TWO, 1)
    assert fetch(THREE, 1) == (AdvanceHighWatermark(1), *SERVE)


def test_end_is_held_back_until_the_term_has_committed() -> None:
    """KIP-207: an older leader may have shown more than the new one knows to be committed."""
    leading = leader(log_of([4] * 5), high_watermark=3)
    fetch = Fetches(leading)
    assert leading.term.latest_offset() is None
    assert leading.term.check_read(5) is ErrorCode.NONE
    assert leading.term.check_read(6) is ErrorCode.OFFSET_OUT_OF_RANGE
    fetch(TWO, 5)
    fetch(THREE, 5)
    assert leading.term.latest_offset() == 5


def test_a_restarted_follower_counts_from_its_next_fetch() -> None:
    """What an earlier registration held is not what this one holds."""
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(TWO, 5)
    fetch(TWO, 2, broker_epoch=8)
    assert fetch(THREE, 5) == (AdvanceHighWatermark(2), *SERVE)


def test_leader_is_certain_while_its_session_lives_or_all_in_sync_follow() -> None:
    """A store that is away stops nobody; a leader cut off from all takes nothing any more."""
    leading = leader(log_of([EPOCH]))
    fetch = Fetches(leading)
    leading.term.registration.confirmed_until_ms = 1000
    assert leading.term.is_certain(999)
    assert not leading.term.is_certain(1000)
    for now_ms in (1000, 1500):
        fetch(TWO, 1, now_ms=now_ms)
        fetch(THREE, 1, now_ms=now_ms)
    # A fetch proves that its sender followed when the one before it was heard.
    assert leading.term.is_certain(4000)
    assert not leading.term.is_certain(4001)


def test_consumers_may_read_near_any_member_that_has_enough() -> None:
    """KIP-392: only who is in sync, and only where the offset is there."""
    leading = leader(log_of([EPOCH] * 5), (ONE, TWO))
    fetch = Fetches(leading)
    fetch(TWO, 4)
    fetch(THREE, 5)
    assert leading.term.readable_replicas(4) == (ONE, TWO)
    assert leading.term.readable_replicas(5) == (ONE,)
