"""A partition as its leader hands it out to the members of one share group (KIP-932).

Records from `start_offset` on are given to members, each to one at a time and for a while; they
are done with when a member accepts or rejects them, or when they were given out too often. Time is
an argument. `changes` reports the durable state, which was read back before it began; who acquired
what is not written: records that are acquired when a broker dies are given out again.
"""

from collections import deque
from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.deliveries import Acknowledged, Acquired, Dead, DeliveryLimits, Found, StateChanges
from ottla.share.spans import add_to, merged, spans_of
from ottla.share.states import Acknowledge, DeliveryState, StateBatch
from ottla.share.window import StateRun, Window

# How many records that no member accepted a partition remembers, to describe them.
_DEAD_KEPT = 100
_COUNT_MAX = 2**31 - 1


class SharePartition:
    """The deliveries of one partition to one group.

    Invariant: a record is acquired by one member at most; what is final stays so; no record was
    given out more than `limits.delivery_count` times by what is known here; one that is to leave a
    dead letter is not final before `archive`, and counts as under way.
    """

    def __init__(
        self, limits: DeliveryLimits, start_offset: int, batches: Iterable[StateBatch] = ()
    ) -> None:
        """`batches`: the written state; offsets between them were never acknowledged."""
        self.limits = limits
        self._window = Window(start_offset)
        self._dirty: list[tuple[int, int]] = []
        # The start that was written last.
        self._written_start = start_offset
        # The latest of them.
        self.dead: deque[Dead] = deque(maxlen=_DEAD_KEPT)
        # Those of them that are to leave a dead letter, and that `changes` has not reported.
        self._letters: list[Dead] = []
        for batch in sorted(batches):
            self._window.extend(batch.last)
            for run in self._window.cut(batch.first, batch.last):
                run.state, run.deliveries = batch.state, batch.deliveries
                if (
                    batch.state is DeliveryState.AVAILABLE
                    and batch.deliveries >= limits.delivery_count
                ):
                    # The limit was lowered.
                    self._bury(run, rejected=False)
        self._tidy()

    @property
    def start_offset(self) -> int:
        """Everything below is done with."""
        return self._window.start

    @property
    def end_offset(self) -> int:
        """The first offset that was never given out."""
        return self._window.end

    @property
    def complete_count(self) -> int:
        """How many offsets from the start on are done with; a record holds no more than int32."""
        return min(sum(run.size for run in self._window if run.state.is_final), _COUNT_MAX)

    @property
    def in_flight(self) -> int:
        """How many records are not done with."""
        return sum(run.size for run in self._window if not run.state.is_final)

    def runs(self) -> list[StateBatch]:
        """All that is known, for tests and people."""
        return [StateBatch(run.first, run.last, run.state, run.deliveries) for run in self._window]

    def archiving(self) -> list[Dead]:
        """Whose dead letters may not be written yet: for who takes over.

        Why is not written; one that was given out as often as may be is taken for exhausted.
        """
        limit = self.limits.delivery_count
        return [
            Dead(run.first, run.last, run.deliveries, rejected=run.deliveries < limit)
            for run in self._window
            if run.state is DeliveryState.ARCHIVING
        ]

    def next_offset(self) -> int | None:
        """From where to read for a member; None where there is nothing to give."""
        for run in self._window:
            if run.state is DeliveryState.AVAILABLE:
                return run.first
        return self._window.end if self.in_flight < self.limits.records else None

    def available(self) -> list[tuple[int, int | None]]:
        """First and last offset of what could be given out now; the last None at the log's end."""
        spans: list[tuple[int, int | None]] = [
            (run.first, run.last) for run in self._window if run.state is DeliveryState.AVAILABLE
        ]
        if self.in_flight < self.limits.records:
            spans.append((self._window.end, None))
        return spans

    def next_deadline_ms(self) -> int | None:
        """When the first lock ends, None where there is none."""
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
        """Give a member what is available in batches that were read from `offset` on.

        Whole batches, until there are `max_records`; with `strict` no more than those. Runs are
        split into batches of `batch_size` records, if that is set.
        """
        given: list[Acquired] = []
        left = max_records
        position = offset
        for batch in found:
            if left <= 0:
                break
            # Between batches there are no records: they were compacted away.
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
        self._tidy()
        return given

    def acknowledge(self, member_id: str, batches: Iterable[Acknowledged], now_ms: int) -> None:
        """Take in what a member says of records it has: all of it or, with an error, nothing.

        Raises OttlaError: INVALID_REQUEST, INVALID_RECORD_STATE. What is done with is not an error.
        """
        spans = [span for batch in batches for span in spans_of(batch)]
        for first, last, kind in spans:
            self._require_acquired(member_id, first, last, kind)
        for first, last, kind in spans:
            for run in self._window.cut(first, last):
                # Unless it was named twice.
                if run.state is DeliveryState.ACQUIRED:
                    self._acknowledge_run(run, kind, now_ms)
        self._tidy()

    def release_all(self, member_id: str) -> bool:
        """A member is gone: give back what it has. Whether it had anything."""
        held = [run for run in self._window if run.member_id == member_id]
        for run in held:
            self._give_back(run)
        self._tidy()
        return bool(held)

    def expire(self, now_ms: int) -> bool:
        """Give back what was locked for too long. Whether there was anything."""
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
        """The dead letters of these offsets are written, or never will be."""
        for run in self._window.cut(first, last):
            if run.state is DeliveryState.ARCHIVING:
                self._settle(run, DeliveryState.ARCHIVED)
        self._tidy()

    def on_log_start(self, log_start_offset: int) -> None:
        """The log begins later: what is before that is gone."""
        if log_start_offset > self._window.start:
            self._window.drop_before(log_start_offset)
            self._tidy()

    @property
    def has_changes(self) -> bool:
        """Whether there is anything that must survive and was not given by `changes`."""
        return bool(self._dirty) or self._written_start != self._window.start

    def changes(self) -> StateChanges:
        """What has changed since it was last asked for."""
        batches: list[StateBatch] = []
        for first, last in merged(self._dirty):
            for run in self._window.peek(first, last):
                state, count = run.state, run.deliveries
                if state is DeliveryState.ACQUIRED:
                    # That it was acquired again is not written.
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

    def _archive_new(self, first: int, last: int) -> None:
        """There are no records for members from `first` to `last`."""
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
                ErrorCode.INVALID_RECORD_STATE, f"offset {last} was given to nobody yet"
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
