"""Laws of the records in `__transaction_state`."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.transaction.records import decode, encode
from ottla.transaction.transaction import Transaction, TransactionRecord, TransactionState

FULL = Transaction(
    producer_id=4,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)}),
    start_timestamp_ms=10,
    last_update_timestamp_ms=11,
    last_producer_epoch=2,
    previous_producer_id=4,
    next_producer_id=5,
    client_version=2,
)


@pytest.mark.parametrize("known", [FULL, Transaction(1, 0, 1000), None])
def test_a_record_is_read_as_it_was_written(known: Transaction | None) -> None:
    """All of the state survives a restart, tombstones included."""
    record = TransactionRecord("x", known)
    assert decode(*encode(record)) == record


def test_bytes_are_those_of_kafka() -> None:
    """Key version 0; value version 0 as older brokers wrote it: no tags, lists with int32 sizes."""
    key = b"\x00\x00\x00\x01x"
    value = bytes.fromhex(
        "0000"  # version
        "0000000000000004"  # producer id
        "0003"  # epoch
        "0000ea60"  # timeout
        "01"  # Ongoing
        "00000001" "0001" "61" "00000002" "00000000" "00000002"  # a: 0, 2
        "000000000000000b"  # last update
        "000000000000000a"  # start
    )  # fmt: skip
    assert decode(key, value) == TransactionRecord(
        "x",
        Transaction(
            producer_id=4,
            producer_epoch=3,
            timeout_ms=60_000,
            state=TransactionState.ONGOING,
            partitions=frozenset({TopicPartition("a", 0), TopicPartition("a", 2)}),
            start_timestamp_ms=10,
            last_update_timestamp_ms=11,
        ),
    )
    assert encode(TransactionRecord("x", None)) == (key, None)


def test_what_is_no_record_is_refused() -> None:
    """A state that does not exist, or bytes that end too early; another kind of key is passed."""
    key, value = encode(TransactionRecord("x", Transaction(1, 0, 1000)))
    assert value is not None
    for bad in (value[:-3], value[:-9]):
        with pytest.raises(OttlaError) as raised:
            decode(key, bad)
        assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert decode(b"\x00\x07abc", value) is None
