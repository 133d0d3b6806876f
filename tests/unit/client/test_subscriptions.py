"""The consumer protocol's bytes, as Java's client (4.3.1) writes them."""

from ottla.base.ids import TopicPartition
from ottla.client.assignors import CooperativeStickyAssignor, StickyAssignor
from ottla.client.assignors.sticky import remembered
from ottla.client.assignors.subscriptions import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

OWNED = [TopicPartition("orders", 0), TopicPartition("orders", 2), TopicPartition("users", 1)]
SUBSCRIPTION = bytes.fromhex(
    "00030000000200066f726465727300057573657273000000020102"
    "0000000200066f726465727300000002000000000000000200057573657273000000010000000100000007ffff"
)
ASSIGNMENT = bytes.fromhex(
    "00030000000200066f7264657273000000020000000000000002000575736572730000000100000001ffffffff"
)


def test_subscriptions_are_javas_bytes() -> None:
    """Version 3: topics, user data, owned partitions, generation, no rack."""
    assert encode_subscription(["users", "orders"], b"\x01\x02", OWNED, 7) == SUBSCRIPTION
    assert encode_subscription(["orders"], None, [], -1) == bytes.fromhex(
        "00030000000100066f7264657273ffffffff00000000ffffffffffff"
    )


def test_subscriptions_are_read_back() -> None:
    """The instance id comes from JoinGroup, beside the bytes."""
    assert decode_subscription(SUBSCRIPTION, "i") == Subscription(
        ("orders", "users"), tuple(OWNED), 7, b"\x01\x02", "i"
    )


def test_assignments_are_javas_bytes() -> None:
    """Version 3 without user data; no bytes at all are no partitions."""
    assert encode_assignment(OWNED) == ASSIGNMENT
    assert decode_assignment(ASSIGNMENT) == tuple(OWNED)
    assert decode_assignment(b"") == ()


def test_sticky_user_data_is_javas() -> None:
    """KIP-54: the partitions had, and the generation."""
    written = StickyAssignor().user_data(OWNED[:2], 5)
    assert written == bytes.fromhex("0000000100066f726465727300000002000000000000000200000005")
    assert remembered(written) == (OWNED[:2], 5)


def test_sticky_user_data_that_cannot_be_read_is_no_claim() -> None:
    """Other clients may put anything there."""
    assert remembered(b"\x00\x00\x00\x09rubbish") == ([], -1)
    assert remembered(None) == ([], -1)


def test_cooperative_user_data_is_the_generation() -> None:
    """KIP-429."""
    assert CooperativeStickyAssignor().user_data(OWNED, 5) == bytes.fromhex("00000005")
