"""Control batches: transaction markers (KIP-98)."""

import pytest

from ottla.record.builder import BatchBuilder
from ottla.record.codec import CorruptBatch, Record
from ottla.record.control import ControlType, EndTransactionMarker, build_marker, read_marker
from ottla.record.header import read_header
from ottla.record.reader import records


@pytest.mark.parametrize("control_type", list(ControlType))
def test_a_marker_reads_back(control_type: ControlType) -> None:
    """Type and coordinator epoch; the batch is transactional, of one record, without sequence."""
    marker = EndTransactionMarker(control_type, 41)
    batch = build_marker(marker, producer_id=8, producer_epoch=2, timestamp=77)
    header = read_header(batch)
    (record,) = records(batch, 0, header)
    assert read_marker(record) == marker
    assert record.timestamp == 77
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 2, -1)


def test_other_control_records_are_no_markers() -> None:
    """Kafka's quorum writes types of its own, from 2 on."""
    assert read_marker(Record(0, 0, bytes.fromhex("00000002"), b"")) is None


def test_fields_that_a_later_version_appends_are_ignored() -> None:
    """A marker's schemas only grow at the end."""
    record = Record(0, 0, bytes.fromhex("0001000109"), bytes.fromhex("00010000000799"))
    assert read_marker(record) == EndTransactionMarker(ControlType.COMMIT, 7)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"\x00", b""), (bytes.fromhex("00000001"), None), (bytes(4), b"\x00\x00\x00")],
)
def test_a_marker_too_short_is_corrupt(key, value) -> None:
    """Neither key nor value may end within a field."""
    with pytest.raises(CorruptBatch, match="offset 3"):
        read_marker(Record(3, 0, key, value))


def test_an_empty_batch_is_never_built() -> None:
    """A batch without records is the cleaner's, not a producer's."""
    with pytest.raises(AssertionError):
        BatchBuilder().build()
