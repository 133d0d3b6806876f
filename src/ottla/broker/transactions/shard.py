"""The shell of one partition of `__transaction_state`: its coordinator, log and waiting commands.

Markers are sent only after the record of the decision is committed. If the coordinator fails before
that, no client has seen the decision.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinators import Shard, Ticket, give
from ottla.broker.coordinators.replay import replay
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.runtime.purgatory import Deadline, Purgatory
from ottla.transaction.coordinator import TransactionCoordinator, TransactionSettings
from ottla.transaction.records import decode, encode
from ottla.transaction.transaction import (
    Markers,
    TransactionDecision,
    TransactionRecord,
    TransactionReply,
    TransactionState,
)

_log = logging.getLogger(__name__)

# Called with the coordinator, the ticket for the answer, and the time in ms since 1970.
Command = Callable[[TransactionCoordinator, Any, int], TransactionDecision]
Upkeep = Callable[[TransactionCoordinator, int], TransactionDecision]
# Sends markers, and calls the callback when all partitions have them.
SendMarkers = Callable[["TransactionShard", Markers, Callable[[], None]], None]

# How long to pause after an error before waiting again for a record to be committed.
_LOOK_AGAIN_MS = 100


class TransactionShard(Shard[TransactionCoordinator, TransactionRecord]):
    """The transactional ids of one partition; its leader epoch is the coordinator epoch."""

    what = "transactions"
    checks_sizes = True

    def __init__(
        self,
        partition: Partition,
        settings: TransactionSettings,
        clock: Clock,
        purgatory: Purgatory,
        send_markers: SendMarkers,
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
        self._send_markers = send_markers
        # Commands by transactional id that wait for the markers of the previous transaction.
        self._parked: dict[str, list[_Parked]] = {}

    def empty(self) -> TransactionCoordinator:
        return TransactionCoordinator(self._settings)

    async def replayed(self) -> TransactionCoordinator:
        coordinator = self.empty()
        reading = await replay(self.partition, self.load_bytes, decode)
        for record in reading.records:
            coordinator.apply(record)
        self.report(reading.losses)
        return coordinator

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        return encode(record)

    def apply(
        self,
        coordinator: TransactionCoordinator,
        record: TransactionRecord,
        _offset: int,
        _producer: OnBehalf | None,
    ) -> None:
        coordinator.apply(record)

    def check_size(self, record: TransactionRecord, value: bytes | None, max_bytes: int) -> None:
        """Raise OttlaError if a record is larger than max.message.bytes.

        Records that end the transaction are allowed.
        """
        changed = record.transaction
        if value is not None and len(value) > max_bytes:
            assert changed is not None
            if changed.state is TransactionState.ONGOING:
                raise OttlaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"{record.transactional_id!r} would have {len(changed.partitions)} partitions "
                    f"in one transaction, {len(value)} bytes; end it earlier, or raise "
                    f"max.message.bytes of __transaction_state ({max_bytes})",
                )

    def begin(self, coordinator: TransactionCoordinator) -> None:
        if coordinator.transactions:
            _log.info("loaded %d transactional ids of %s", len(coordinator.transactions), self.name)
        self._carry_out(coordinator.start())

    def release(self, _coordinator: TransactionCoordinator | None, code: ErrorCode) -> None:
        waiting, self._parked = self._parked, {}
        for parked in (each for room in waiting.values() for each in room):
            self.purgatory.cancel(parked.deadline)
            parked.ticket.fail(code)

    # Hot: once per command.
    def run(
        self, transactional_id: str, ticket: Ticket, command: Command, *, patience_ms: int
    ) -> None:
        """Run a command and answer it.

        If it must wait for the markers of the previous transaction, it runs again when they are
        written, but waits at most `patience_ms`. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS).
        """
        decision = command(self.loaded(), ticket, self.clock.now_ms())
        if decision.waits and patience_ms > 0:
            replies, decision.replies = decision.replies, []
            if decision.records and not self._carry_out(decision):
                return
            parked = _Parked(ticket, command, replies)
            parked.deadline = self.purgatory.schedule(
                patience_ms, lambda: self._lose_patience(transactional_id, parked)
            )
            self._parked.setdefault(transactional_id, []).append(parked)
        else:
            self._carry_out(decision)

    def upkeep(self, upkeep: Upkeep) -> None:
        """Abort overdue transactions or expire unused ids, as `upkeep` decides."""
        if self.coordinator is not None:
            self._carry_out(upkeep(self.coordinator, self.clock.now_ms()))

    def _carry_out(self, decision: TransactionDecision) -> bool:
        """Append the decision's records, apply them and answer; return False on a failed append."""
        if decision.records and not self.write(decision):
            return False
        self.answer(decision)
        if decision.markers:
            markers = list(decision.markers)
            self._when_committed(self.partition.log_end_offset, lambda: self._mark(markers))
        return True

    def _when_committed(self, end: int, then: Callable[[], None]) -> None:
        """Call `then` when all records below `end` are committed, if the shard is still open."""
        term = self.coordinator

        def on_reached(code: ErrorCode) -> None:
            if self.closed or self.coordinator is not term:
                return
            if code is ErrorCode.NONE:
                then()
            else:
                # Too few replicas are in sync, or leadership is uncertain at the moment.
                self.purgatory.schedule(_LOOK_AGAIN_MS, lambda: self._when_committed(end, then))

        self.partition.on_high_watermark(end, on_reached)

    def _mark(self, markers: list[Markers]) -> None:
        for each in markers:
            self._send_markers(self, each, partial(self._on_marked, each))

    def _on_marked(self, markers: Markers) -> None:
        coordinator = self.coordinator
        if self.closed or coordinator is None:
            return
        decision = coordinator.complete(markers, self.clock.now_ms())
        if not self._carry_out(decision):
            # The record cannot be appended at the moment; the markers are already written.
            self.purgatory.schedule(_LOOK_AGAIN_MS, lambda: self._on_marked(markers))
            return
        for parked in self._parked.pop(markers.transactional_id, ()):
            self.purgatory.cancel(parked.deadline)
            try:
                # The command is repeated only once; after that the client must retry.
                self.run(markers.transactional_id, parked.ticket, parked.command, patience_ms=0)
            except OttlaError as error:
                parked.ticket.fail(error.code)

    def _lose_patience(self, transactional_id: str, parked: "_Parked") -> None:
        waiting = self._parked.get(transactional_id, [])
        if parked in waiting:
            waiting.remove(parked)
            if not waiting:
                del self._parked[transactional_id]
            give(parked.replies)


class _Parked:
    """A command that waits for the end of the previous transaction."""

    __slots__ = ("command", "deadline", "replies", "ticket")

    deadline: Deadline

    def __init__(self, ticket: Ticket, command: Command, replies: list[TransactionReply]) -> None:
        self.ticket = ticket
        self.command = command
        # The replies to send if the command has to wait too long.
        self.replies = replies
