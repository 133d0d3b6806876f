"""The inputs and outputs of a coordinator's decisions."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.transaction.transaction import NO_IDENTITY, ProducerIdentity, Transaction

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
    # The time of the decision: old clients keep their identity in their next transaction.
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
    # Refused only because an outcome is still being written; those that wait for it may continue.
    waits: bool = False


@dataclass(frozen=True, slots=True)
class TransactionReply:
    """The answer to the request of `ticket`; its type follows from the request."""

    ticket: Ticket
    message: Any


@dataclass(slots=True)
class TransactionDecision:
    """Records to append and apply; answers and markers to send once they are committed.

    `waits`: all of it must wait until the outcome of the previous transaction is written in all
    partitions; the answers are for clients that do not wait.
    """

    records: list[TransactionRecord] = field(default_factory=list)
    replies: list[TransactionReply] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    waits: bool = False
