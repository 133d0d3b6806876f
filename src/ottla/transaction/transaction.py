"""The state of a transactional id: its producer, and the partitions of its transaction."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from ottla.record.control import ControlType, EndTransactionMarker


class TransactionState(IntEnum):
    """The states of a transaction, with their numbers in `__transaction_state`.

    `label` is the name that Kafka's tools show.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    # Kafka's step before an abort by the coordinator; here that abort is one step, so this is
    # unused.
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


# The outcome is decided but not yet written to all partitions.
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
# No transaction is in progress.
IDLE = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
LABELS = {state.label: state for state in TransactionState}


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

    Invariant: `partitions` is empty unless the state is ONGOING or in PREPARED.
    Invariant: no client ever gets `producer_epoch` EPOCH_MAX, which is reserved for fencing.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp_ms: int = NO_TIMESTAMP
    last_update_timestamp_ms: int = NO_TIMESTAMP
    # The previous epoch, if its producer itself requested the present one, and so may retry that
    # request. It is stored in a field of our own, which Kafka does not write.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    # The producer's previous id, and the id with which it continues after the transaction. A
    # producer gets a new id when the epochs of its id are used up.
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
        """The producer's id and epoch after the end of the transaction."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return self.identity


class TransactionOutcome(NamedTuple):
    """The outcome of a producer's transaction. `client_version` is as in `Transaction`."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    client_version: int

    @property
    def marker(self) -> EndTransactionMarker:
        """The content of the control record that ends the transaction in a partition."""
        kind = ControlType.COMMIT if self.is_commit else ControlType.ABORT
        return EndTransactionMarker(kind, self.coordinator_epoch)

    @property
    def raises_epoch(self) -> bool:
        """Whether the marker has the next epoch, so that a late marker is harmless (KIP-890)."""
        return self.client_version >= EPOCH_PER_TRANSACTION


# A waiting request; opaque except to the shell.
Ticket = object


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """The state of a transactional id, or its tombstone."""

    transactional_id: str
    transaction: Transaction | None


@dataclass(frozen=True, slots=True)
class Markers:
    """An outcome to write to every partition of a transaction."""

    transactional_id: str
    identity: ProducerIdentity
    is_commit: bool
    partitions: frozenset[TopicPartition]
    client_version: int
    # When the outcome was decided. It identifies the transaction, because old clients keep their
    # producer id and epoch in their next transaction.
    prepared_ms: int


class Answered(NamedTuple):
    """The answer to InitProducerId and EndTxn: an error, or the producer's next identity."""

    code: ErrorCode
    identity: ProducerIdentity = NO_IDENTITY


class TransactionVerdict(NamedTuple):
    """The decision about one transactional id: an answer, and a changed state to write."""

    code: ErrorCode
    to: Transaction | None = None
    identity: ProducerIdentity = NO_IDENTITY
    # Whether the request is only refused because markers are still being written: it can be run
    # again once they are written.
    waits: bool = False


@dataclass(frozen=True, slots=True)
class TransactionReply:
    """The answer to the request of `ticket`; its type follows from the request."""

    ticket: Ticket
    message: Any


@dataclass(slots=True)
class TransactionDecision:
    """Records to append and apply; answers and markers to send once they are committed.

    If `waits`, the command should run again when the outcome of the previous transaction is written
    in all partitions. The replies are for clients that do not wait so long; records and markers do
    not wait.
    """

    records: list[TransactionRecord] = field(default_factory=list)
    replies: list[TransactionReply] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    waits: bool = False
