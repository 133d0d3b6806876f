"""State of records as runs, one laid over another."""

from ottla.share.states import DeliveryState, StateBatch, overlay

AVAILABLE, ACKNOWLEDGED, ARCHIVED = (
    DeliveryState.AVAILABLE,
    DeliveryState.ACKNOWLEDGED,
    DeliveryState.ARCHIVED,
)


def test_later_words_lie_over_earlier_ones() -> None:
    """A change cuts what it covers and leaves the rest."""
    known = [StateBatch(0, 9, AVAILABLE, 1)]
    changes = [StateBatch(3, 5, ACKNOWLEDGED, 2), StateBatch(12, 13, ARCHIVED, 1)]
    assert overlay(known, changes, 0) == (
        StateBatch(0, 2, AVAILABLE, 1),
        StateBatch(3, 5, ACKNOWLEDGED, 2),
        StateBatch(6, 9, AVAILABLE, 1),
        StateBatch(12, 13, ARCHIVED, 1),
    )


def test_what_is_done_with_stays_so() -> None:
    """A late change takes an accepted record not back."""
    known = [StateBatch(2, 3, ACKNOWLEDGED, 1), StateBatch(6, 6, ARCHIVED, 1)]
    assert overlay(known, [StateBatch(0, 8, AVAILABLE, 4)], 0) == (
        StateBatch(0, 1, AVAILABLE, 4),
        StateBatch(2, 3, ACKNOWLEDGED, 1),
        StateBatch(4, 5, AVAILABLE, 4),
        StateBatch(6, 6, ARCHIVED, 1),
        StateBatch(7, 8, AVAILABLE, 4),
    )


def test_neighbours_that_are_alike_become_one() -> None:
    """Also where a change fills the hole between them; the start cuts what is before it."""
    known = [StateBatch(0, 4, ACKNOWLEDGED, 1), StateBatch(6, 9, ACKNOWLEDGED, 1)]
    assert overlay(known, [StateBatch(5, 5, ACKNOWLEDGED, 1)], 3) == (
        StateBatch(3, 9, ACKNOWLEDGED, 1),
    )
