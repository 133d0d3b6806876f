"""The follower's state in one leader epoch: what to fetch, and how to act on answers. Pure.

Each leader epoch has a new `Follower`, which fetches from its own log end offset (P23). It
truncates its log only if the leader of that same epoch reports that the two logs diverge (R-1). One
fetch is in flight at a time, identified by its nonce; answers to other fetches are ignored (R-7).
"""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.metadata.decisions import Decision, DecisionKind
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.replica.effects import (
    APPEND,
    AdvanceHighWatermark,
    AdvanceLogStart,
    FollowerEffect,
    RestartAt,
    TruncateTo,
)
from ottla.replica.log_view import LogView
from ottla.replica.registration import Registration

Effects = tuple[FollowerEffect, ...]
NOTHING: Effects = ()
NO_FETCH = 0


class Follower:
    """Follows one leader through one leader epoch.

    The attributes `fetch_offset`, `last_fetched_epoch`, `leader_epoch` and `nonce`, with the
    registration's broker epoch, describe a fetch. `begin_fetch` sets them, and they keep their
    values until the answer.

    Invariant: high_watermark <= log.log_end_offset.
    """

    __slots__ = (
        "fetch_offset",
        "high_watermark",
        "is_full",
        "last_fetched_epoch",
        "leader",
        "leader_epoch",
        "leader_high_watermark",
        "leader_log_start",
        "log",
        "nonce",
        "partition",
        "registration",
        "retry_at_ms",
        "retry_ms",
    )

    def __init__(
        self,
        partition: TopicPartition,
        registration: Registration,
        image: PartitionImage,
        log: LogView,
        *,
        high_watermark: int,
        retry_ms: int,
    ) -> None:
        """`high_watermark` is the last one known here; `retry_ms` is `replica.fetch.backoff.ms`."""
        assert image.leader not in (NO_LEADER, registration.broker_id)
        self.partition = partition
        self.registration = registration
        self.log = log
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.high_watermark = min(high_watermark, log.log_end_offset)
        self.retry_ms = retry_ms
        # The earliest time of the next fetch.
        self.retry_at_ms = 0
        # Whether the disk had no room for the last answer's records; fetches report this to the
        # leader.
        self.is_full = False
        # The leader's high watermark and log start offset as last received; -1 before that. The
        # logs cannot be compared below the leader's log start offset.
        self.leader_high_watermark = -1
        self.leader_log_start = -1
        # The nonce of the fetch in flight; NO_FETCH if there is none.
        self.nonce = NO_FETCH
        self.fetch_offset = 0
        self.last_fetched_epoch = -1

    # Hot: once per partition and fetch.
    def begin_fetch(self, durable_end: int, *, now_ms: int) -> bool:
        """Start a fetch if one is due, and return whether it was started.

        `durable_end` is the offset below which the log is durable: the flushed offset with group
        commit, else the log end offset. A fetch confirms to the leader that the whole log is
        durable, so the follower waits until it is.
        """
        log_end = self.log.log_end_offset
        if self.nonce != NO_FETCH or durable_end < log_end or now_ms < self.retry_at_ms:
            return False
        self.fetch_offset = log_end
        self.last_fetched_epoch = self.log.last_epoch
        self.nonce = self.registration.next_nonce()
        return True

    # Hot: once per partition and answer.
    def on_records(
        self,
        nonce: int,
        leader_epoch: int,
        high_watermark: int,
        log_start_offset: int,
        *,
        empty: bool,
    ) -> Effects:
        """Handle an answer with records from `fetch_offset` on, or without records.

        `high_watermark` and `log_start_offset` are the leader's. If the effects include Append, the
        caller calls `on_appended` afterwards.
        """
        if not self._take(nonce, leader_epoch):
            return NOTHING
        self.leader_high_watermark = high_watermark
        self.leader_log_start = log_start_offset
        return self.on_appended() if empty else APPEND

    def on_appended(self) -> Effects:
        """Continue after all of the answer's records, or only the first ones, were appended."""
        log = self.log
        effects = NOTHING
        committed = min(self.leader_high_watermark, log.log_end_offset)
        if committed > self.high_watermark:
            self.high_watermark = committed
            effects = (AdvanceHighWatermark(committed),)
        start = min(self.leader_log_start, self.high_watermark)
        if start > log.log_start_offset:
            effects += (AdvanceLogStart(start),)
        return effects

    def on_diverging(
        self, nonce: int, leader_epoch: int, epoch: int, end_offset: int, *, now_ms: int
    ) -> Effects:
        """Truncate after the leader answered that it has `epoch` only up to `end_offset` (KIP-279).

        If our own log ends that epoch, or the latest epoch before it, at a lower offset, the log is
        truncated to that offset. The next fetch shows whether the logs diverge even earlier.
        """
        fetch_offset = self.fetch_offset
        last_fetched_epoch = self.last_fetched_epoch
        if not self._take(nonce, leader_epoch):
            return NOTHING
        cut, own_end = self.parting(epoch, end_offset)
        if cut >= fetch_offset:
            # A correct leader never sends this: fetch again after a pause.
            self.retry_at_ms = now_ms + self.retry_ms
            return NOTHING
        evidence = (
            f"leader {self.leader} has epoch {epoch} up to {end_offset}, this replica up to "
            f"{own_end}; it ended at {fetch_offset} in epoch {last_fetched_epoch}, its high "
            f"watermark was {self.high_watermark}"
        )
        self.high_watermark = min(self.high_watermark, cut)
        cause = f"the logs part at {cut}"
        return (TruncateTo(cut), self._decision(DecisionKind.TRUNCATED, cause, evidence, now_ms))

    def parting(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Return the offset at which our log diverges from one with `epoch` up to `end_offset`.

        The second value is the end offset of that epoch in our log.
        """
        log = self.log
        _, own_end = log.end_offset_for_epoch(epoch)
        if own_end < 0 or epoch < 0:
            # Our log starts at a later epoch.
            own_end = log.log_start_offset
        return max(min(end_offset, own_end), log.log_start_offset), own_end

    def on_error(
        self, nonce: int, leader_epoch: int, error: ErrorCode, log_start_offset: int, *, now_ms: int
    ) -> Effects:
        """Act on a refused fetch; `log_start_offset` is the leader's, -1 if it sent none.

        After FENCED_LEADER_EPOCH and the like the follower waits for LeaderAndIsr with a new epoch.
        """
        fetch_offset = self.fetch_offset
        last_fetched_epoch = self.last_fetched_epoch
        if not self._take(nonce, leader_epoch):
            return NOTHING
        self.retry_at_ms = now_ms + self.retry_ms
        if error is not ErrorCode.OFFSET_OUT_OF_RANGE or log_start_offset < 0:
            return NOTHING
        self.retry_at_ms = now_ms
        # Only committed records are ever deleted, so all records below the log start are committed.
        self.high_watermark = log_start_offset
        cause = f"the log goes on, empty, at {log_start_offset}"
        evidence = (
            f"leader {self.leader} has nothing to compare with offset {fetch_offset} and epoch "
            f"{last_fetched_epoch}; its log begins at {log_start_offset}"
        )
        decision = self._decision(DecisionKind.RESTARTED, cause, evidence, now_ms)
        return (RestartAt(log_start_offset), decision)

    def on_no_answer(self, nonce: int, *, now_ms: int) -> None:
        """Act on a fetch that failed in transit; a late answer to it is ignored."""
        if nonce == self.nonce:
            self.nonce = NO_FETCH
            self.retry_at_ms = now_ms + self.retry_ms

    def check_read(self, offset: int) -> ErrorCode:
        """Check whether a consumer may read from this follower (KIP-392).

        Records below our high watermark are readable. An offset that the leader may have, but this
        replica does not, is not out of range (S20).
        """
        if offset < self.log.log_start_offset:
            known = self.leader_log_start
            if 0 <= known <= offset:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER  # The leader still has it.
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if offset > self.high_watermark:
            return ErrorCode.OFFSET_NOT_AVAILABLE
        return ErrorCode.NONE

    def _take(self, nonce: int, leader_epoch: int) -> bool:
        """End the fetch in flight; return whether the answer is for it and our log end is the same.

        An answer to another fetch changes nothing.
        """
        if nonce != self.nonce or nonce == NO_FETCH or leader_epoch != self.leader_epoch:
            return False
        self.nonce = NO_FETCH
        return self.fetch_offset == self.log.log_end_offset

    def _decision(self, kind: DecisionKind, cause: str, evidence: str, now_ms: int) -> Decision:
        return Decision(
            kind,
            self.partition,
            self.registration.broker_id,
            self.leader_epoch,
            cause,
            evidence,
            None,
            now_ms,
        )
