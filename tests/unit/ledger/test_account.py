"""Laws of the account of a range: every term from its own evidence, and what has none is told."""

from ottla.ledger.account import Account, Counting, Kind
from ottla.ledger.history import History, Loss, StartCause
from ottla.ledger.removals import UNRECORDED, Cell, Pass

FIRST, SECOND = Pass(1, 100, 1), Pass(2, 200, 2)
PASSES = {1: FIRST, 2: SECOND}


def count(
    start: int,
    end: int,
    batches: list[tuple[int, int, int, Kind]],
    cells: list[Cell] | None = None,
    *,
    history: History | None = None,
    log_start: int = 0,
    log_end: int = 100,
) -> Account:
    """The account of [start, end) of a log of these (first, last, records, kind)."""
    counting = Counting(start, end, log_start, cells or [], PASSES)
    for first, last, records, kind in batches:
        assert not counting.must_read_records(first, last, records)
        counting.batch(first, last, records, kind)
    counting.gap(min(log_end, counting.walk_end))
    return counting.close(history or History(), log_end)


def test_batches_are_counted_by_what_they_are() -> None:
    """Data, markers, what was aborted and what is not decided, clipped to the range."""
    account = count(
        2,
        40,
        [
            (0, 9, 10, Kind.DATA),
            (10, 10, 1, Kind.CONTROL),
            (11, 20, 10, Kind.ABORTED),
            (21, 49, 29, Kind.UNDECIDED),
        ],
    )
    assert (account.data, account.control, account.aborted, account.undecided) == (8, 1, 10, 19)
    assert account.unexplained == 0


def test_a_hole_that_nobody_noted_is_unexplained() -> None:
    """It is no remainder of anything."""
    account = count(0, 30, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)])
    assert (account.data, account.compacted, account.unexplained) == (17, 0, 13)


def test_holes_are_laid_to_the_passes_that_noted_them() -> None:
    """Gaps before a batch and holes inside of one, each pass with its own."""
    account = count(
        0, 30, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)], [Cell(10, 30, {1: 10, 2: 3})]
    )
    assert account.passes == {FIRST: 10, SECOND: 3}
    assert (account.compacted, account.unexplained) == (13, 0)


def test_a_hole_too_many_in_a_cell_is_unexplained() -> None:
    """The notes explain as many as they say."""
    account = count(0, 30, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)], [Cell(10, 30, {1: 12})])
    assert (account.compacted, account.unexplained) == (12, 1)


def test_a_hole_too_few_in_a_cell_is_told_as_well() -> None:
    """Records that were noted as gone and stand there make the account negative."""
    account = count(0, 30, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)], [Cell(10, 30, {1: 14})])
    assert (account.data, account.compacted, account.unexplained) == (17, 14, -1)


def test_a_cut_cell_explains_the_holes_that_are_asked_for() -> None:
    """The whole cell is walked, so that it proves its notes; two passes are not told apart."""
    account = count(
        15, 20, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)], [Cell(10, 30, {1: 10, 2: 3})]
    )
    assert account.passes == {Pass(2, 200, 1): 5}
    assert (account.data, account.unexplained) == (0, 0)


def test_a_cut_cell_that_does_not_balance_explains_no_more_than_it_noted() -> None:
    """What is asked for may all be what nobody noted."""
    account = count(10, 20, [(0, 9, 10, Kind.DATA), (20, 29, 7, Kind.DATA)], [Cell(10, 30, {1: 4})])
    assert (account.compacted, account.unexplained) == (4, 6)


def test_holes_from_before_the_ledger_are_told_as_that() -> None:
    """And only those that lie below its beginning."""
    account = count(
        0,
        40,
        [(0, 9, 10, Kind.DATA), (20, 29, 10, Kind.DATA)],
        history=History(unrecorded_below=15),
        log_end=40,
    )
    assert account.passes == {Pass(UNRECORDED, -1, UNRECORDED): 5}
    assert account.unexplained == 15


def test_what_lies_below_the_start_is_explained_by_history_alone() -> None:
    """A batch that holds the start counts from there on."""
    history = History()
    history.delete(0, 4, StartCause.RETENTION_TIME, 1)
    history.delete(6, 8, StartCause.DELETE_RECORDS, 1)
    account = count(0, 10, [(5, 9, 5, Kind.DATA)], history=history, log_start=8)
    assert [one.counts for one in account.deletions] == [
        {StartCause.RETENTION_TIME: 4},
        {StartCause.DELETE_RECORDS: 2},
    ]
    assert (account.deleted, account.data, account.unexplained) == (6, 2, 2)


def test_lost_offsets_count_until_others_take_their_place() -> None:
    """Behind the log's end they are lost, before it they are what is there now; none twice."""
    history = History()
    history.lose(Loss(5, 20, 3, 1))
    history.lose(Loss(8, 15, 4, 2))
    account = count(0, 20, [(0, 9, 10, Kind.DATA)], history=history, log_end=10)
    assert (account.data, account.lost, account.replaced) == (10, 10, 7)
    assert account.unexplained == 0
    assert [loss.leader_epoch for loss in account.losses] == [3, 4]


def test_a_batch_cut_by_the_range_asks_for_a_look_at_its_records() -> None:
    """Only where it has lost some: else its offsets tell."""
    counting = Counting(5, 20, 0, [], PASSES)
    assert not counting.must_read_records(0, 9, 10)
    assert not counting.must_read_records(0, 9, 0)
    assert counting.must_read_records(0, 9, 4)
    assert not counting.must_read_records(10, 19, 4)
    assert counting.must_read_records(15, 25, 4)
    counting.batch(0, 9, 4, Kind.DATA, 3)
    account = counting.close(History(), 100)
    assert account.data == 3
