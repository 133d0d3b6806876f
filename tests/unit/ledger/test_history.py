"""Laws of what a log remembers of offsets that it does not hold any more."""

from ottla.ledger.files import decode_history, encode_history
from ottla.ledger.history import GONE_MAX, LOST_MAX, Gone, History, Loss, StartCause

TIME, BYTES, RECORDS = (
    StartCause.RETENTION_TIME,
    StartCause.RETENTION_BYTES,
    StartCause.DELETE_RECORDS,
)


def told(history: History, start: int = 0, end: int = 10_000) -> list[tuple[int, int, dict]]:  # type: ignore[type-arg]
    """The entries as plain values."""
    return [(one.start, one.end, one.counts) for one in history.entries(start, end)]


def test_neighbours_of_one_cause_are_one_entry() -> None:
    """It says when the first and the last of them went."""
    history = History()
    history.delete(0, 10, TIME, 5)
    history.delete(10, 30, TIME, 9)
    history.delete(30, 35, RECORDS, 11)
    assert told(history) == [(0, 30, {TIME: 30}), (30, 35, {RECORDS: 5})]
    assert (history.gone[0].first_ms, history.gone[0].last_ms) == (5, 9)


def test_a_range_is_told_as_far_as_it_is_asked_for() -> None:
    """A part of an entry has as many of its cause as it has offsets."""
    history = History()
    history.delete(0, 10, TIME, 5)
    history.delete(10, 20, BYTES, 5)
    assert told(history, 4, 13) == [(4, 10, {TIME: 6}), (10, 13, {BYTES: 3})]


def test_there_are_never_too_many_entries() -> None:
    """The oldest are put together, each cause with its count; a part of them is of several."""
    history = History()
    for number in range(GONE_MAX + 1):
        history.delete(number * 10, number * 10 + 10, (TIME, BYTES)[number % 2], number)
    assert len(history.gone) <= GONE_MAX
    assert told(history, 0, 20) == [(0, 20, {TIME: 10, BYTES: 10})]
    assert told(history, 5, 15) == [(5, 15, {StartCause.SEVERAL: 10})]


def test_a_later_word_replaces_an_earlier_one() -> None:
    """What is noted twice is counted once, for the later cause."""
    history = History()
    history.delete(0, 20, StartCause.LEADER, 1)
    history.delete(5, 10, TIME, 2)
    assert told(history) == [
        (0, 5, {StartCause.LEADER: 5}),
        (5, 10, {TIME: 5}),
        (10, 20, {StartCause.LEADER: 10}),
    ]


def test_a_guess_fills_only_what_nobody_spoke_of() -> None:
    """What the leader told stays."""
    history = History()
    history.learn(Gone(5, 10, {TIME: 5}, 1, 2))
    history.fill(0, 12, StartCause.LEADER, 3)
    assert told(history) == [
        (0, 5, {StartCause.LEADER: 5}),
        (5, 10, {TIME: 5}),
        (10, 12, {StartCause.LEADER: 2}),
    ]


def test_to_learn_the_same_again_changes_nothing() -> None:
    """So a leader may tell it as often as it likes, and no file is written for it."""
    history = History()
    history.learn(Gone(5, 10, {TIME: 5}, 1, 2))
    history.lose(Loss(20, 30, 4, 9))
    before = history.changes
    history.learn(Gone(5, 10, {TIME: 5}, 1, 2))
    history.lose(Loss(20, 30, 4, 9))
    history.delete(6, 8, TIME, 99)
    assert history.changes == before


def test_only_so_many_losses_are_remembered() -> None:
    """The latest ones."""
    history = History()
    for number in range(LOST_MAX + 5):
        history.lose(Loss(number, number + 1, number, 0))
    assert [loss.start for loss in history.lost] == list(range(5, LOST_MAX + 5))


def test_the_file_says_what_was_noted() -> None:
    """Reading gives back what was written."""
    history = History(unrecorded_below=3, compacted_below=40, next_pass=7)
    history.delete(0, 10, TIME, 5)
    history.delete(10, 30, StartCause.WHOLE, 9)
    history.lose(Loss(20, 30, 4, 9))
    again = decode_history(encode_history(history))
    again.changes = history.changes
    assert again == history
