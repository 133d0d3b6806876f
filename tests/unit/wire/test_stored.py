"""Stored records: what stands in internal topics and inside group requests."""

import pytest

from ottla.wire.errors import VersionError, WireError
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    EndTxnMarker,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    SubscriptionTopicPartition,
    decode_versioned,
    encode_versioned,
    read_version,
)


def test_a_committed_offset_is_stored_as_kafka_stores_it() -> None:
    """Key version 1 with group, topic and partition; value version 3 with leader epoch."""
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    assert encode_versioned(key, 1) == bytes.fromhex("0001 0001 67 0001 74 00000003")
    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
    assert encode_versioned(value, 3) == bytes.fromhex(
        "0003 0000000000000005 00000002 0001 6d 0000000000000009"
    )


def test_the_version_of_a_key_tells_what_it_is() -> None:
    """1 is an offset, 2 a group, and a reader looks before it decodes."""
    stored = encode_versioned(GroupMetadataKey(group="g"), 2)
    assert stored == bytes.fromhex("0002 0001 67")
    assert read_version(stored) == 2
    assert decode_versioned(GroupMetadataKey, stored) == GroupMetadataKey(group="g")
    with pytest.raises(VersionError):
        decode_versioned(OffsetCommitKey, stored)


def test_a_newer_subscription_is_read_as_the_newest_known() -> None:
    """The consumer protocol only ever adds fields at its end."""
    owned = [SubscriptionTopicPartition(topic="t", partitions=[0, 1])]
    subscription = ConsumerProtocolSubscription(
        topics=["t"], user_data=b"u", owned_partitions=owned, generation_id=4, rack_id="r"
    )
    newest = encode_versioned(subscription, 3)
    newer = b"\x00\x63" + newest[2:] + b"what version 99 adds"
    assert decode_versioned(ConsumerProtocolSubscription, newer) == subscription


def test_an_old_subscription_lacks_what_came_later() -> None:
    """Version 0 has topics and user data only."""
    old = bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert decode_versioned(ConsumerProtocolSubscription, old) == ConsumerProtocolSubscription(
        topics=["t"], generation_id=-1
    )


def test_an_assignment_is_read_back() -> None:
    """Decoding gives what was encoded."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[AssignmentTopicPartition(topic="t", partitions=[2])]
    )
    stored = encode_versioned(assignment, 1)
    assert stored == bytes.fromhex("0001 00000001 0001 74 00000001 00000002 ffffffff")
    assert decode_versioned(ConsumerProtocolAssignment, stored) == assignment


def test_a_marker_names_the_coordinator_epoch() -> None:
    """The value of a control record that commits or aborts."""
    assert encode_versioned(EndTxnMarker(coordinator_epoch=7), 0) == bytes.fromhex("0000 00000007")


@pytest.mark.parametrize("wrong", [b"", b"\x00", b"\x00\x01\x00", b"\x00\x01\xff\xff"])
def test_wrong_bytes_are_refused(wrong: bytes) -> None:
    """A record without version, or cut off behind it, raises WireError."""
    with pytest.raises(WireError):
        decode_versioned(OffsetCommitKey, wrong)
