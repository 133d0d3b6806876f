"""The ledger explains every offset from evidence, and never by subtraction."""

import pytest

from ottla.base.errors import OttlaError
from ottla.ledger.partition import PartitionLedger, RangeAccount, Unreadable


def account(*, end: int = 100, compacted: bool = False) -> RangeAccount:
    return RangeAccount(partition=3, start=10, end=end, gaps_are_compaction=compacted)


def test_plain_batches_balance() -> None:
    """On a plain topic every offset of the range is a loaded record."""
    range_account = account()
    range_account.records(10, 59, 50)
    range_account.records(60, 99, 40)

    assert range_account.ledger() == PartitionLedger(3, 10, 100, loaded=90)
    assert range_account.ledger().balances


def test_missing_batch_on_a_plain_topic_is_unexplained() -> None:
    """A hole that no policy can have made is never filled in by subtraction."""
    range_account = account()
    range_account.records(10, 59, 50)
    range_account.records(70, 99, 30)

    assert range_account.ledger().unexplained == 10


def test_missing_batch_on_a_compacted_topic_was_compacted() -> None:
    """Two headers around a gap are the evidence that compaction removed what lay between."""
    range_account = account(compacted=True)
    range_account.records(10, 59, 50)
    range_account.records(70, 99, 25)

    ledger = range_account.ledger()
    assert (ledger.loaded, ledger.compacted, ledger.unexplained) == (75, 15, 0)


def test_gap_at_the_end_needs_a_batch_behind_it() -> None:
    """Until a later header is seen, offsets at the end of the range stay unexplained."""
    range_account = account(compacted=True)
    range_account.records(10, 79, 70)
    assert range_account.ledger().unexplained == 20

    range_account.records(120, 129, 0)
    assert range_account.ledger().compacted == 20
    assert range_account.ledger().balances


def test_offsets_below_the_log_start_were_deleted() -> None:
    """Retention explains what lies below the log's start, and nothing above it."""
    range_account = account()
    range_account.log_starts_at(40)
    range_account.records(40, 99, 60)

    assert range_account.ledger() == PartitionLedger(3, 10, 100, loaded=60, deleted=30)


def test_log_start_above_the_range_explains_all_of_it() -> None:
    range_account = account()
    range_account.log_starts_at(500)

    assert range_account.ledger() == PartitionLedger(3, 10, 100, deleted=90)


def test_control_and_aborted_batches_have_terms_of_their_own() -> None:
    range_account = account(end=14)
    range_account.aborted_batch(10, 12)
    range_account.control_batch(13, 13)

    assert range_account.ledger() == PartitionLedger(3, 10, 14, control=1, aborted=3)


def test_batch_across_both_ends_counts_only_what_lies_inside() -> None:
    """A range may start and end within a batch: batches are read whole, ranges are exact."""
    range_account = RangeAccount(partition=0, start=5, end=8, gaps_are_compaction=False)
    range_account.records(0, 20, 3)

    assert range_account.ledger() == PartitionLedger(0, 5, 8, loaded=3)


def test_batch_with_more_records_than_offsets_is_refused() -> None:
    with pytest.raises(OttlaError, match="holds 4 records for 3 offsets"):
        account().records(10, 12, 4)


def test_batch_delivered_twice_does_not_count_twice() -> None:
    range_account = account(end=20)
    range_account.records(10, 19, 10)
    range_account.control_batch(10, 19)

    assert range_account.ledger() == PartitionLedger(3, 10, 20, loaded=10)


def test_consecutive_ledgers_add_up() -> None:
    first = PartitionLedger(0, 0, 10, loaded=9, control=1)
    second = PartitionLedger(0, 10, 30, loaded=15, deleted=5)

    assert first.followed_by(second) == PartitionLedger(0, 0, 30, loaded=24, control=1, deleted=5)


def test_unreadable_batches_have_a_term_and_are_named() -> None:
    """Only their offsets in the range count, each once; what lies before them is a gap."""
    range_account = account(end=30)
    range_account.records(10, 14, 5)
    range_account.unreadable_batch(15, 19, "checksum")
    range_account.unreadable_batch(15, 19, "checksum")
    range_account.records(20, 24, 5)
    range_account.unreadable_batch(27, 40, "length")

    ledger = range_account.ledger()
    assert ledger == PartitionLedger(3, 10, 30, loaded=10, unreadable=8)
    assert ledger.unexplained == 2
    assert range_account.skipped == [
        Unreadable(3, 15, 20, "checksum"),
        Unreadable(3, 27, 30, "length"),
    ]


def test_unreadable_offsets_add_up() -> None:
    first = PartitionLedger(0, 0, 10, loaded=6, unreadable=4)
    second = PartitionLedger(0, 10, 12, loaded=1, unreadable=1)

    both = first.followed_by(second)
    assert both == PartitionLedger(0, 0, 12, loaded=7, unreadable=5)
    assert both.balances
