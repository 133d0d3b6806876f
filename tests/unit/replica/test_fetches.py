"""What a leader answers to a fetch, and what a follower makes of an answer."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.metadata.decisions import DecisionKind
from ottla.replica.effects import (
    APPEND,
    FENCED,
    NOT_LEADER,
    OUT_OF_RANGE,
    OVERTAKEN,
    SERVE,
    UNKNOWN,
    AdvanceHighWatermark,
    AdvanceLogStart,
    Diverging,
    RestartAt,
    TruncateTo,
)
from ottla.replica.follower import NO_FETCH

from .parts import (
    EPOCH,
    THREE,
    TWO,
    Fetches,
    decision_in,
    follower,
    leader,
    log_of,
    without_decisions,
)

# A leader whose terms 1, 3 and 4 wrote 3, 2 and 4 records; its own begins at 9.
EPOCHS = [1, 1, 1, 3, 3, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("offset", "last_epoch", "answer"),
    [
        (9, 4, SERVE),
        (6, 4, SERVE),
        (5, 3, SERVE),
        (0, -1, SERVE),
        # Same epoch, further than the leader's log of it goes.
        (10, 4, (Diverging(4, 9),)),
        (6, 3, (Diverging(3, 5),)),
        (5, 1, (Diverging(1, 3),)),
        # Epochs the leader does not have: the greatest below, and its end (KIP-279).
        (4, 2, (Diverging(1, 3),)),
        (2, 2, (Diverging(1, 3),)),
        # Older than all: nothing to compare.
        (3, 0, OUT_OF_RANGE),
        (10, -1, OUT_OF_RANGE),
    ],
)
def test_a_leader_compares_by_epoch(offset: int, last_epoch: int, answer: object) -> None:
    """KIP-279, KIP-595: the answer says where the logs may part, or serves what continues them."""
    fetch = Fetches(leader(log_of(EPOCHS)))
    assert fetch(TWO, offset, last_epoch=last_epoch) == answer


def test_a_term_without_records_is_known_to_who_asks() -> None:
    """The epoch's start is noted when it begins, not with its first record."""
    log = log_of([4] * 5)
    assert leader(log).term.epoch_start == 5
    assert log.end_offset_for_epoch(4) == (4, 5)
    assert log.end_offset_for_epoch(EPOCH) == (EPOCH, 5)


def test_below_the_log_start_is_out_of_range() -> None:
    """What retention deleted cannot be sent; the follower begins where the leader does."""
    log = log_of(EPOCHS)
    log.advance_log_start(6)
    fetch = Fetches(leader(log))
    assert fetch(TWO, 5, last_epoch=4) == OUT_OF_RANGE
    assert fetch(TWO, 6, last_epoch=4) is SERVE
    assert fetch(TWO, 6, last_epoch=3) == OUT_OF_RANGE


def test_fetches_of_another_term_are_refused_and_the_first_is_recorded() -> None:
    """KIP-320: FENCED for an older term, UNKNOWN for a newer; a zombie does not fill the memory."""
    leading = leader(log_of(EPOCHS))
    fetch = Fetches(leading)
    effects = fetch(TWO, 9, epoch=EPOCH - 1)
    assert decision_in(effects).kind is DecisionKind.FENCED
    assert effects[-1:] == FENCED
    assert fetch(TWO, 9, epoch=EPOCH - 1) is FENCED
    assert fetch(TWO, 9, epoch=EPOCH + 1) is UNKNOWN
    leading.resign("its session has ended", now_ms=0)
    assert fetch(TWO, 9) is NOT_LEADER


def test_an_overtaken_fetch_is_not_heard() -> None:
    """R-7: nonces only grow; what comes late or twice changes nothing."""
    leading = leader(log_of(EPOCHS))
    fetch = Fetches(leading)
    fetch(TWO, 9)
    fetch(THREE, 8)
    for _ in range(2):
        assert leading.on_follower_fetch(TWO, 7, 1, 3, 1, EPOCH, 0) is OVERTAKEN
    assert leading.term.remotes[TWO].end == 9


def test_a_broker_that_has_no_replica_is_refused() -> None:
    """It may know of a newer assignment than the leader does: it is to ask again."""
    leading = leader(log_of(EPOCHS))
    assert leading.on_follower_fetch(9, 7, 1, 9, 4, EPOCH, 0) is UNKNOWN  # type: ignore[arg-type]


def test_one_fetch_is_in_flight() -> None:
    """R-7: the next one begins when the last was answered, or is given up."""
    log = log_of([4, 4])
    one = follower(log)
    assert one.begin_fetch(2, now_ms=0)
    assert (one.fetch_offset, one.last_fetched_epoch, one.leader_epoch) == (2, 4, EPOCH)
    first = one.nonce
    assert not one.begin_fetch(2, now_ms=0)
    one.on_no_answer(first, now_ms=10)
    assert not one.begin_fetch(2, now_ms=1009)
    assert one.begin_fetch(2, now_ms=1010)
    assert one.nonce > first
    assert one.on_records(first, EPOCH, 2, 0, empty=False) == ()
    assert one.nonce != NO_FETCH


def test_a_fetch_waits_for_the_flush() -> None:
    """With group commit a fetch says that everything before it is on the disk."""
    log = log_of([4, 4])
    one = follower(log)
    assert not one.begin_fetch(1, now_ms=0)
    assert one.begin_fetch(2, now_ms=0)


def test_answers_to_anything_else_are_not_looked_at() -> None:
    """Another nonce, another term, another end: nothing happens."""
    log = log_of([4, 4])
    one = follower(log)
    assert one.on_records(NO_FETCH, EPOCH, 2, 0, empty=False) == ()
    one.begin_fetch(2, now_ms=0)
    assert one.on_records(one.nonce + 1, EPOCH, 2, 0, empty=False) == ()
    assert one.on_records(one.nonce, EPOCH - 1, 2, 0, empty=False) == ()
    assert one.on_diverging(one.nonce + 1, EPOCH, 4, 1, now_ms=0) == ()
    log.append((4, 9))
    assert one.on_records(one.nonce, EPOCH, 2, 0, empty=False) == ()


def test_records_are_appended_and_high_watermark_and_log_start_follow() -> None:
    """The leader's high watermark counts as far as the log goes, its log start as far as that."""
    log = log_of([4, 4])
    one = follower(log)
    one.begin_fetch(2, now_ms=0)
    assert one.on_records(one.nonce, EPOCH, 9, 4, empty=False) is APPEND
    log.append((4, 9))
    assert one.on_appended() == (AdvanceHighWatermark(3), AdvanceLogStart(3))
    log.advance_log_start(3)
    one.begin_fetch(3, now_ms=0)
    assert one.on_records(one.nonce, EPOCH, 3, 3, empty=True) == ()


@pytest.mark.parametrize(
    ("epochs", "epoch", "end", "cut"),
    [
        # The leader's epoch ends before ours does.
        ([1, 1, 1, 1], 1, 2, 2),
        # The leader lacks our last epoch: our own end of the one it has.
        ([1, 1, 2, 2], 1, 3, 2),
        # We lack the leader's: the end of what we have below it.
        ([1, 1, 3, 3], 2, 3, 2),
        # It has nothing that we have.
        ([3, 3, 3, 3], 2, 9, 0),
    ],
)
def test_logs_part_where_the_same_epoch_ends_first(
    epochs: list[int], epoch: int, end: int, cut: int
) -> None:
    """KIP-279: the lesser of the leader's and the own end of the greatest epoch in common."""
    one = follower(log_of(epochs), high_watermark=4)
    one.begin_fetch(4, now_ms=0)
    effects = one.on_diverging(one.nonce, EPOCH, epoch, end, now_ms=0)
    assert without_decisions(effects) == [TruncateTo(cut)]
    assert decision_in(effects).kind is DecisionKind.TRUNCATED
    assert one.high_watermark == cut
    assert one.begin_fetch(4, now_ms=0)


def test_an_answer_that_cuts_nothing_is_waited_out() -> None:
    """A leader that says so is broken: to ask at once again would be a loop."""
    one = follower(log_of([1, 1]))
    one.begin_fetch(2, now_ms=0)
    assert one.on_diverging(one.nonce, EPOCH, 1, 5, now_ms=0) == ()
    assert not one.begin_fetch(2, now_ms=999)
    assert one.begin_fetch(2, now_ms=1000)


def test_out_of_range_begins_anew_where_the_leader_begins() -> None:
    """All that is below the leader's log start is deleted there."""
    one = follower(log_of([1, 1]), high_watermark=1)
    one.begin_fetch(2, now_ms=0)
    effects = one.on_error(one.nonce, EPOCH, ErrorCode.OFFSET_OUT_OF_RANGE, 7, now_ms=0)
    assert without_decisions(effects) == [RestartAt(7)]
    assert decision_in(effects).kind is DecisionKind.RESTARTED
    assert one.high_watermark == 7


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_a_refusal_truncates_nothing(code: ErrorCode) -> None:
    """R-1: only epochs compared by the leader of the own term cut a log."""
    one = follower(log_of([1, 1]))
    one.begin_fetch(2, now_ms=0)
    assert one.on_error(one.nonce, EPOCH, code, -1, now_ms=0) == ()
    assert not one.begin_fetch(2, now_ms=999)


def test_consumers_near_a_follower_read_what_it_knows_to_be_committed() -> None:
    """KIP-392, S20: beyond it they wait, below it they are sent to the leader or told the truth."""
    log = log_of([4] * 6)
    one = follower(log)
    one.begin_fetch(6, now_ms=0)
    one.on_records(one.nonce, EPOCH, 4, 0, empty=True)
    assert one.check_read(4) is ErrorCode.NONE
    assert one.check_read(5) is ErrorCode.OFFSET_NOT_AVAILABLE
    assert one.check_read(50) is ErrorCode.OFFSET_NOT_AVAILABLE
    log.advance_log_start(3)
    assert one.check_read(2) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    one.leader_log_start = 3
    assert one.check_read(2) is ErrorCode.OFFSET_OUT_OF_RANGE
