"""What stands in `__consumer_offsets`, byte for byte as Kafka 4.3 writes it."""

from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.group.records.stored import (
    CommittedOffset,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
    StoredMember,
    decode,
    encode,
)

T3 = TopicPartition("t", 3)
TOPIC_ID = UUID("00000000-0000-0001-0000-000000000002")
OFFSET = CommittedOffset(
    offset=5, leader_epoch=2, metadata="m", commit_timestamp_ms=7, topic_id=TOPIC_ID
)
GROUP = StoredGroup(
    protocol_type="consumer",
    generation=3,
    protocol_name="range",
    leader="a",
    state_timestamp_ms=9,
    members=(StoredMember("a", "i", "c", "/h", 60, 10, b"S", b"A"),),
)


def test_offset_is_written_as_version_4() -> None:
    """Key type 1; value flexible, with the topic's id in a tag (tag 0, 16 bytes)."""
    key, value = encode(OffsetRecord("g", T3, OFFSET))
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert value == bytes.fromhex(
        "0004 0000000000000005 00000002 02 6d 0000000000000007"
        "01 00 10 0000000000000001 0000000000000002"
    )


def test_offset_without_a_topic_id_has_no_tag() -> None:
    """A default is not written."""
    plain = CommittedOffset(offset=5, leader_epoch=-1, metadata="", commit_timestamp_ms=7)
    _, value = encode(OffsetRecord("g", T3, plain))
    assert value == bytes.fromhex("0004 0000000000000005 ffffffff 01 0000000000000007 00")


def test_offset_with_an_expiry_is_written_as_version_1() -> None:
    """The only version that has the field; it has no leader epoch."""
    expiring = CommittedOffset(
        offset=5, leader_epoch=-1, metadata="m", commit_timestamp_ms=7, expire_timestamp_ms=8
    )
    key, value = encode(OffsetRecord("g", T3, expiring))
    assert value == bytes.fromhex("0001 0000000000000005 0001 6d 0000000000000007 0000000000000008")
    assert decode(key, value) == OffsetRecord("g", T3, expiring)


def test_group_is_written_as_version_3() -> None:
    """Key type 2."""
    key, value = encode(GroupRecord("g", GROUP))
    assert key == bytes.fromhex("0002 0001 67")
    assert value == (
        bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000003 0005") + b"range"
        + bytes.fromhex("0001 61 0000000000000009 00000001")
        + bytes.fromhex("0001 61 0001 69 0001 63 0002 2f68 0000003c 0000000a")
        + bytes.fromhex("00000001 53 00000001 41")
    )  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        OffsetRecord("g", T3, OFFSET),
        OffsetRecord("g", T3, None),
        GroupRecord("g", GROUP),
        GroupRecord("g", StoredGroup("", 0, None, None, -1, ())),
        GroupRecord("g", None),
    ],
)
def test_records_are_read_as_written(record: OffsetRecord | GroupRecord) -> None:
    """Values and tombstones."""
    assert decode(*encode(record)) == record


def test_offsets_of_old_brokers_are_read() -> None:
    """Key type 0 is an offset as well; value version 0 knows neither epoch nor expiry."""
    record = decode(
        bytes.fromhex("0000 0001 67 0001 74 00000003"),
        bytes.fromhex("0000 0000000000000005 0001 6d 0000000000000007"),
    )
    assert record == OffsetRecord("g", T3, CommittedOffset(5, -1, "m", 7))


def test_groups_of_old_brokers_are_read() -> None:
    """Value version 0: the rebalance timeout is the session timeout."""
    record = decode(
        bytes.fromhex("0002 0001 67"),
        bytes.fromhex("0000 0001 70 00000003 ffff ffff 00000001")
        + bytes.fromhex("0001 61 0001 63 0001 68 0000000a 00000000 00000000"),
    )
    assert isinstance(record, GroupRecord)
    assert record.group == StoredGroup(
        "p", 3, None, None, -1, (StoredMember("a", None, "c", "h", 10, 10, b"", b""),)
    )


def test_kinds_of_other_protocols_are_passed_over() -> None:
    """Share groups and others (key type 9 and up) do not stop the load."""
    assert decode(bytes.fromhex("0009 0001 67"), b"\0\0\0\0\0\1") is None


def test_bytes_that_are_no_record_are_named() -> None:
    """A damaged record is an error, not a crash."""
    with pytest.raises(OttlaError, match="cannot be read") as failure:
        decode(bytes.fromhex("0001 0009 67"), None)
    assert failure.value.code is ErrorCode.CORRUPT_MESSAGE
