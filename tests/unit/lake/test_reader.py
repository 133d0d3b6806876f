"""Reading a range yields its records and no others, and accounts for all of its offsets."""

from collections.abc import Generator

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.model.plan import Range
from ottla.lake.source.cluster import Fetched
from ottla.lake.source.reader import read_range
from ottla.ledger.partition import PartitionLedger, RangeAccount
from ottla.record.builder import build_batch
from ottla.record.control import ControlType, EndTransactionMarker, build_marker


def data(base_offset: int, count: int, producer_id: int = -1) -> bytes:
    return bytes(
        build_batch(
            [1000] * count,
            None,
            [b"%d" % (base_offset + n) for n in range(count)],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
    )


def marker(offset: int, producer_id: int, control_type: ControlType) -> bytes:
    return bytes(
        build_marker(
            EndTransactionMarker(control_type, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=1000,
            base_offset=offset,
        )
    )


class Answers:
    """A partition whose leader gives these answers, whatever it is asked for."""

    def __init__(self, *fetches: Fetched) -> None:
        self._fetches = fetches

    def fetch(self, _wanted: Range) -> Generator[Fetched]:
        yield from self._fetches

    def peek(self, _topic: str, _partition: int, _offset: int) -> bytes:
        raise AssertionError("no damage in these tests")

    def end_offset(self, _topic: str, _partition: int) -> int:
        raise AssertionError("no damage in these tests")


def read(
    start: int, end: int, *fetches: Fetched, compacted: bool = False
) -> tuple[list[int], PartitionLedger]:
    account = RangeAccount(0, start, end, gaps_are_compaction=compacted)
    rows = read_range(Range("t", 0, start, end), Answers(*fetches), account)
    offsets = [offset for batch in rows for offset in batch.column("offset").to_pylist()]
    return offsets, account.ledger()


def test_batches_over_several_fetches() -> None:
    offsets, ledger = read(
        0, 9, Fetched(data(0, 3) + data(3, 3), 0, ()), Fetched(data(6, 3), 0, ())
    )

    assert offsets == list(range(9))
    assert ledger == PartitionLedger(0, 0, 9, loaded=9)


def test_answers_of_any_size_make_the_same_rows() -> None:
    """Rows come from one buffer, from several joined, or from parts of one: always the same."""
    log = [data(base, 5_000) for base in range(0, 200_000, 5_000)]
    account = RangeAccount(0, 0, 200_000, gaps_are_compaction=False)
    parts = (1, 2, 4, 33)
    fetches, first = [], 0
    for count in parts:
        fetches.append(Fetched(b"".join(log[first : first + count]), 0, ()))
        first += count
    rows = list(read_range(Range("t", 0, 0, 200_000), Answers(*fetches), account))

    # 5,000 and 10,000 are too few for a batch; 165,000 are too many for one.
    assert [batch.num_rows for batch in rows] == [35_000, 135_000, 30_000]
    values = [value for batch in rows for value in batch.column("value").to_pylist()]
    assert values == [b"%d" % offset for offset in range(200_000)]
    assert account.ledger() == PartitionLedger(0, 0, 200_000, loaded=200_000)


def test_batch_delivered_again_is_read_once() -> None:
    """A fetch answers with the whole batch that holds the offset; what was read stays read."""
    offsets, ledger = read(
        0, 6, Fetched(data(0, 4), 0, ()), Fetched(data(0, 4) + data(4, 2), 0, ())
    )

    assert offsets == list(range(6))
    assert ledger.balances


def test_aborted_records_and_markers_are_counted_not_loaded() -> None:
    """Two producers interleave; one aborts: only its records are left out (P13)."""
    log = (
        data(0, 2, producer_id=7)
        + data(2, 2, producer_id=8)
        + data(4, 1, producer_id=7)
        + marker(5, 7, ControlType.ABORT)
        + marker(6, 8, ControlType.COMMIT)
        + data(7, 2, producer_id=7)
        + marker(9, 7, ControlType.COMMIT)
    )
    offsets, ledger = read(0, 10, Fetched(log, 0, ((7, 0),)))

    assert offsets == [2, 3, 7, 8]
    assert ledger == PartitionLedger(0, 0, 10, loaded=4, control=3, aborted=3)


def test_abort_learnt_again_from_a_later_fetch_does_not_reopen() -> None:
    """Each fetch repeats the aborted transactions of its range; a closed one stays closed."""
    first = data(0, 2, producer_id=7) + marker(2, 7, ControlType.ABORT)
    second = data(3, 2, producer_id=7) + marker(5, 7, ControlType.COMMIT)
    offsets, _ = read(0, 6, Fetched(first, 0, ((7, 0),)), Fetched(second, 0, ((7, 0),)))

    assert offsets == [3, 4]


def test_deleted_start_is_explained_by_the_log_start() -> None:
    offsets, ledger = read(0, 8, Fetched(data(5, 3), 5, ()))

    assert offsets == [5, 6, 7]
    assert ledger == PartitionLedger(0, 0, 8, loaded=3, deleted=5)


def test_records_below_a_log_start_within_a_batch_are_not_loaded() -> None:
    """A deletion may end inside a batch: its first records are there, and yet deleted."""
    offsets, ledger = read(0, 12, Fetched(data(0, 3), 0, ()), Fetched(data(3, 9), 7, ()))

    assert offsets == [0, 1, 2, 7, 8, 9, 10, 11]
    assert ledger == PartitionLedger(0, 0, 12, loaded=8, deleted=4)


def test_compacted_end_is_explained_by_the_next_batch() -> None:
    """The range's last offsets were compacted away: the batch behind them proves it."""
    offsets, ledger = read(0, 5, Fetched(data(0, 3) + data(9, 1), 0, ()), compacted=True)

    assert offsets == [0, 1, 2]
    assert ledger == PartitionLedger(0, 0, 5, loaded=3, compacted=2)


def test_hole_in_a_plain_topic_stays_unexplained() -> None:
    _, ledger = read(0, 9, Fetched(data(0, 3) + data(6, 3), 0, ()))

    assert ledger.unexplained == 3


def test_flipped_byte_is_refused() -> None:
    """A checksum stands between the log and the lake; wrong bytes never become rows."""
    buffer = bytearray(data(0, 3))
    buffer[-2] ^= 1

    with pytest.raises(OttlaError, match="checksum"):
        read(0, 3, Fetched(bytes(buffer), 0, ()))
