"""One partition of `__transaction_state` at work: its coordinator, its log, its waiting rooms.

What a decision asks for beyond answers, the markers of a transaction, is begun when its record is
committed: a coordinator that is lost before that has told nobody of it.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinating import (
    APPEND_FAILURES,
    TOO_LARGE,
    Shard,
    Ticket,
    fail,
    give,
    give_when_committed,
    split,
)
from ottla.broker.groups.replay import last_values
from ottla.broker.partition import Partition
from ottla.broker.purgatory import Deadline, Purgatory
from ottla.transaction.coordinator import Coordinator
from ottla.transaction.records import decode, encode
from ottla.transaction.settings import TransactionSettings
from ottla.transaction.state import TransactionState
from ottla.transaction.turn import Decision, Markers, Reply, TransactionRecord

_log = logging.getLogger(__name__)

# Given the coordinator, who asks, and the time of day in ms.
Command = Callable[[Coordinator, Any, int], Decision]
Upkeep = Callable[[Coordinator, int], Decision]
# Has markers written, and calls back when they stand everywhere.
SendMarkers = Callable[["TransactionShard", Markers, Callable[[], None]], None]

# How soon to look again whether a record is committed whose waiting was ended by an error.
_LOOK_AGAIN_MS = 100


class TransactionShard(Shard[Coordinator]):
    """The transactional ids of one partition; its term is the coordinator epoch of its markers."""

    what = "transactions"

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
        super().__init__(partition)
        self._settings = settings
        self._clock = clock
        self._purgatory = purgatory
        self._send_markers = send_markers
        self._commit_timeout_ms = commit_timeout_ms
        self._load_bytes = load_bytes
        # Who waits, by transactional id, for the outcome before to be written everywhere.
        self._parked: dict[str, list[_Parked]] = {}

    def empty(self) -> Coordinator:
        return Coordinator(self._settings)

    async def replayed(self) -> Coordinator:
        coordinator = self.empty()
        values = await last_values(self.partition, self._load_bytes)
        for key, value in values.items():
            if value is not None:
                record = decode(key, value)
                if record is not None:
                    coordinator.apply(record)
        return coordinator

    def begin(self, coordinator: Coordinator) -> None:
        if coordinator.transactions:
            _log.info("loaded %d ids of %s", len(coordinator.transactions), self.name)
        self._carry_out(coordinator.start())

    def forsake(self, _coordinator: Coordinator | None, code: ErrorCode) -> None:
        waiting, self._parked = self._parked, {}
        for parked in (each for room in waiting.values() for each in room):
            self._purgatory.cancel(parked.deadline)
            parked.ticket.fail(code)

    # Hot: once per command.
    def run(
        self, transactional_id: str, ticket: Ticket, command: Command, *, patience_ms: int
    ) -> None:
        """Carry a command out, and answer it.

        Where only the markers of the transaction before are in its way, it is tried again when
        they are written, for `patience_ms`. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS).
        """
        decision = command(self.loaded(), ticket, self._clock.now_ms())
        if decision.waits and patience_ms > 0:
            replies, decision.replies = decision.replies, []
            if decision.records and not self._carry_out(decision):
                return
            parked = _Parked(ticket, command, replies)
            parked.deadline = self._purgatory.schedule(
                patience_ms, lambda: self._lose_patience(transactional_id, parked)
            )
            self._parked.setdefault(transactional_id, []).append(parked)
        else:
            self._carry_out(decision)

    def upkeep(self, upkeep: Upkeep) -> None:
        """Do what nobody asked for: aborts of what takes too long, and expiry."""
        if self.coordinator is not None:
            self._carry_out(upkeep(self.coordinator, self._clock.now_ms()))

    def _carry_out(self, decision: Decision) -> bool:
        """Append, apply, answer; False where the records could not be appended."""
        if decision.records and not self._write(decision):
            return False
        if decision.replies:
            give_when_committed(
                decision.replies, self.partition, self._purgatory, self._commit_timeout_ms
            )
        if decision.markers:
            markers = list(decision.markers)
            self._when_committed(self.partition.log_end_offset, lambda: self._mark(markers))
        return True

    def _write(self, decision: Decision) -> bool:
        """Append and apply the records; False where that failed and everyone was told so."""
        assert self.coordinator is not None
        encoded = [encode(record) for record in decision.records]
        appended = False
        max_bytes = self.partition.config.max_message_bytes
        try:
            for record, (_, value) in zip(decision.records, encoded, strict=True):
                _check_size(record, value, max_bytes)
            for batch in split(encoded, max_bytes):
                self.partition.append_internal(batch)
                appended = True
        except OttlaError as error:
            _log.error("cannot write to %s: %s", self.name, error)
            code = APPEND_FAILURES.get(error.code, error.code)
            if error.code in TOO_LARGE:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
            fail(decision.replies, code)
            if appended:
                # Half of the records cannot be taken back.
                self.reload()
            return False
        for record in decision.records:
            self.coordinator.apply(record)
        return True

    def _when_committed(self, end: int, then: Callable[[], None]) -> None:
        """Do something once everything below `end` is committed, unless that is given up."""
        term = self.coordinator

        def on_reached(code: ErrorCode) -> None:
            if self.closed or self.coordinator is not term:
                return
            if code is ErrorCode.NONE:
                then()
            else:
                # Too few replicas are in sync for now, or it is not certain that this one leads.
                self._purgatory.schedule(_LOOK_AGAIN_MS, lambda: self._when_committed(end, then))

        self.partition.on_high_watermark(end, on_reached)

    def _mark(self, markers: list[Markers]) -> None:
        for each in markers:
            self._send_markers(self, each, partial(self._on_marked, each))

    def _on_marked(self, markers: Markers) -> None:
        coordinator = self.coordinator
        if self.closed or coordinator is None:
            return
        decision = coordinator.complete(markers, self._clock.now_ms())
        if not self._carry_out(decision):
            # The log takes nothing for the moment; the markers stand.
            self._purgatory.schedule(_LOOK_AGAIN_MS, lambda: self._on_marked(markers))
            return
        for parked in self._parked.pop(markers.transactional_id, ()):
            self._purgatory.cancel(parked.deadline)
            try:
                # Once more only: then the client asks again.
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


def _check_size(record: TransactionRecord, value: bytes | None, max_bytes: int) -> None:
    """Refuse to let a transaction grow beyond what a message may be; its end is always taken."""
    changed = record.transaction
    if value is not None and len(value) > max_bytes:
        assert changed is not None
        if changed.state is TransactionState.ONGOING:
            raise OttlaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{record.transactional_id!r} would have {len(changed.partitions)} partitions in "
                f"one transaction, {len(value)} bytes; end it earlier, or raise max.message.bytes "
                f"of __transaction_state ({max_bytes})",
            )


class _Parked:
    """A command that waits for the end of the transaction before."""

    __slots__ = ("command", "deadline", "replies", "ticket")

    deadline: Deadline

    def __init__(self, ticket: Ticket, command: Command, replies: list[Reply]) -> None:
        self.ticket = ticket
        self.command = command
        # For those who do not want to wait any more.
        self.replies = replies
