"""What `poll` returns for a partition is a sequence of records."""

from ottla.client import Record, Records

FIRST, SECOND = (Record(offset, 1_700_000_000_000, None, b"v") for offset in (7, 9))
BATCH = Records("flights", 0, [FIRST, SECOND], 10)


def test_its_length_is_the_number_of_records() -> None:
    """And not the number of its fields."""
    assert len(BATCH) == 2
    assert not Records("flights", 0, [], 10)


def test_it_gives_its_records_in_their_order() -> None:
    """By iteration, by index, by slice, and as the list itself."""
    assert list(BATCH) == [FIRST, SECOND]
    assert (BATCH[0], BATCH[-1], BATCH[1:]) == (FIRST, SECOND, [SECOND])
    assert BATCH.records == [FIRST, SECOND]
    assert SECOND in BATCH
