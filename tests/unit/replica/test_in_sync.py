"""Who is in sync: by time, by what is held, and by what the store has committed."""

from ottla.metadata.decisions import DecisionKind
from ottla.replica.effects import SERVE, AdvanceHighWatermark, ProposeIsr, ReadState, Resign
from ottla.replica.isr import Rejection
from ottla.replica.leader import Leader
from ottla.replica.negotiation import RETRY_MS

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
    image,
    leader,
    log_of,
    without_decisions,
)


def late_leader() -> tuple[Leader, Fetches]:
    """5 records; 2 has all at 20 s, 3 has none."""
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=20_000)
    return leading, fetch


def test_a_stuck_follower_is_proposed_out_at_the_very_time() -> None:
    """P16: replica.lag.time.max.ms since it was caught up last, and not a moment before."""
    leading, _ = late_leader()
    assert leading.next_deadline_ms() == LAG_MS
    assert leading.on_deadline(now_ms=LAG_MS - 1) == ()
    change = change_in(leading.on_deadline(now_ms=LAG_MS))
    assert change.after.isr == (ONE, TWO)
    assert change.after.version == 4
    assert change.joining == ()
    assert leading.next_deadline_ms() is None


def test_a_slow_follower_goes_and_a_busy_one_stays() -> None:
    """P16: who reads to where the log ended a fetch ago keeps up; who never does is slow."""
    leading = leader(log_of([EPOCH] * 10))
    fetch = Fetches(leading)
    for second in range(1, 40):
        end = leading.term.log.log_end_offset
        append(leading, 10)
        fetch(TWO, end, now_ms=second * 1000)
        fetch(THREE, second, now_ms=second * 1000)
    change = change_in(leading.on_deadline(now_ms=40_000))
    assert change.after.isr == (ONE, TWO)


def test_a_follower_whose_disk_is_full_goes_at_once() -> None:
    """Its lag cannot end before there is room; once it has all records it joins as any other."""
    leading, fetch = late_leader()
    fetch(THREE, 3, now_ms=20_001)
    change = change_in(leading.on_full(THREE, now_ms=20_001))
    assert change.after.isr == (ONE, TWO)
    assert leading.on_full(THREE, now_ms=20_002) == ()
    left = leading.on_state(change.committed(5), now_ms=20_003)
    decision = decision_in(left)
    assert decision.kind is DecisionKind.ISR_SHRUNK
    assert "the disk of 3 is full, its log ends 3" in decision.evidence
    assert AdvanceHighWatermark(5) in left
    joined = change_in(fetch(THREE, 5, now_ms=20_004))
    assert joined.after.isr == (ONE, TWO, THREE)


def test_a_full_follower_stays_where_it_is_needed_or_lacks_nothing() -> None:
    """Writes would be refused without it, which its lag may do later."""
    leading = leader(log_of([EPOCH] * 5), min_isr=3)
    fetch = Fetches(leading)
    fetch(THREE, 3, now_ms=1)
    assert leading.on_full(THREE, now_ms=1) == ()
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=1)
    assert leading.on_full(TWO, now_ms=1) == ()


def test_a_silent_follower_that_lacks_records_goes_sooner() -> None:
    """Nothing heard of it for a session: writes wait no longer, however short it lags."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=20_000)
    fetch(THREE, 4, now_ms=20_000)
    assert leading.next_deadline_ms() == 23_500
    assert leading.on_deadline(now_ms=23_499) == ()
    change = change_in(leading.on_deadline(now_ms=23_500))
    assert change.after.isr == (ONE, TWO)
    decision = decision_in(leading.on_state(change.committed(5), now_ms=23_510))
    assert decision.evidence == "log end 5; last heard of 3: 3500 ms ago, caught up 23500 ms ago"
    assert decision.setting == "broker.session.timeout.ms"


def test_a_follower_that_is_heard_of_may_lag_to_the_full() -> None:
    """It fetches, and has not all: that is lag, not silence."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=20_000)
    for now_ms in range(0, LAG_MS - 1, 3_000):
        fetch(THREE, 3, now_ms=now_ms)
        assert leading.on_deadline(now_ms=now_ms + 2_999) == ()


def test_who_hears_of_too_few_is_isolated_and_proposes_nobody_out() -> None:
    """Both live, both are silent, 2 are needed: they stay in sync, so that one of them can lead."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500, min_isr=2)
    fetch = Fetches(leading)
    fetch(TWO, 4, now_ms=1_000)
    fetch(THREE, 4, now_ms=1_500)
    assert not leading.is_isolated([TWO, THREE], 1_499)
    assert leading.is_isolated([TWO, THREE], 1_500)
    assert leading.on_deadline(now_ms=5_000) == ()
    assert not leading.is_isolated([], 1_500)


def test_whom_nobody_asks_for_anything_is_isolated_without_any_news() -> None:
    """Clients may have lost it, too: that its followers hold all there is says nothing."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500, min_isr=2)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=1_000)
    fetch(THREE, 5, now_ms=1_000)
    assert not leading.is_isolated([TWO, THREE], 999)
    assert leading.is_isolated([TWO, THREE], 1_000)


def test_with_one_silent_of_two_nobody_is_isolated() -> None:
    """Enough remain without it."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500, min_isr=2)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=5_000)
    fetch(THREE, 4, now_ms=1_000)
    assert not leading.is_isolated([THREE], 1_500)
    assert change_in(leading.on_deadline(now_ms=5_000)).after.isr == (ONE, TWO)


def test_who_could_go_on_alone_makes_way_for_several() -> None:
    """Of three in sync the two that are silent may hear each other, and clients hear them."""
    leading = leader(log_of([EPOCH] * 5), silence_ms=3_500, min_isr=1)
    fetch = Fetches(leading)
    fetch(TWO, 5, now_ms=1_000)
    fetch(THREE, 5, now_ms=2_000)
    assert not leading.is_isolated([TWO, THREE], 1_500)
    assert leading.is_isolated([TWO, THREE], 2_000)


def test_an_idle_partition_never_expires_its_followers() -> None:
    """Who holds every record is in sync however long ago it fetched."""
    leading = leader(log_of([EPOCH]))
    fetch = Fetches(leading)
    fetch(TWO, 1)
    fetch(THREE, 1)
    assert leading.next_deadline_ms() is None
    assert leading.on_deadline(now_ms=10**9) == ()


def test_a_proposal_commits_nothing_until_it_is_made() -> None:
    """KIP-497: who is proposed out counts until the store has agreed."""
    leading, _ = late_leader()
    change = change_in(leading.on_deadline(now_ms=LAG_MS))
    assert leading.term.high_watermark == 0
    effects = leading.on_state(change.committed(5), now_ms=LAG_MS)
    assert without_decisions(effects) == [AdvanceHighWatermark(5)]


def test_who_reaches_high_watermark_and_epoch_start_is_proposed_in() -> None:
    """P18: with the registration that fetched, for the store to check (R-4, KIP-903)."""
    leading = leader(log_of([4] * 5), (ONE, TWO), high_watermark=3)
    fetch = Fetches(leading)
    assert fetch(THREE, 4) is SERVE
    change = change_in(fetch(THREE, 5))
    assert change.after.isr == (ONE, TWO, THREE)
    assert change.joining == ((THREE, BROKER_EPOCH),)
    assert fetch(THREE, 5) is SERVE


def test_who_is_not_known_to_live_is_not_proposed_in() -> None:
    """A broker that restarted since, or is gone, has to come again."""
    leading = leader(log_of([EPOCH]), (ONE, TWO))
    fetch = Fetches(leading)
    leading.term.registration.live = {ONE: BROKER_EPOCH, TWO: BROKER_EPOCH}
    assert fetch(THREE, 1) is SERVE
    leading.term.registration.live[THREE] = BROKER_EPOCH + 1
    assert fetch(THREE, 1) is SERVE
    assert change_in(fetch(THREE, 1, broker_epoch=BROKER_EPOCH + 1)).joining == ((THREE, 8),)


def joining() -> tuple[Leader, Fetches, int]:
    """3 has been proposed in; the nonce of that."""
    leading = leader(log_of([EPOCH]), (ONE, TWO))
    fetch = Fetches(leading)
    change = change_in(fetch(THREE, 1))
    return leading, fetch, change.nonce


def test_a_rejection_is_settled_by_a_write_that_changes_nothing() -> None:
    """R-8: only a higher version takes who was to join out of the count."""
    leading, fetch, nonce = joining()
    append(leading, 1)
    effects = leading.on_isr_rejected(nonce, Rejection.INELIGIBLE, now_ms=0)
    settling = change_in(effects)
    assert (settling.after.isr, settling.after.version) == ((ONE, TWO), 4)
    assert decision_in(effects).kind is DecisionKind.ISR_REFUSED
    assert fetch(TWO, 2) == (AdvanceHighWatermark(1), *SERVE)
    effects = leading.on_state(settling.committed(5), now_ms=0)
    assert without_decisions(effects) == [AdvanceHighWatermark(2)]


def test_a_second_rejection_waits_before_it_tries_again() -> None:
    """A controller that moves on and on is not chased in a loop."""
    leading, _, nonce = joining()
    effects = leading.on_isr_rejected(nonce, Rejection.CONTROLLER_MOVED, now_ms=0)
    settling = change_in(effects)
    effects = leading.on_isr_rejected(settling.nonce, Rejection.CONTROLLER_MOVED, now_ms=7)
    assert without_decisions(effects) == []
    assert leading.next_deadline_ms() == 7 + RETRY_MS
    assert leading.on_deadline(now_ms=6 + RETRY_MS) == ()
    assert change_in(leading.on_deadline(now_ms=7 + RETRY_MS)).after.isr == (ONE, TWO)


def test_a_retry_settles_what_was_refused_and_judges_no_follower() -> None:
    """R-12: its timer may run late, after a pause, and does not know who else was heard of."""
    leading, _, nonce = joining()
    settling = change_in(leading.on_isr_rejected(nonce, Rejection.CONTROLLER_MOVED, now_ms=0))
    leading.on_isr_rejected(settling.nonce, Rejection.CONTROLLER_MOVED, now_ms=7)
    assert leading.on_retry(now_ms=6 + RETRY_MS) == ()
    again = change_in(leading.on_retry(now_ms=7 + RETRY_MS))
    assert again.after.isr == (ONE, TWO)
    leading.on_state(again.committed(5), now_ms=200)
    append(leading, 1, now_ms=200)
    assert leading.on_retry(now_ms=10**9) == ()
    assert change_in(leading.on_deadline(now_ms=10**9)).after.isr == (ONE,)


def test_a_late_copy_of_a_rejection_says_nothing() -> None:
    """S32: an answer counts for the proposal of its nonce only."""
    leading, _, nonce = joining()
    leading.on_isr_rejected(nonce, Rejection.INELIGIBLE, now_ms=0)
    assert leading.on_isr_rejected(nonce, Rejection.INELIGIBLE, now_ms=0) == ()
    assert leading.on_isr_unknown(nonce) == ()


def test_an_unknown_outcome_is_read() -> None:
    """S15: made or not, the store knows; what it holds is taken over, or settled."""
    leading, _, nonce = joining()
    assert leading.on_isr_unknown(nonce) == (ReadState(),)
    known = leading.term.negotiation.committed
    (settling,) = leading.on_state_read(known, now_ms=0)
    assert isinstance(settling, ProposeIsr)
    assert settling.change.nonce != nonce
    leading.on_isr_rejected(settling.change.nonce, Rejection.OUTDATED, now_ms=0)
    made = known._replace(isr=(ONE, TWO, THREE), version=5, nonce=nonce)
    effects = leading.on_state_read(made, now_ms=0)
    assert decision_in(effects).kind is DecisionKind.ISR_EXPANDED
    assert leading.term.isr == (ONE, TWO, THREE)


def test_another_past_ends_the_term() -> None:
    """S15: a topic made anew or a store put back holds other nonces at the same version."""
    leading, _, nonce = joining()
    leading.on_isr_unknown(nonce)
    other = leading.term.negotiation.committed._replace(nonce=99)
    assert without_decisions(leading.on_state_read(other, now_ms=0)) == [Resign()]
    gone, _, nonce = joining()
    gone.on_isr_unknown(nonce)
    assert without_decisions(gone.on_state_read(None, now_ms=0)) == [Resign()]
    assert append(gone, 1) == ()


def test_a_newer_leader_in_the_store_ends_the_term() -> None:
    """S7: who reads that another leads commits and serves no more."""
    leading = leader(log_of([EPOCH]))
    newer = image()._replace(leader=TWO, leader_epoch=EPOCH + 1, version=9)
    effects = leading.on_state(newer, now_ms=0)
    assert without_decisions(effects) == [Resign()]
    assert decision_in(effects).kind is DecisionKind.RESIGNED
    assert leading.on_deadline(now_ms=10**9) == ()


def test_an_older_state_says_nothing() -> None:
    """S15: versions tell, not contents."""
    leading = leader(log_of([EPOCH]))
    assert leading.on_state(image((ONE, TWO), version=4), now_ms=0) == ()
    assert leading.term.isr == (ONE, TWO, THREE)


def test_leaving_keeps_who_left_eligible_below_the_minimum() -> None:
    """KIP-966: the leader's own writes maintain the ELR by the controller's rule."""
    leading = leader(log_of([EPOCH] * 5), (ONE, TWO), min_isr=2)
    change = change_in(leading.on_deadline(now_ms=LAG_MS))
    assert (change.after.isr, change.after.elr) == ((ONE,), (TWO,))


def test_nothing_is_committed_while_others_may_be_elected_who_were_eligible_last() -> None:
    """An election may take them after a power cut, and they need not hold what is committed here.

    Found by the walk: seed 350850 of idle worlds.
    """
    state = image((ONE,))._replace(last_known_elr=(THREE,))
    core = leader(log_of([1, 1]), state=state)
    change = change_in(core.begin(now_ms=0))
    assert (change.after.isr, change.after.last_known_elr) == ((ONE,), ())
    assert core.term.high_watermark == 0
    core.on_state(change.committed(5), now_ms=0)
    assert core.term.high_watermark == 2


def test_a_leader_that_was_the_only_one_eligible_last_commits_at_once() -> None:
    """As each of a thousand partitions of one replica does when its broker is back."""
    core = leader(log_of([1, 1]), state=image((ONE,))._replace(last_known_elr=(ONE,)))
    core.begin(now_ms=0)
    assert core.term.high_watermark == 2


def test_a_lower_minimum_clears_the_elr_before_it_commits() -> None:
    """Who was eligible does not hold what is committed from now on: the store is told first."""
    state = image((ONE,))._replace(elr=(TWO,))
    leading = leader(log_of([EPOCH] * 5), state=state, min_isr=2)
    change = change_in(leading.on_min_isr(1, now_ms=0))
    assert (change.after.isr, change.after.elr) == ((ONE,), ())
    assert leading.term.high_watermark == 0
    assert leading.on_state(change.committed(5), now_ms=0) == (AdvanceHighWatermark(5),)


def test_a_replaced_follower_has_to_fetch_again() -> None:
    """S11: what a member held that left is forgotten with it."""
    leading = leader(log_of([EPOCH] * 5))
    fetch = Fetches(leading)
    fetch(THREE, 5)
    leading.on_state(image((ONE, TWO), version=5), now_ms=0)
    assert leading.term.remotes[THREE].end == -1
    assert fetch(THREE, 0) is SERVE
    assert leading.term.negotiation.proposal is None


def test_a_change_says_why() -> None:
    """`ottla why isr`: cause, evidence when it was decided, and the setting that decided."""
    leading, _ = late_leader()
    change = change_in(leading.on_deadline(now_ms=LAG_MS))
    decision = decision_in(leading.on_state(change.committed(5), now_ms=LAG_MS + 4))
    assert decision.kind is DecisionKind.ISR_SHRUNK
    assert decision.cause == "ISR [1, 2, 3] became [1, 2]"
    assert decision.evidence == "log end 5; last caught up 3: 30000 ms ago"
    assert decision.setting == "replica.lag.time.max.ms=30000"
    assert (decision.broker_id, decision.leader_epoch, decision.at_ms) == (ONE, EPOCH, LAG_MS + 4)
