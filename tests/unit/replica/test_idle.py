"""Partitions to which nothing is written for longer than a follower may lag."""

import pytest

from ottla.metadata.decisions import DecisionKind
from ottla.replica.isr import Rejection
from ottla.replica.leader import Leader

from .parts import (
    BROKER_EPOCH,
    EPOCH,
    LAG_MS,
    ONE,
    THREE,
    TWO,
    Fetches,
    append,
    change_in,
    decision_in,
    leader,
    log_of,
)

SILENCE_MS = 2_250
IDLE_MS = 33_000


def idle_leader(*, min_isr: int = 1, silence_ms: int | None = SILENCE_MS) -> tuple[Leader, Fetches]:
    """5 records; both followers fetched them at 1 ms, and nothing was written since."""
    leading = leader(log_of([EPOCH] * 5), min_isr=min_isr, silence_ms=silence_ms)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=1)
    fetch(THREE, 5, now_ms=1)
    return leading, fetch


@pytest.mark.parametrize("min_isr", [1, 2])
def test_the_first_record_after_a_quiet_time_makes_no_follower_late(min_isr: int) -> None:
    """P16: both held everything until the append, so that their time begins with it."""
    leading, fetch = idle_leader(min_isr=min_isr)
    assert append(leading, 1, now_ms=IDLE_MS) == ()
    assert leading.on_deadline(now_ms=IDLE_MS + SILENCE_MS - 1) == ()
    assert leading.next_deadline_ms() == IDLE_MS + SILENCE_MS
    fetch(TWO, 6, now_ms=IDLE_MS + 1_000)
    fetch(THREE, 6, now_ms=IDLE_MS + 1_000)
    assert leading.term.isr == (ONE, TWO, THREE)
    assert leading.term.high_watermark == 6
    assert leading.next_deadline_ms() is None


def test_a_follower_that_stops_with_that_record_is_late_after_the_limit_from_it() -> None:
    """It is heard of, and does not get on: that is lag, to the millisecond."""
    leading, fetch = idle_leader(silence_ms=None)
    append(leading, 1, now_ms=IDLE_MS)
    fetch(TWO, 6, now_ms=IDLE_MS)
    assert leading.on_deadline(now_ms=IDLE_MS + LAG_MS - 1) == ()
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS))
    assert change.after.isr == (ONE, TWO)


def test_later_records_do_not_renew_the_time_of_a_follower_that_lacks_earlier_ones() -> None:
    """Only the first record that it lacks counts, however many are written after it."""
    leading, fetch = idle_leader(silence_ms=None)
    for now_ms in range(IDLE_MS, IDLE_MS + LAG_MS, 1_000):
        append(leading, 1, now_ms=now_ms)
        fetch(TWO, leading.term.log.log_end_offset, now_ms=now_ms)
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS))
    assert change.after.isr == (ONE, TWO)


def test_a_batch_that_comes_again_is_nothing_that_followers_lack() -> None:
    """A retry of a batch that is there: nothing was appended, and all hold everything still."""
    leading, fetch = idle_leader()
    leading.on_grown(IDLE_MS - LAG_MS)
    assert leading.next_deadline_ms() is None
    append(leading, 1, now_ms=IDLE_MS)
    assert leading.on_deadline(now_ms=IDLE_MS + SILENCE_MS - 1) == ()
    assert leading.next_deadline_ms() == IDLE_MS + SILENCE_MS
    fetch(TWO, 6, now_ms=IDLE_MS + SILENCE_MS)
    fetch(THREE, 6, now_ms=IDLE_MS + SILENCE_MS)
    assert leading.term.isr == (ONE, TWO, THREE)


def test_silence_begins_when_there_is_something_to_be_heard() -> None:
    """Who has all the records does not fetch the partition; without them it should."""
    leading, _ = idle_leader()
    append(leading, 1, now_ms=IDLE_MS)
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + SILENCE_MS))
    assert change.after.isr == (ONE,)
    decision = decision_in(leading.on_state(change.committed(5), now_ms=IDLE_MS + 9_999))
    assert decision.kind is DecisionKind.ISR_SHRUNK
    assert decision.evidence == (
        "log end 6; last heard of 2: 35249 ms ago, caught up 2250 ms ago,"
        " 3: 35249 ms ago, caught up 2250 ms ago"
    )
    assert decision.setting == "broker.session.timeout.ms"


def test_a_follower_that_is_heard_of_about_other_partitions_is_not_silent() -> None:
    """Its disk may be slow: it fetches this partition again when it holds what it has got."""
    leading, _ = idle_leader(silence_ms=SILENCE_MS)
    append(leading, 1, now_ms=IDLE_MS)
    now_ms = IDLE_MS + SILENCE_MS
    heard = {TWO: now_ms - 500, THREE: now_ms - SILENCE_MS}
    change = change_in(leading.on_deadline(now_ms=now_ms, contact_ms=heard))
    assert change.after.isr == (ONE, TWO)


def test_a_follower_that_is_heard_of_is_late_all_the_same() -> None:
    """Fetching others does not make up for lacking records of this one for too long."""
    leading, fetch = idle_leader()
    append(leading, 1, now_ms=IDLE_MS)
    fetch(TWO, 6, now_ms=IDLE_MS)
    now_ms = IDLE_MS + LAG_MS
    change = change_in(leading.on_deadline(now_ms=now_ms, contact_ms={THREE: now_ms}))
    assert change.after.isr == (ONE, TWO)
    evidence = decision_in(leading.on_state(change.committed(5), now_ms=now_ms)).evidence
    assert evidence == "log end 6; last caught up 3: 30000 ms ago"


def test_with_group_commit_the_time_begins_with_the_append_and_not_with_the_flush() -> None:
    """The follower may fetch what the leader has not flushed: there is something to fetch."""
    leading, fetch = idle_leader(silence_ms=None)
    log = leading.term.log
    log.append((EPOCH, 5))  # type: ignore[attr-defined]
    leading.on_grown(IDLE_MS)
    fetch(TWO, 6, now_ms=IDLE_MS + 1)
    assert leading.on_own_end(6) == ()
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS))
    assert change.after.isr == (ONE, TWO)


def test_a_follower_that_never_fetched_in_the_term_is_late_by_the_term() -> None:
    """That it held everything is not known: an append gives it no new time."""
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=1)
    append(leading, 1, now_ms=LAG_MS - 1)
    fetch(TWO, 6, now_ms=LAG_MS)
    change = change_in(leading.on_deadline(now_ms=LAG_MS))
    assert change.after.isr == (ONE, TWO)


def test_a_follower_slow_and_steady_behind_is_late_whenever_records_come() -> None:
    """It never reaches where the log ended at its previous fetch, as in Kafka."""
    leading, fetch = idle_leader(silence_ms=None)
    append(leading, 100, now_ms=IDLE_MS)
    for step in range(31):
        now_ms = IDLE_MS + step * 1_000
        append(leading, 10, now_ms=now_ms)
        fetch(TWO, leading.term.log.log_end_offset, now_ms=now_ms)
        fetch(THREE, 6 + 9 * step, now_ms=now_ms)
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS))
    assert change.after.isr == (ONE, TWO)


def test_a_follower_that_comes_back_with_less_lags_since_then() -> None:
    """Its new registration diverges: until then it held everything, as far as is known."""
    leading, fetch = idle_leader(silence_ms=None)
    fetch(THREE, 4, last_epoch=3, now_ms=IDLE_MS, broker_epoch=BROKER_EPOCH + 1)
    assert leading.term.remotes[THREE].end == -1
    append(leading, 1, now_ms=IDLE_MS + 1)
    fetch(TWO, 6, now_ms=IDLE_MS + 2)
    assert leading.on_deadline(now_ms=IDLE_MS + LAG_MS - 1) == ()
    assert change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS)).after.isr == (ONE, TWO)


def test_a_fetch_after_one_that_diverged_says_nothing_of_the_time_between() -> None:
    """What the log's end was at a fetch counts only where that fetch continued the log."""
    leading = leader(log_of([4, 4, EPOCH, EPOCH, EPOCH]))
    fetch = Fetches(leading)
    fetch(THREE, 2, now_ms=10_000)
    fetch(THREE, 3, last_epoch=4, now_ms=20_000)
    fetch(THREE, 2, now_ms=20_001)
    assert leading.term.remotes[THREE].caught_up_ms == 0


def test_a_follower_that_joins_at_the_high_watermark_has_the_full_time() -> None:
    """It need not have been at the log's end for a long time: else it would leave at once."""
    leading = leader(log_of([4] * 5), (ONE, TWO), high_watermark=3)
    fetch = Fetches(leading)
    append(leading, 5)
    fetch(TWO, 5)
    now_ms = 10 * LAG_MS
    change = change_in(fetch(THREE, 6, now_ms=now_ms))
    fetch(TWO, 10, now_ms=now_ms)
    leading.on_state(change.committed(5), now_ms=now_ms)
    assert leading.on_deadline(now_ms=now_ms + LAG_MS - 1) == ()
    assert change_in(leading.on_deadline(now_ms=now_ms + LAG_MS)).after.isr == (ONE, TWO)


def test_a_change_is_told_with_what_proposed_it_however_late_it_is_made() -> None:
    """S32: not known at first, settled, and then an older copy of the proposal is accepted."""
    leading, fetch = idle_leader(silence_ms=None)
    append(leading, 1, now_ms=IDLE_MS)
    fetch(TWO, 6, now_ms=IDLE_MS)
    change = change_in(leading.on_deadline(now_ms=IDLE_MS + LAG_MS))
    leading.on_isr_unknown(change.nonce)
    known = leading.term.negotiation.committed
    settling = change_in(leading.on_state_read(known, now_ms=IDLE_MS + LAG_MS))
    fetch(THREE, 6, now_ms=IDLE_MS + LAG_MS + 500)
    leading.on_isr_rejected(settling.nonce, Rejection.OUTDATED, now_ms=IDLE_MS + LAG_MS + 600)
    made = change.committed(5)
    decision = decision_in(leading.on_state_read(made, now_ms=IDLE_MS + LAG_MS + 700))
    assert decision.evidence == "log end 6; last caught up 3: 30000 ms ago"
