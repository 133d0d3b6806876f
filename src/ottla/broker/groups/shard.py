"""The shell of one partition of `__consumer_offsets`: its coordinator, log and timer."""

import logging
from collections.abc import Callable, Sequence
from typing import cast
from uuid import UUID

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.broker.coordinators import TOO_LARGE, Shard
from ottla.broker.coordinators.replay import ReplayedPartition, replay
from ottla.broker.groups.answer import GroupAnswer
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.runtime.purgatory import Deadline, Purgatory
from ottla.broker.runtime.signal import Signal
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.coordinator.flights import Flights
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.records.stored import CoordinatorRecord, OffsetRecord, decode, encode
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import TopicsView
from ottla.transaction.transaction import TransactionOutcome

_log = logging.getLogger(__name__)

Command = Callable[[GroupCoordinator, Call, Moment], GroupDecision]
Upkeep = Callable[[GroupCoordinator, Moment], GroupDecision]


class GroupShard(Shard[GroupCoordinator, CoordinatorRecord]):
    """The groups of one partition."""

    what = "groups"

    def __init__(
        self,
        partition: Partition,
        settings: GroupSettings,
        clock: Clock,
        purgatory: Purgatory,
        new_uuid: Callable[[], UUID],
        flights: Flights,
        topics: Callable[[], TopicsView],
        decided: Signal[[GroupDecision]],
        *,
        commit_timeout_ms: int,
        load_bytes: int,
    ) -> None:
        super().__init__(
            partition,
            clock,
            purgatory,
            commit_timeout_ms=commit_timeout_ms,
            load_bytes=load_bytes,
        )
        self._settings = settings
        self._new_uuid = new_uuid
        self._flights = flights
        self._topics = topics
        self._decided = decided
        self._deadline: Deadline | None = None

    def empty(self) -> GroupCoordinator:
        return GroupCoordinator(self._settings)

    async def replayed(self) -> GroupCoordinator:
        coordinator = self.empty()
        reading: ReplayedPartition[CoordinatorRecord] = await replay(
            self.partition, self.load_bytes, decode
        )
        for record in reading.records:
            coordinator.registry.apply(record)
        open_here: set[int] | None = None
        if reading.losses:
            coordinator.registry.mend()
            open_here = self._open_here()
        for producer_id, record, is_overtaken in reading.pending:
            if isinstance(record, OffsetRecord) and (open_here is None or producer_id in open_here):
                coordinator.registry.pending.add(producer_id, record, is_overtaken=is_overtaken)
        self.report(reading.losses)
        return coordinator

    def _open_here(self) -> set[int]:
        """Return the producers with an open transaction in this partition.

        The marker of any other producer may be lost; its offsets would stay pending forever.
        """
        return set(self.partition.log.producers.open_transactions.values())

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        return encode(record)

    def apply(
        self,
        coordinator: GroupCoordinator,
        record: CoordinatorRecord,
        _offset: int,
        producer: OnBehalf | None,
    ) -> None:
        if producer is None:
            coordinator.registry.apply(record)
        else:
            coordinator.registry.apply_pending(producer.producer_id, record)

    def failure(self, code: ErrorCode, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        """Return the error code for records that could not be appended.

        Too large offset commits are the client's fault, but too large groups are not.
        """
        if code in TOO_LARGE and not self.is_ahead(records):
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        return super().failure(code, records)

    def is_ahead(self, records: Sequence[CoordinatorRecord]) -> bool:
        """Whether a record is a group change, which is in memory before it is appended."""
        return any(not isinstance(record, OffsetRecord) for record in records)

    def begin(self, coordinator: GroupCoordinator) -> None:
        if coordinator.registry.groups:
            _log.info("loaded %d groups of %s", len(coordinator.registry.groups), self.name)
        self._carry_out(coordinator.start(self._now()))

    def release(self, coordinator: GroupCoordinator | None, code: ErrorCode) -> None:
        if self._deadline is not None:
            self.purgatory.cancel(self._deadline)
            self._deadline = None
        if coordinator is not None:
            for ticket in coordinator.waiting():
                cast("GroupAnswer", ticket).fail(code)
            at = self._now()
            for group in coordinator.registry.all():
                self._flights.give_up(group.group_id, at)

    def run(self, answer: GroupAnswer, command: Command, producer: OnBehalf | None = None) -> None:
        """Run a command and answer it; with `producer` its records belong to the transaction."""
        coordinator = self.loaded()
        request = answer.request
        call = Call(
            answer,
            request.version,
            client_id=request.client_id or "",
            # Java prints an address without a host name like this.
            client_host=f"/{request.client_host}",
            nonce=str(self._new_uuid()),
        )
        self._carry_out(command(coordinator, call, self._now()), producer)

    def end_transaction(self, outcome: TransactionOutcome) -> int:
        """Append a transaction's marker, and commit or drop the transaction's pending offsets.

        Returns the end offset that must be committed. Raises OttlaError.
        """
        coordinator = self.loaded()
        end = self.partition.end_transaction(
            outcome.marker,
            outcome.producer_id,
            outcome.producer_epoch,
            raises_epoch=outcome.raises_epoch,
        )
        coordinator.registry.end_transaction(outcome.producer_id, is_commit=outcome.is_commit)
        return end

    def upkeep(self, upkeep: Upkeep) -> None:
        """Run work without a request: expire offsets, or drop offsets of deleted topics."""
        if self.coordinator is not None:
            self._carry_out(upkeep(self.coordinator, self._now()))

    def _now(self) -> Moment:
        return Moment(self.clock.monotonic_ms(), self.clock.now_ms(), self._topics())

    # Hot: once per command.
    def _carry_out(self, decision: GroupDecision, producer: OnBehalf | None = None) -> None:
        """Append the decision's records, apply them and answer."""
        if decision.records and not self.write(decision, producer):
            return
        if decision.notes:
            self._flights.take(decision.notes, self._now())
        self.answer(decision)
        self._decided.emit(decision)
        self._arm()

    def _arm(self) -> None:
        """Set the timer to the coordinator's next deadline, if that is earlier."""
        if self.coordinator is None:
            return
        next_ms = self.coordinator.next_deadline_ms()
        if next_ms is None:
            return
        if self._deadline is not None:
            if self._deadline.at_ms <= next_ms:
                return
            self.purgatory.cancel(self._deadline)
        delay_ms = next_ms - self.clock.monotonic_ms()
        self._deadline = self.purgatory.schedule(delay_ms, self._on_deadline)

    def _on_deadline(self) -> None:
        self._deadline = None
        coordinator = self.coordinator
        while coordinator is not None:
            at = self._now()
            next_ms = coordinator.next_deadline_ms()
            if next_ms is None or next_ms > at.now_ms:
                break
            self._carry_out(coordinator.on_deadline(at))
            coordinator = self.coordinator
        self._arm()
