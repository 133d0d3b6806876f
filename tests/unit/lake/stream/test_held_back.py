"""An end that stands still is looked into, and what holds it back is named."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.transactions import OpenTransaction, TransactionDescription
from ottla.lake.source.cluster import LogPosition
from ottla.lake.source.held_back import StandingEnds, held_back_line
from ottla.lake.source.stream_offset import Key

A, B = Key("t", 0), Key("t", 1)


def test_only_ends_that_stand_still_are_looked_into_once_a_minute() -> None:
    standing = StandingEnds()
    assert standing.to_ask(0, {A: LogPosition(5, 0), B: LogPosition(5, 0)}) == []
    assert standing.to_ask(9_000, {A: LogPosition(5, 0), B: LogPosition(6, 0)}) == []
    assert standing.to_ask(10_000, {A: LogPosition(5, 0), B: LogPosition(6, 0)}) == [A]
    assert standing.to_ask(30_000, {A: LogPosition(5, 0), B: LogPosition(6, 0)}) == []
    assert standing.to_ask(70_000, {A: LogPosition(7, 0), B: LogPosition(6, 0)}) == [B]


def test_the_transaction_is_named() -> None:
    known = TransactionDescription("orders-7", 1, 42, 3, "Ongoing", 60_000, 1_700_000_000_000, ())
    opened = OpenTransaction(TopicPartition("t", 0), 90, 42, 3, 0, 0, known)
    assert held_back_line(A, 90, 120, opened) == (
        "t-0 is read up to offset 90 only, though it has records up to 120 (30 offsets more): "
        "the transaction of 'orders-7' (producer id 42) is open since offset 90 and "
        "2023-11-14T22:13:20.000Z, its time-out is 1 minute"
    )
    hanging = OpenTransaction(TopicPartition("t", 0), 90, 42, 3, 0, 0, None)
    assert "producer id 42 hangs there" in held_back_line(A, 90, 120, hanging)
    assert "a transaction is open there" in held_back_line(A, 90, 120, None)
