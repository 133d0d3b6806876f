"""Writes a transaction's outcome into partitions that this broker leads."""

from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.transaction.outcome import TransactionOutcome


class MarkerWriter:
    """Appends end-of-transaction markers; no other part of the broker does.

    In partitions of `__consumer_offsets` the group coordinator appends them, and commits or drops
    the offsets of the transaction with them.
    """

    def __init__(self, partitions: Partitions, groups: Groups) -> None:
        self._partitions = partitions
        self._groups = groups

    def write(
        self,
        outcome: TransactionOutcome,
        partitions: Sequence[TopicPartition],
        on_done: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Append the marker to each of `partitions`; call `on_done` when all committed or failed.

        `on_done` is given a code for each partition.
        """
        codes: dict[TopicPartition, ErrorCode] = {}
        ends: list[tuple[TopicPartition, int]] = []
        for name in partitions:
            try:
                ends.append((name, self._append(outcome, name)))
            except OttlaError as error:
                codes[name] = error.code

        def on_committed(name: TopicPartition, code: ErrorCode) -> None:
            codes[name] = code
            if len(codes) == len(partitions):
                on_done(codes)

        if not ends:
            on_done(codes)
        for name, end in ends:
            partition = self._partitions.get(*name)
            partition.on_high_watermark(end, partial(on_committed, name))

    def _append(self, outcome: TransactionOutcome, name: TopicPartition) -> int:
        """Append one marker; return the offset below which all must be committed."""
        if name.topic == CONSUMER_OFFSETS:
            return self._groups.end_transaction(name.partition, outcome)
        return self._partitions.get(*name).end_transaction(
            outcome.marker,
            outcome.producer_id,
            outcome.producer_epoch,
            raises_epoch=outcome.raises_epoch,
        )
