"""Gaps in a producer's sequence numbers that may still close, in one leader epoch. Pure.

A producer has several batches in flight. A batch arrives before its predecessor if the predecessor
failed with a retriable error, or went to the former leader, and was not retried yet: in librdkafka
one thread may requeue a batch while another one sends the next. OUT_OF_ORDER_SEQUENCE_NUMBER would
mean that records are lost. librdkafka would then start a new epoch in all partitions, and its
unanswered batches that were appended elsewhere would be appended twice. Appending the batch if the
producer is unknown would be worse: the client would conclude that the earlier batches were
appended, too.

So such a batch is rejected once with a retriable error, and the client retries its batches in
order. If the producer sends the same batch a second time, there is no earlier batch to retry, and
the gap is real.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_SEQUENCE
from ottla.record.header import BatchHeader
from ottla.storage.producers.state import BATCHES_KEPT, SEQUENCE_MASK, ProducerEntry

# The most producers remembered; new ones replace the oldest.
_PRODUCERS_MAX = 1_000
_HALF = SEQUENCE_MASK // 2


class _Doubt:
    """A producer with rejected batches, and no batch appended since.

    A batch is refused for any retriable error, and sent back because it arrived too early.
    """

    __slots__ = ("code", "producer_epoch", "refused", "sent_back")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        # The first sequence of the earliest refused batch, and its error.
        self.refused = NO_SEQUENCE
        self.code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        # The first sequences of the last batches sent back.
        self.sent_back: list[int] = []


class SequenceGaps:
    """The producers whose batches came out of order at this leader."""

    __slots__ = ("_doubts", "_epoch_start")

    def __init__(self) -> None:
        self._epoch_start = 0
        self._doubts: dict[int, _Doubt] = {}

    def begin_term(self, epoch_start: int) -> None:
        """Start a leader epoch at offset `epoch_start`."""
        self._epoch_start = epoch_start
        self._doubts.clear()

    @property
    def is_any(self) -> bool:
        """Whether any producer has rejected batches."""
        return bool(self._doubts)

    def on_refused(self, header: BatchHeader, code: ErrorCode) -> None:
        """Note a batch that was rejected with a retriable error."""
        if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
            return
        doubt = self._of(header)
        sequence = header.base_sequence
        if doubt.refused == NO_SEQUENCE or not _is_before(doubt.refused, sequence):
            doubt.refused, doubt.code = sequence, code
            # The batch was not retried yet, so later batches may still arrive too early.
            doubt.sent_back.clear()

    def on_appended(self, producer_id: int) -> None:
        """Note that the producer's batches are in order again."""
        self._doubts.pop(producer_id, None)

    def check(self, entry: ProducerEntry | None, header: BatchHeader) -> None:
        """Raise a retriable OttlaError for an out-of-order batch if the gap may still close.

        `entry` is the producer's state in the log, if any. The error is NOT_LEADER_OR_FOLLOWER, or
        that of an earlier refused batch.
        """
        sequence = header.base_sequence
        doubt = self._doubts.get(header.producer_id)
        if doubt is not None and doubt.producer_epoch == header.producer_epoch:
            if sequence in doubt.sent_back:
                return
            if doubt.refused != NO_SEQUENCE and _is_before(doubt.refused, sequence):
                self._send_back(header, doubt.code, "an earlier batch was refused")
        if entry is None or entry.last_offset < self._epoch_start:
            reason = "earlier batches may have gone to the former leader"
            self._send_back(header, ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)

    def _send_back(self, header: BatchHeader, code: ErrorCode, reason: str) -> None:
        doubt = self._of(header)
        doubt.sent_back.append(header.base_sequence)
        del doubt.sent_back[:-BATCHES_KEPT]
        raise OttlaError(
            code,
            f"producer {header.producer_id} of epoch {header.producer_epoch} sent sequence "
            f"{header.base_sequence} too early: {reason}; send those again, then this one",
        )

    def _of(self, header: BatchHeader) -> _Doubt:
        doubts = self._doubts
        doubt = doubts.get(header.producer_id)
        if doubt is None or doubt.producer_epoch != header.producer_epoch:
            if doubt is None and len(doubts) >= _PRODUCERS_MAX:
                del doubts[next(iter(doubts))]
            doubt = doubts[header.producer_id] = _Doubt(header.producer_epoch)
        return doubt


def _is_before(sequence: int, other: int) -> bool:
    """Whether `sequence` comes before `other`; sequences wrap around."""
    return 0 < (other - sequence & SEQUENCE_MASK) <= _HALF
