"""Writes a transaction's outcome into partitions that this broker leads."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.record.control import ControlType, EndTransactionMarker
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class Outcome(NamedTuple):
    """How a producer's transaction ends. `client_version` as in `transaction.Transaction`."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    client_version: int

    @property
    def marker(self) -> EndTransactionMarker:
        kind = ControlType.COMMIT if self.is_commit else ControlType.ABORT
        return EndTransactionMarker(kind, self.coordinator_epoch)

    @property
    def raises_epoch(self) -> bool:
        return self.client_version >= EPOCH_PER_TRANSACTION


def write_markers(
    broker: "Broker",
    outcome: Outcome,
    partitions: Sequence[TopicPartition],
    on_done: Callable[[dict[TopicPartition, ErrorCode]], None],
) -> None:
    """Append the marker to each of `partitions`; call `on_done` when it is committed or failed.

    In partitions of `__consumer_offsets` the offsets of the transaction are committed with it.
    """
    codes: dict[TopicPartition, ErrorCode] = {}
    ends: list[tuple[TopicPartition, int]] = []
    for name in partitions:
        try:
            ends.append((name, _write(broker, outcome, name)))
        except OttlaError as error:
            codes[name] = error.code

    def on_committed(name: TopicPartition, code: ErrorCode) -> None:
        codes[name] = code
        if len(codes) == len(partitions):
            on_done(codes)

    if not ends:
        on_done(codes)
    for name, end in ends:
        partition = broker.partitions.get(*name)
        partition.on_high_watermark(end, partial(on_committed, name))


def _write(broker: "Broker", outcome: Outcome, name: TopicPartition) -> int:
    """Append one marker; return the offset below which all must be committed."""
    if name.topic == CONSUMER_OFFSETS:
        return broker.groups.end_transaction(name.partition, outcome)
    return broker.partitions.get(*name).end_transaction(
        outcome.marker,
        outcome.producer_id,
        outcome.producer_epoch,
        raises_epoch=outcome.raises_epoch,
    )
