"""A share partition: one partition as its leader delivers it to one share group (KIP-932).

Records from `start_offset` on are delivered to members. A record is acquired by one member at a
time, under a lock that expires. It gets a final state when a member accepts or rejects it, or when
it reached the delivery count limit. Time is an argument. `changes` returns what the leader has to
write to the share coordinator. Acquisitions are not written: the next leader delivers records again
that were acquired when a broker failed.
"""

from collections import deque
from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.deliveries import (
    Acknowledged,
    Acquired,
    Dead,
    DeliveryLimits,
    Found,
    StateChanges,
    add_to,
    merged,
    spans_of,
)
from ottla.share.states import Acknowledge, DeliveryState, StateBatch
from ottla.share.window import StateRun, Window

# How many of the latest runs of records that no member accepted are kept, to describe them.
_DEAD_KEPT = 100
_COUNT_MAX = 2**31 - 1


class SharePartition:
    """The deliveries of one partition to one group.

    Invariant: a record is acquired by one member at most.
    Invariant: a final state never changes.
    Invariant: no record was delivered more than `limits.delivery_count` times, by the written state
    and the deliveries since.
    Invariant: a record that needs a dead letter is not final before `archive`, and is in flight.
    """

    def __init__(
        self, limits: DeliveryLimits, start_offset: int, batches: Iterable[StateBatch] = ()
    ) -> None:
        """`batches` is the stored state; offsets between batches were never acknowledged."""
        self.limits = limits
        self._window = Window(start_offset)
        self._dirty: list[tuple[int, int]] = []
        # The start offset in the latest `changes`.
        self._written_start = start_offset
        # The latest records that no member accepted.
        self.dead: deque[Dead] = deque(maxlen=_DEAD_KEPT)
        # Records that need a dead letter and that `changes` has not reported yet.
        self._letters: list[Dead] = []
        for batch in sorted(batches):
            self._window.extend(batch.last)
            for run in self._window.cut(batch.first, batch.last):
                run.state, run.deliveries = batch.state, batch.deliveries
                run.batch_size = run.size
                if (
                    batch.state is DeliveryState.AVAILABLE
                    and batch.deliveries >= limits.delivery_count
                ):
                    # The delivery count limit was lowered since the state was written.
                    self._bury(run, rejected=False)
        self._tidy()

    @property
    def start_offset(self) -> int:
        """The share-partition start offset (SPSO): every record below it is in a final state."""
        return self._window.start

    @property
    def end_offset(self) -> int:
        """The first offset after those in the window: no record from here on was delivered."""
        return self._window.end

    @property
    def complete_count(self) -> int:
        """How many offsets from the start offset on are final; capped, as the field is int32."""
        return min(sum(run.size for run in self._window if run.state.is_final), _COUNT_MAX)

    @property
    def in_flight(self) -> int:
        """How many records in the window are not in a final state."""
        return sum(run.size for run in self._window if not run.state.is_final)

    def runs(self) -> list[StateBatch]:
        """The states of all records in the window, for tests and descriptions."""
        return [StateBatch(run.first, run.last, run.state, run.deliveries) for run in self._window]

    def archiving(self) -> list[Dead]:
        """Records whose dead letters may not be written yet; a new leader writes them.

        The written state does not contain the reason: a record that reached the delivery count
        limit is reported as exhausted, any other as rejected.
        """
        limit = self.limits.delivery_count
        return [
            Dead(run.first, run.last, run.deliveries, rejected=run.deliveries < limit)
            for run in self._window
            if run.state is DeliveryState.ARCHIVING
        ]

    def next_offset(self) -> int | None:
        """The offset from which to read for a member; None if no record can be acquired now."""
        for run in self._window:
            if run.state is DeliveryState.AVAILABLE:
                return run.first
        return self._window.end if self.in_flight < self.limits.records else None

    def available(self) -> list[tuple[int, int | None]]:
        """The offset spans that could be acquired now; a last offset of None is the log end."""
        spans: list[tuple[int, int | None]] = [
            (run.first, run.last) for run in self._window if run.state is DeliveryState.AVAILABLE
        ]
        if self.in_flight < self.limits.records:
            spans.append((self._window.end, None))
        return spans

    def next_deadline_ms(self) -> int | None:
        """When the first lock expires; None if no record is acquired."""
        deadlines = [run.deadline_ms for run in self._window if run.state is DeliveryState.ACQUIRED]
        return min(deadlines, default=None)

    def acquire(
        self,
        member_id: str,
        offset: int,
        found: Iterable[Found],
        max_records: int,
        now_ms: int,
        *,
        strict: bool = False,
        batch_size: int = 0,
    ) -> list[Acquired]:
        """Acquire available records for a member, in batches `found` by reading from `offset` on.

        Acquires whole batches until there are at least `max_records`; with `strict` never more
        than `max_records`. The result is split into batches of `batch_size` records, if set.
        Records that were delivered often are acquired in a smaller portion, and no others with
        them, so that one bad record does not exhaust the deliveries of its neighbours.
        """
        given: list[Acquired] = []
        left = max_records
        position = offset
        end_before = self._window.end
        most = self._last_to_acquire(offset)
        for batch in found:
            if left <= 0 or (most is not None and batch.first > most):
                break
            if most is not None:
                batch = batch._replace(last=min(batch.last, most))
            # Offsets between batches have no records: compaction removed them.
            self._archive_new(position, batch.first - 1)
            position = batch.last + 1
            if not batch.readable:
                self._archive_new(max(batch.first, offset), batch.last)
                continue
            taken = self._acquire_batch(member_id, batch, left, now_ms, strict=strict)
            left -= sum(each.last - each.first + 1 for each in taken)
            add_to(given, taken, batch_size)
            if self._window.end <= batch.last:
                break
        size = self._window.end - end_before
        for run in self._window.peek(end_before, self._window.end - 1):
            run.batch_size = min(size, batch_size) if batch_size else size
        self._tidy()
        return given

    def acknowledge(self, member_id: str, batches: Iterable[Acknowledged], now_ms: int) -> None:
        """Apply all acknowledgements of a member or, if one of them is an error, none.

        Offsets below `start_offset` are ignored. Raises OttlaError: INVALID_REQUEST,
        INVALID_RECORD_STATE.
        """
        spans = [span for batch in batches for span in spans_of(batch)]
        for first, last, kind in spans:
            self._require_acquired(member_id, first, last, kind)
        for first, last, kind in spans:
            for run in self._window.cut(first, last):
                # If the request names an offset twice, the first acknowledgement applies.
                if run.state is DeliveryState.ACQUIRED:
                    self._acknowledge_run(run, kind, now_ms)
        self._tidy()

    def release_all(self, member_id: str) -> bool:
        """Release all records that a member has acquired; return whether there were any."""
        held = [run for run in self._window if run.member_id == member_id]
        for run in held:
            self._give_back(run)
        self._tidy()
        return bool(held)

    def expire(self, now_ms: int) -> bool:
        """Release records whose locks have expired; return whether there were any."""
        overdue = [
            run
            for run in self._window
            if run.state is DeliveryState.ACQUIRED and run.deadline_ms <= now_ms
        ]
        for run in overdue:
            self._give_back(run)
        self._tidy()
        return bool(overdue)

    def archive(self, first: int, last: int) -> None:
        """Archive records whose dead letters were written or given up."""
        for run in self._window.cut(first, last):
            if run.state is DeliveryState.ARCHIVING:
                self._settle(run, DeliveryState.ARCHIVED)
        self._tidy()

    def on_log_start(self, log_start_offset: int) -> None:
        """The log start offset has advanced: drop the states of records below it."""
        if log_start_offset > self._window.start:
            self._window.drop_before(log_start_offset)
            self._tidy()

    @property
    def has_changes(self) -> bool:
        """Whether there are changes to write that `changes` has not returned yet."""
        return bool(self._dirty) or self._written_start != self._window.start

    def changes(self) -> StateChanges:
        """The changes since the last call."""
        batches: list[StateBatch] = []
        for first, last in merged(self._dirty):
            for run in self._window.peek(first, last):
                state, count = run.state, run.deliveries
                if state is DeliveryState.ACQUIRED:
                    # The present acquisition is not written: write the state before it.
                    state, count = DeliveryState.AVAILABLE, count - 1
                batches.append(StateBatch(max(run.first, first), min(run.last, last), state, count))
        self._dirty = []
        self._written_start = self._window.start
        letters, self._letters = tuple(self._letters), []
        return StateChanges(self._window.start, tuple(batches), self.complete_count, letters)

    def _acquire_batch(
        self, member_id: str, batch: Found, most: int, now_ms: int, *, strict: bool
    ) -> list[Acquired]:
        last = batch.last
        if last >= self._window.end:
            room = self.limits.records - self.in_flight
            if strict:
                ready = sum(
                    run.size
                    for run in self._window.peek(batch.first, last)
                    if run.state is DeliveryState.AVAILABLE
                )
                room = min(room, most - ready)
                last = min(last, self._window.end - 1 + max(room, 0))
            if room > 0:
                self._window.extend(last)
        taken: list[Acquired] = []
        for run in self._window.peek(batch.first, last):
            if most <= 0 and strict:
                break
            if run.state is not DeliveryState.AVAILABLE:
                continue
            first, end = max(run.first, batch.first), min(run.last, last)
            if strict:
                end = min(end, first + most - 1)
            for part in self._window.cut(first, end):
                part.state, part.member_id = DeliveryState.ACQUIRED, member_id
                part.deliveries += 1
                part.deadline_ms = now_ms + self.limits.lock_ms
                most -= part.size
                taken.append(Acquired(part.first, part.last, part.deliveries))
        return taken

    def _last_to_acquire(self, offset: int) -> int | None:
        """The last offset that a member may acquire in a read from `offset` on; None: no limit."""
        others = False
        for run in self._window.peek(offset, self._window.end - 1):
            if run.state is not DeliveryState.AVAILABLE:
                continue
            portion = self._throttled_portion(run)
            if portion is not None:
                first = max(run.first, offset)
                return first - 1 if others else min(first + portion - 1, run.last)
            others = True
        return None

    def _throttled_portion(self, run: StateRun) -> int | None:
        """How many records of a run to deliver together; None if it is not throttled.

        As in Kafka 4.2: from half of the delivery count limit on (rounded up, at least 2), each
        further delivery halves the batch, and in the last delivery each record is alone.
        """
        limit = self.limits.delivery_count
        throttled_from = max(2, (limit + 1) // 2)
        if run.deliveries < throttled_from:
            return None
        if run.deliveries >= limit - 1:
            return 1
        return max(1, run.batch_size >> (run.deliveries - throttled_from + 1))

    def _archive_new(self, first: int, last: int) -> None:
        """Archive available offsets from `first` to `last`: they have no records for members."""
        if first > last:
            return
        if first <= self._window.end:
            self._window.extend(last)
        for run in self._window.cut(first, last):
            if run.state is DeliveryState.AVAILABLE:
                run.state = DeliveryState.ARCHIVED
                self._dirty.append((run.first, run.last))

    def _require_acquired(self, member_id: str, first: int, last: int, kind: int) -> None:
        if kind not in Acknowledge.__members__.values():
            raise OttlaError(ErrorCode.INVALID_REQUEST, f"there is no acknowledge type {kind}")
        if kind == Acknowledge.RENEW and not self.limits.renews:
            raise OttlaError(
                ErrorCode.INVALID_RECORD_STATE,
                "locks are not renewed in this group: share.renew.acknowledge.enable is false",
            )
        if last >= self._window.end:
            raise OttlaError(
                ErrorCode.INVALID_RECORD_STATE, f"offset {last} was not delivered to any member yet"
            )
        for run in self._window.peek(first, last):
            if run.state is not DeliveryState.ACQUIRED or run.member_id != member_id:
                raise OttlaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    f"offset {max(first, run.first)} is not acquired by member {member_id}: its "
                    "lock may have ended",
                )

    def _acknowledge_run(self, run: StateRun, kind: int, now_ms: int) -> None:
        if kind == Acknowledge.RENEW:
            run.deadline_ms = now_ms + self.limits.lock_ms
        elif kind == Acknowledge.RELEASE:
            self._give_back(run)
        elif kind == Acknowledge.REJECT:
            self._bury(run, rejected=True)
        else:
            accepted = kind == Acknowledge.ACCEPT
            self._settle(run, DeliveryState.ACKNOWLEDGED if accepted else DeliveryState.ARCHIVED)

    def _give_back(self, run: StateRun) -> None:
        if run.deliveries >= self.limits.delivery_count:
            self._bury(run, rejected=False)
        else:
            self._settle(run, DeliveryState.AVAILABLE)

    def _bury(self, run: StateRun, *, rejected: bool) -> None:
        dead = Dead(run.first, run.last, run.deliveries, rejected)
        self.dead.append(dead)
        if self.limits.dead_letters:
            self._letters.append(dead)
            self._settle(run, DeliveryState.ARCHIVING)
        else:
            self._settle(run, DeliveryState.ARCHIVED)

    def _settle(self, run: StateRun, state: DeliveryState) -> None:
        run.state, run.member_id, run.deadline_ms = state, None, 0
        self._dirty.append((run.first, run.last))

    def _tidy(self) -> None:
        self._window.drop_final()
        self._window.join()
