"""A transactional id as a value: its producer, and its transaction's partitions."""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from ottla.transaction.state import IDLE, PREPARED, TransactionState

EPOCH_MAX = 2**15 - 1
NO_TIMESTAMP = -1

# Producers from this version on (KIP-890) get a new epoch with each transaction.
EPOCH_PER_TRANSACTION = 2


class ProducerIdentity(NamedTuple):
    """A producer id with an epoch."""

    producer_id: int
    producer_epoch: int


NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of one transactional id; times of day in milliseconds.

    Invariant: `partitions` is empty unless the state is ONGOING or PREPARED.
    Invariant: no client ever has `producer_epoch` EPOCH_MAX: that one is left for fencing it.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp_ms: int = NO_TIMESTAMP
    last_update_timestamp_ms: int = NO_TIMESTAMP
    # The former epoch, if it was raised for the producer that had it, which may repeat its request.
    # Stored in a field of our own, which Kafka does not write.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    # The previous id, or the one with which the producer continues after the transaction: ids are
    # changed when the epochs of one are used up.
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    # The protocol of the latest transaction's producer: 0 and 1, or EPOCH_PER_TRANSACTION.
    client_version: int = 0

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the id has no epochs left."""
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def next_identity(self) -> ProducerIdentity:
        """The producer's id and epoch after the prepared or completed end."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return self.identity
