"""One share partition on this broker, the partition's leader.

The core in `ottla.share.partition` decides; this module reads the log, sets the timer of the
acquisition locks and writes the state. One write is in progress at a time, and changes that arrive
meanwhile go into the next one. An acknowledgement is answered when it is written. If a write fails,
its acknowledgements get an error, and the share partition is closed and loaded again, so acquired
records are delivered again.
"""

import logging
from collections.abc import Callable, Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.waiters import Waiter
from ottla.broker.runtime.purgatory import Deadline
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.dead_letters import DeadLetterSender, DeadLetterWriter
from ottla.broker.share.group_settings import ShareGroupConfig, ShareGroupSettings
from ottla.broker.share.messages import INITIALIZE, READ, WRITE, Begin
from ottla.broker.share.persister import AssignmentLookup, Persister
from ottla.broker.share.portion import Portion, count_bytes, first_offset, read_portion
from ottla.share.coordinator import KeyAnswer, Write
from ottla.share.deliveries import Acknowledged, Acquired
from ottla.share.partition import SharePartition
from ottla.share.records import UNKNOWN, ShareKey, ShareState

_log = logging.getLogger(__name__)

# Called with an error code, which may be NONE, and its message.
OnDone = Callable[[ErrorCode, str | None], None]

# How long the share coordinator may be unavailable before the share partition is closed.
_PATIENCE_MS = 15_000
_LOST = "the broker closed the share partition: acquired records are delivered again, fetch again"


class ServedPartition:
    """One share partition. It delivers no records until its state is loaded; then it wakes fetches.

    `on_closed` is called once, when the share partition is closed for any reason, and
    `on_redelivered` with the number of records that are delivered again.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: ShareGroupSettings,
        persister: Persister,
        lookup: AssignmentLookup,
        dead_letters: DeadLetterSender,
        key: ShareKey,
        partition: Partition,
        on_closed: Callable[["ServedPartition"], None],
        on_redelivered: Callable[[int], None],
    ) -> None:
        self.key = key
        self.partition = partition
        # The leader epoch in which the state was loaded. In another epoch it is loaded again.
        self.leader_epoch = partition.leader_epoch
        self.waiters: dict[Waiter, None] = {}
        # The error of a failed load. The next fetch gets it; the fetch after that loads again.
        self.error: OttlaError | None = None
        self.core: SharePartition | None = None
        self._runtime = runtime
        self._settings = settings
        self._persister = persister
        self._lookup = lookup
        self._on_closed = on_closed
        self._on_redelivered = on_redelivered
        self._state_epoch = 0
        self._writing = False
        self._closed = False
        self._retiring = False
        # Callbacks of acknowledgements that are not part of a write yet.
        self._waiting: list[OnDone] = []
        self._timer: Deadline | None = None
        self._letters = DeadLetterWriter(
            runtime, settings, dead_letters, key.group_id, partition, self._on_letters
        )

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads, in the leader epoch in which the state was loaded."""
        partition = self.partition
        return (
            not self._closed
            and partition.leader is not None
            and partition.leader_epoch == self.leader_epoch
        )

    def start(self) -> None:
        """Load the state in the background, then deliver records."""
        self._runtime.spawn(self._load())

    def retain(self) -> None:
        """Undo `retire`, because the group has a session on this broker again."""
        self._retiring = False

    def retire(self) -> None:
        """Close as soon as all changes are written: the group has no more sessions here."""
        self._retiring = True
        self._end_if_done()

    def close(self, code: ErrorCode, message: str = _LOST) -> None:
        """Stop delivering records, and fail waiting acknowledgements with `code`."""
        if self._closed:
            return
        self._closed = True
        self.core = None
        self._letters.close()
        if self._timer is not None:
            self._runtime.purgatory.cancel(self._timer)
            self._timer = None
        self._on_closed(self)
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(code, message)
        self._wake()

    # Hot: once per partition of a share fetch.
    def acquire(
        self,
        member_id: str,
        max_bytes: int,
        max_records: int,
        *,
        strict: bool,
        batch_size: int,
    ) -> tuple[Portion, list[Acquired]] | None:
        """Acquire records for a member; None if there are none now. Raises OttlaError."""
        core = self.core
        if core is None:
            error, self.error = self.error, None
            if error is not None:
                self.close(error.code, error.message)
                raise error
            return None
        config = self._config()
        core.limits = config.limits
        core.on_log_start(self.partition.log_start_offset)
        while (offset := core.next_offset()) is not None:
            portion = read_portion(self.partition, offset, max_bytes, committed=config.committed)
            if not portion.found:
                return None
            now_ms = self._runtime.clock.monotonic_ms()
            given = core.acquire(
                member_id,
                offset,
                portion.found,
                max_records,
                now_ms,
                strict=strict,
                batch_size=batch_size,
            )
            if given:
                again = sum(each.last - each.first + 1 for each in given if each.delivery_count > 1)
                if again:
                    self._on_redelivered(again)
                self._arm()
                return portion, given
            if core.next_offset() == offset:
                return None
            # Only control and aborted batches, which are archived now: continue after them.
        return None

    def is_enough(self, wanted: int) -> tuple[bool, int]:
        """Return whether to call `acquire` now, and the number of bytes available.

        The first is True if at least `wanted` bytes are available, or if loading failed. Raises
        OttlaError.
        """
        core = self.core
        if core is None:
            return self.error is not None, 0
        config = self._config()
        core.limits = config.limits
        core.on_log_start(self.partition.log_start_offset)
        found = count_bytes(self.partition, core.available(), wanted, committed=config.committed)
        return found >= wanted, found

    def acknowledge(self, member_id: str, batches: Iterable[Acknowledged], on_done: OnDone) -> None:
        """Apply acknowledgements; `on_done` is called when they are written or have failed."""
        core = self.core
        if core is None:
            on_done(ErrorCode.INVALID_RECORD_STATE, _LOST)
            return
        core.limits = self._config().limits
        now_ms = self._runtime.clock.monotonic_ms()
        try:
            core.acknowledge(member_id, batches, now_ms)
        except OttlaError as error:
            on_done(error.code, error.message)
            return
        self._waiting.append(on_done)
        self._write()
        self._arm()
        self._wake()

    def release_all(self, member_id: str) -> None:
        """Release all records that a member has acquired."""
        if self.core is None:
            return
        self.core.limits = self._config().limits
        if self.core.release_all(member_id):
            self._write()
            self._wake()

    def _config(self) -> ShareGroupConfig:
        return self._settings.config(self.key.group_id)

    async def _load(self) -> None:
        """Load the state. If it has no start offset, share.auto.offset.reset determines one."""
        try:
            state, was_lost = await self._read_state()
            self._state_epoch = state.state_epoch
            start = state.start_offset
            if start == UNKNOWN:
                now_ms = self._runtime.clock.now_ms()
                start = first_offset(self.partition, self._config().reset, now_ms)
                # Write the start offset before any record is delivered, so that the next leader
                # uses the same one.
                write = Write(state.state_epoch, self.leader_epoch, start, 0, ())
                noted = await self._persister.ask_one(
                    WRITE, self.key, write, patience_ms=_PATIENCE_MS
                )
                if noted.code is not ErrorCode.NONE:
                    raise OttlaError(
                        noted.code, noted.message or "its start offset cannot be written"
                    )
            if was_lost:
                self._warn_lost(start, is_known=state.start_offset != UNKNOWN)
            if not self._closed:
                self.core = SharePartition(self._config().limits, start, state.batches)
                self.core.on_log_start(self.partition.log_start_offset)
                self._letters.add(self.core.archiving())
                self._write()
        except OttlaError as error:
            _log.warning("cannot serve %s to a share group: %s", self._name, error.message)
            self.error = OttlaError(as_fetched(error.code), error.message)
        self._wake()
        self._end_if_done()

    async def _read_state(self) -> tuple[ShareState, bool]:
        """Return the state, and whether it was lost and initialized again. Raises OttlaError."""
        answered = await self._ask_state()
        was_lost = False
        if answered.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            epoch = await self._lookup.epoch_of(self.key)
            if epoch is not None:
                begun = await self._persister.ask_one(
                    INITIALIZE, self.key, Begin(epoch), patience_ms=_PATIENCE_MS
                )
                was_lost = begun.code is ErrorCode.NONE
                answered = await self._ask_state() if was_lost else begun
        state = answered.state
        if answered.code is not ErrorCode.NONE or state is None:
            why = answered.message or "its share coordinator does not answer: ottla cluster health"
            raise OttlaError(answered.code, f"its share state cannot be read: {why}")
        return state, was_lost

    async def _ask_state(self) -> KeyAnswer:
        return await self._persister.ask_one(
            READ, self.key, self.leader_epoch, patience_ms=_PATIENCE_MS
        )

    def _warn_lost(self, start: int, *, is_known: bool) -> None:
        source = "the records that can be read" if is_known else "share.auto.offset.reset"
        _log.warning(
            "the share state of group %s, topic %s, partition %d was lost: a record of "
            "__share_group_state could not be read. The group starts again at offset %d, by %s: "
            "records from there on may be delivered again, records before it are not; to start "
            "elsewhere: ottla group reset",
            self.key.group_id,
            self.partition.topic_partition.topic,
            self.key.partition,
            start,
            source,
        )

    @property
    def _name(self) -> str:
        return f"{self.partition.topic_partition} of group {self.key.group_id}"

    def _write(self) -> None:
        """Start writing all changes, unless a write is in progress."""
        core = self.core
        if core is None or self._writing:
            return
        if core.has_changes:
            self._writing = True
            self._runtime.spawn(self._write_all())
        else:
            # There is nothing to write: acknowledgements only renewed locks or changed no state.
            waiting, self._waiting = self._waiting, []
            for on_done in waiting:
                on_done(ErrorCode.NONE, None)

    async def _write_all(self) -> None:
        while self.core is not None and self.core.has_changes:
            start, batches, complete, letters = self.core.changes()
            waiting, self._waiting = self._waiting, []
            answered = await self._persister.ask_one(
                WRITE,
                self.key,
                Write(self._state_epoch, self.leader_epoch, start, complete, batches),
                patience_ms=_PATIENCE_MS,
            )
            code = answered.code
            if code is not ErrorCode.NONE:
                _log.warning(
                    "cannot write the share state of %s, whose acquired records are delivered "
                    "again: %s",
                    self._name,
                    answered.message or code.name,
                )
            for on_done in waiting:
                on_done(_as_acknowledged(code), answered.message)
            if code is not ErrorCode.NONE:
                self._writing = False
                self.close(_as_acknowledged(code))
                return
            self._letters.add(letters)
        self._writing = False
        # Answers acknowledgements that arrived during the write and changed nothing.
        self._write()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._retiring and not self._writing and not self._closed and self._letters.is_idle:
            if self.core is not None and self.core.has_changes:
                self._write()
            else:
                self.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _arm(self) -> None:
        """Set the timer to fire when the first acquisition lock expires, or earlier."""
        next_ms = None if self.core is None else self.core.next_deadline_ms()
        if next_ms is None:
            return
        if self._timer is not None:
            if self._timer.at_ms <= next_ms:
                return
            self._runtime.purgatory.cancel(self._timer)
        delay_ms = next_ms - self._runtime.clock.monotonic_ms()
        self._timer = self._runtime.purgatory.schedule(delay_ms, self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        if self.core is not None:
            self.core.limits = self._config().limits
            if self.core.expire(self._runtime.clock.monotonic_ms()):
                self._write()
                self._wake()
        self._arm()

    def _on_letters(self, first: int, last: int) -> None:
        """Archive records whose dead letters are written or given up."""
        if self.core is not None:
            self.core.archive(first, last)
            self._write()
            # The window may have room for more records.
            self._wake()

    def _wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.wake()


def as_fetched(code: ErrorCode) -> ErrorCode:
    """Return the ShareFetch error code for an error of the share coordinator.

    Clients retry after these codes, but raise most other codes to the application.
    """
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return code
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _as_acknowledged(code: ErrorCode) -> ErrorCode:
    """Return the error code of an acknowledgement for an error of the share coordinator."""
    if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_CONFIG):
        return code
    if code in (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.INVALID_REQUEST):
        return ErrorCode.INVALID_RECORD_STATE
    if code is ErrorCode.FENCED_LEADER_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
