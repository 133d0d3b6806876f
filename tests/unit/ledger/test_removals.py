"""Laws of the notes of compaction: counts add up whatever is put together."""

import pytest

from ottla.ledger.files import decode_removals, encode_removals
from ottla.ledger.removals import CELL_OFFSETS, CELLS_MAX, PASSES_MAX, Cell, Pass, SegmentRemovals


def a_pass(number: int) -> Pass:
    """Pass `number`, made at its number in ms."""
    return Pass(number, number, number)


def told(removals: SegmentRemovals) -> list[tuple[int, int, dict[int, int]]]:
    """The cells as plain values."""
    return [(cell.start, cell.end, cell.counts) for cell in removals.cells]


def test_neighbours_share_a_cell_up_to_its_size() -> None:
    """Batches next to each other are one cell; what would make it too wide begins another."""
    removals = SegmentRemovals()
    removals.add(0, 10, 4, a_pass(1))
    removals.add(20, 30, 10, a_pass(1))
    removals.add(CELL_OFFSETS, CELL_OFFSETS + 1, 1, a_pass(1))
    assert told(removals) == [(0, 30, {1: 14}), (CELL_OFFSETS, CELL_OFFSETS + 1, {1: 1})]


def test_a_later_pass_adds_to_the_cell_it_falls_into() -> None:
    """Inside of a cell another pass is counted beside the first."""
    removals = SegmentRemovals()
    removals.add(0, 100, 40, a_pass(1))
    removals.add(50, 60, 3, a_pass(2))
    assert told(removals) == [(0, 100, {1: 40, 2: 3})]


def test_what_reaches_over_several_cells_makes_one_of_them() -> None:
    """Counts of all of them are kept."""
    removals = SegmentRemovals([Cell(0, 10, {1: 2}), Cell(20, 30, {1: 3})], [a_pass(1)])
    removals.add(5, 25, 7, a_pass(2))
    assert told(removals) == [(0, 30, {1: 5, 2: 7})]


def test_there_are_never_too_many_cells() -> None:
    """Neighbours are put together, and every removal is still counted."""
    removals = SegmentRemovals()
    for number in range(CELLS_MAX + 1):
        start = number * 2 * CELL_OFFSETS
        removals.add(start, start + CELL_OFFSETS, 5, a_pass(1))
    assert len(removals.cells) <= CELLS_MAX
    assert sum(cell.total for cell in removals.cells) == 5 * (CELLS_MAX + 1)


def test_the_oldest_passes_become_one() -> None:
    """Only so many are told apart; those put together say since when, and lose no count."""
    removals = SegmentRemovals()
    for number in range(1, PASSES_MAX + 3):
        removals.add(0, 1000, 1, a_pass(number))
    assert len(removals.passes) == PASSES_MAX
    assert removals.passes[3] == Pass(3, 3, 1)
    assert told(removals) == [(0, 1000, {3: 3} | dict.fromkeys(range(4, PASSES_MAX + 3), 1))]


def test_a_cut_inside_of_a_cell_asks_for_a_new_count() -> None:
    """Cells behind the cut go; the one it cuts holds what is counted then."""
    removals = SegmentRemovals(
        [Cell(0, 10, {1: 2}), Cell(10, 30, {1: 3, 2: 6}), Cell(30, 40, {2: 1})],
        [a_pass(1), a_pass(2)],
    )
    cell = removals.truncate(20)
    assert cell is not None
    removals.recount(cell, 4)
    assert told(removals) == [(0, 10, {1: 2}), (10, 20, {2: 4})]
    assert removals.truncate(10) is None
    assert told(removals) == [(0, 10, {1: 2})]


def test_joined_segments_keep_every_pass() -> None:
    """The notes of a segment follow those of the one before it."""
    first = SegmentRemovals([Cell(0, 10, {1: 2})], [a_pass(1)])
    first.join(SegmentRemovals([Cell(10, 20, {2: 3})], [a_pass(2)]))
    assert told(first) == [(0, 10, {1: 2}), (10, 20, {2: 3})]
    assert first.passes == {1: a_pass(1), 2: a_pass(2)}


def test_the_file_says_what_was_noted() -> None:
    """Reading gives back what was written; one changed byte is noticed."""
    removals = SegmentRemovals([Cell(0, 10, {0: 2, 7: 1})], [Pass(0, 5, 0), Pass(7, 9, 3)])
    encoded = encode_removals(removals)
    again = decode_removals(encoded)
    assert (told(again), again.passes) == (told(removals), removals.passes)
    damaged = encoded.replace(b"10", b"11")
    with pytest.raises(ValueError, match="checksum"):
        decode_removals(damaged)
