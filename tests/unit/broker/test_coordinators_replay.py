"""Laws of reading a partition of coordinators' records back."""

from ottla.broker.coordinators.replay import Replayed
from ottla.record.builder import BatchBuilder
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.record.header import read_header
from ottla.record.reader import records


def batch(offset: int, key: bytes, value: bytes | None, producer_id: int = -1) -> bytes:
    """One record; with `producer_id` in its transaction."""
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
        base_offset=offset,
    )
    builder.append(0, key, value)
    return bytes(builder.build())


def marker(offset: int, kind: ControlType, producer_id: int) -> bytes:
    return bytes(
        build_marker(
            EndTransactionMarker(kind, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=0,
            base_offset=offset,
        )
    )


def take(found: Replayed, *parts: bytes) -> None:
    for part in parts:
        header = read_header(part)
        found.take(header, records(part, 0, header))


def values(*parts: bytes) -> dict[bytes, bytes | None]:
    """What counts after these batches."""
    found = Replayed()
    take(found, *parts)
    return {key: written.value for key, written in found.written.items()}


COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


def test_the_last_value_of_each_key_counts() -> None:
    """A tombstone is a value, too."""
    parts = batch(0, b"k", b"1"), batch(1, b"l", b"1"), batch(2, b"k", b"2"), batch(3, b"l", None)
    assert values(*parts) == {b"k": b"2", b"l": None}


def test_a_transaction_counts_from_its_commit_marker_on() -> None:
    """Aborted it never does, and not before its marker."""
    assert values(batch(0, b"k", b"1", 7)) == {}
    assert values(batch(0, b"k", b"1", 7), marker(1, ABORT, 7)) == {}
    assert values(batch(0, b"k", b"1", 7), marker(1, COMMIT, 7)) == {b"k": b"1"}
    assert values(batch(0, b"k", b"1", 7), marker(1, COMMIT, 8)) == {}


def test_what_stands_behind_a_transactions_record_stays() -> None:
    """Also where its marker comes later still."""
    plain = batch(0, b"k", b"1", 7), batch(1, b"k", b"2"), marker(2, COMMIT, 7)
    assert values(*plain) == {b"k": b"2"}
    crossed = (
        batch(0, b"k", b"1", 7),
        batch(1, b"k", b"2", 8),
        marker(2, COMMIT, 8),
        marker(3, COMMIT, 7),
    )
    assert values(*crossed) == {b"k": b"2"}


def test_what_has_no_marker_yet_is_pending_in_the_order_of_the_log() -> None:
    """With word of what is overtaken already."""
    found = Replayed()
    take(
        found,
        batch(0, b"k", b"1", 8),
        batch(1, b"k", b"2"),
        batch(2, b"l", b"3", 7),
        batch(3, b"m", b"4", 8),
    )
    pending = [
        (producer_id, key, found.is_overtaken(key, written))
        for producer_id, key, written in found.in_order()
    ]
    assert pending == [(8, b"k", True), (7, b"l", False), (8, b"m", False)]
