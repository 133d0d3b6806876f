"""Laws of a partition of `__transaction_state` at work."""

from typing import Any, cast

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.transactions.shard import TransactionShard
from ottla.testing.clock import ManualClock
from ottla.transaction.coordinator import TransactionSettings
from ottla.transaction.init_producer_id import ProducerIdWish
from ottla.transaction.transaction import ProducerIdentity, TransactionState

from .groups_world import ManualPurgatory, MemoryPartition


class Asker:
    """Whoever waits, and what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def give(self, message: Any) -> None:
        self.told.append(message)

    def fail(self, code: ErrorCode) -> None:
        self.told.append(code)


def test_a_transaction_that_grows_beyond_a_message_is_refused_and_stays_as_it_was() -> None:
    """Its partitions stand in one record, which must fit the next leader, too."""
    clock, partition, asker = ManualClock(), MemoryPartition(), Asker()
    shard = TransactionShard(
        cast("Partition", partition),
        TransactionSettings(),
        clock,
        cast("Purgatory", ManualPurgatory(clock)),
        lambda *_: None,
        commit_timeout_ms=5_000,
        load_bytes=1_000,
    )
    shard.load_nothing()

    def add(count: int) -> None:
        names = frozenset(TopicPartition("t", number) for number in range(count))
        shard.run(
            "copier",
            asker,
            lambda core, ask, now: core.add(ask, "copier", ProducerIdentity(7, 0), names, 2, now),
            patience_ms=0,
        )

    shard.run(
        "copier",
        asker,
        lambda core, ask, now: core.initialize(ask, "copier", ProducerIdWish(60_000), 7, now),
        patience_ms=0,
    )
    add(2)
    assert asker.told == []
    add(5_000)
    assert asker.told == [ErrorCode.UNKNOWN_SERVER_ERROR]
    known = shard.loaded().transactions["copier"]
    assert (known.state, len(known.partitions)) == (TransactionState.ONGOING, 2)
