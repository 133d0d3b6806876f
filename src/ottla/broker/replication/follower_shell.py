"""Applies a leader's answers to this follower's partitions."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removals import Removals
from ottla.broker.replication.ledger_news import gone_of
from ottla.broker.replication.source_link import Spawn
from ottla.broker.replication.throttles import ReplicaThrottle
from ottla.ledger.history import Loss, StartCause
from ottla.metadata.decisions import Decision, Recorder
from ottla.quota.replication import UNLIMITED
from ottla.replica.effects import (
    AdvanceHighWatermark,
    AdvanceLogStart,
    Append,
    FollowerEffect,
    RestartAt,
    TruncateTo,
)
from ottla.replica.follower import Follower
from ottla.replica.registration import OwnRegistration, Registration
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import DiskFull, StorageError
from ottla.storage.log.truncation import begin_within
from ottla.wire.messages.fetch import PartitionData

Taken = Callable[[Partition], None]


@dataclass(slots=True, eq=False)
class _Held:
    partition: Partition
    follower: Follower
    data: PartitionData
    floor: int
    taken: Taken


class Cuts:
    """Truncations that wait until a lower recovery-point checkpoint is written.

    `take` applies an answer; `fail` is called instead if the checkpoint cannot be written.
    """

    def __init__(
        self,
        directories: LogDirectories,
        spawn: Spawn,
        *,
        take: Callable[[Partition, PartitionData], None],
        fail: Callable[[Partition, StorageError], None],
    ) -> None:
        self._directories = directories
        self._spawn = spawn
        self._take = take
        self._fail = fail
        # The newest answer of each partition, and the answers whose checkpoint is being written.
        self._held: dict[TopicPartition, _Held] = {}
        self._next: dict[LogDirectory, list[_Held]] = {}

    def must_wait(self, partition: Partition, floor: int) -> bool:
        """Whether the log's recovery-point checkpoint must be lowered to `floor` first."""
        name = partition.topic_partition
        return name in self._held or not self._directories.is_low(name, floor)

    def hold(self, partition: Partition, floor: int, data: PartitionData, taken: Taken) -> None:
        """Keep the answer until the checkpoint is at or below `floor`; then apply it.

        `taken` is called afterwards.
        """
        follower = partition.follower
        assert follower is not None
        name = partition.topic_partition
        home = self._directories.hold_down(name, floor)
        held = self._held[name] = _Held(partition, follower, data, floor, taken)
        group = self._next.setdefault(home, [])
        group.append(held)
        if len(group) == 1:
            asyncio.get_running_loop().call_soon(self._begin, home)

    def _begin(self, home: LogDirectory) -> None:
        self._spawn(self._write(home, self._next.pop(home)))

    async def _write(self, home: LogDirectory, group: list[_Held]) -> None:
        job = home.prepare_checkpoints({})
        failure: StorageError | None = None
        try:
            if home.filesystem.in_memory:
                job.run()
            else:
                await asyncio.get_running_loop().run_in_executor(None, job.run)
        except StorageError as error:
            failure = error
        if failure is None:
            home.checkpoints.note_lowered(held.partition.topic_partition for held in group)
        for held in group:
            self._release(held, home, failure)

    def _release(self, held: _Held, home: LogDirectory, failure: StorageError | None) -> None:
        partition, name = held.partition, held.partition.topic_partition
        if self._held.get(name) is not held:
            return  # An answer of a later leader epoch has replaced this one.
        del self._held[name]
        try:
            if partition.follower is held.follower:
                if failure is not None:
                    self._fail(partition, failure)
                elif self._directories.home(name) is not home:
                    self.hold(partition, held.floor, held.data, held.taken)
                    return
                else:
                    self._take(partition, held.data)
        finally:
            if name not in self._held:
                self._directories.let_go(name)
        held.taken(partition)


_log = logging.getLogger(__name__)

# The first wait after a refused fetch; it doubles up to replica.fetch.backoff.ms.
FIRST_RETRY_MS = 20

# Errors that are normal until all brokers have the new metadata, so they are not logged here.
_PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class FollowerShell:
    """Carries out the decisions of `replica.follower.Follower`."""

    def __init__(
        self,
        directories: LogDirectories,
        own: OwnRegistration,
        recorder: Recorder,
        throttle: ReplicaThrottle,
        clock: Clock,
        spawn: Spawn,
        removals: Removals,
        *,
        retry_ms_max: int,
    ) -> None:
        self._directories = directories
        self._own = own
        self._recorder = recorder
        self._throttle = throttle
        self._clock = clock
        self._removals = removals
        self._retry_ms_max = retry_ms_max
        self._cuts = Cuts(directories, spawn, take=self._take, fail=self._cannot_cut)

    @property
    def registration(self) -> Registration:
        """The broker's registration; fetches carry its broker id and epoch."""
        return self._own.current

    # Hot: once per partition of a fetch.
    def room(self, partition: Partition) -> int:
        """Bytes of a partition that may be fetched now; 0 if it is throttled."""
        throttle = self._throttle
        if not throttle.is_on or not throttle.covers(partition, self.registration.broker_id):
            return UNLIMITED
        return throttle.available()

    @property
    def held_ms(self) -> int:
        """Milliseconds until the throttle allows more."""
        return self._throttle.wait_ms()

    # Hot: once per partition of an answer.
    def take(self, partition: Partition, data: PartitionData, taken: Taken) -> None:
        """Apply an answer, unless it belongs to no fetch in flight.

        An answer that truncates the log may be applied later; `taken` is called after that.
        """
        if data.error_code or data.diverging_epoch.end_offset >= 0:
            floor = _floor(partition, data)
            if floor is not None and self._cuts.must_wait(partition, floor):
                self._cuts.hold(partition, floor, data, taken)
                return
        self._take(partition, data)

    # Hot: once per partition of an answer.
    def _take(self, partition: Partition, data: PartitionData) -> None:
        follower = partition.follower
        assert follower is not None
        now_ms = self._clock.monotonic_ms()
        effects: tuple[FollowerEffect, ...]
        if data.error_code:
            code = ErrorCode(data.error_code)
            # The core matches the answer by its nonce. Its own epoch is passed, because an error
            # often comes from a leader in another epoch.
            effects = follower.on_error(
                data.nonce, follower.leader_epoch, code, data.log_start_offset, now_ms=now_ms
            )
            if code not in _PASSING:
                _log.warning("%s: the leader answers %s", partition.topic_partition, code.name)
            follower.retry_ms = min(follower.retry_ms * 2, self._retry_ms_max)
        elif data.diverging_epoch.end_offset >= 0:
            diverging = data.diverging_epoch
            effects = follower.on_diverging(
                data.nonce,
                data.current_leader.leader_epoch,
                diverging.epoch,
                diverging.end_offset,
                now_ms=now_ms,
            )
        else:
            follower.retry_ms = FIRST_RETRY_MS
            effects = follower.on_records(
                data.nonce,
                data.current_leader.leader_epoch,
                data.high_watermark,
                data.log_start_offset,
                empty=not data.records,
            )
        if effects:
            _learn(partition, data)
            try:
                self._carry_out(partition, effects, data)
            except StorageError as error:
                partition.on_storage_error(error)
                self._back_off(partition)

    def _carry_out(
        self, partition: Partition, effects: tuple[FollowerEffect, ...], data: PartitionData
    ) -> None:
        for effect in effects:
            match effect:
                case Append():
                    self._append(partition, data)
                case AdvanceHighWatermark():
                    partition.advance(effect.high_watermark)
                case AdvanceLogStart():
                    self._advance_log_start(partition, effect.offset)
                case TruncateTo():
                    self._truncate(partition, effect.end_offset)
                case RestartAt():
                    self._restart(partition, effect.offset)
                case Decision():
                    self._recorder.record(effect)
                case _:
                    assert_never(effect)

    def _append(self, partition: Partition, data: PartitionData) -> None:
        follower = partition.follower
        assert follower is not None
        records = data.records
        assert isinstance(records, (bytes, bytearray, memoryview)), "a received message holds bytes"
        if self._throttle.is_on and self._throttle.covers(partition, self.registration.broker_id):
            self._throttle.record(len(records))
        try:
            for deletion in begin_within(partition.log, records, self._clock.now_ms()):
                self._removals.remove_later(deletion)
            partition.append_as_follower(records, self._clock.now_ms())
            follower.is_full = False
        except OttlaError as error:
            follower.is_full = isinstance(error, DiskFull)
            # The next fetch asks again for the records that could not be appended.
            if not isinstance(error, StorageError):
                _log.error("%s: %s", partition.topic_partition, error.message)
            self._back_off(partition)
        if partition.follower is follower:
            self._carry_out(partition, follower.on_appended(), data)

    def _advance_log_start(self, partition: Partition, offset: int) -> None:
        partition.log.advance_log_start(offset, StartCause.LEADER, self._clock.now_ms())

    def _truncate(self, partition: Partition, end_offset: int) -> None:
        follower = partition.follower
        assert follower is not None
        lost_end, lost_epoch = _lost_end(partition, follower)
        deletions = self._directories.truncate(
            partition.topic_partition, end_offset, self._clock.now_ms()
        )
        end = partition.log_end_offset
        loss = Loss(end, lost_end, lost_epoch, self._clock.now_ms())
        partition.log.ledger.history.lose(loss)
        partition.lower_high_watermark(min(follower.high_watermark, partition.log_end_offset))
        for deletion in deletions:
            self._removals.remove_later(deletion)

    def _restart(self, partition: Partition, offset: int) -> None:
        deletions = self._directories.restart(
            partition.topic_partition, offset, self._clock.now_ms()
        )
        partition.high_watermark = offset
        # The new log start must be durable before the follower reports any record as held.
        partition.flush_soon()
        for deletion in deletions:
            self._removals.remove_later(deletion)

    def _cannot_cut(self, partition: Partition, error: StorageError) -> None:
        """Continue as if no answer had come, because the checkpoint could not be written."""
        follower = partition.follower
        assert follower is not None
        follower.on_no_answer(follower.nonce, now_ms=self._clock.monotonic_ms())
        partition.on_storage_error(error)
        self._back_off(partition)

    def _back_off(self, partition: Partition) -> None:
        """Delay the next fetch after a local error, twice as long after each error in a row."""
        follower = partition.follower
        if follower is not None:
            follower.retry_at_ms = self._clock.monotonic_ms() + follower.retry_ms
            follower.retry_ms = min(follower.retry_ms * 2, self._retry_ms_max)


def _lost_end(partition: Partition, follower: Follower) -> tuple[int, int]:
    """Return the offset below which truncated records may be committed, and the leader epoch.

    After an unclean election it is the log end offset, because the new leader may lack committed
    records. Otherwise it is the high watermark.
    """
    unclean_epoch = -1 if partition.image is None else partition.image.unclean_epoch
    if unclean_epoch > follower.last_fetched_epoch:
        return partition.log_end_offset, unclean_epoch
    return min(partition.high_watermark, partition.log_end_offset), follower.leader_epoch


def _learn(partition: Partition, data: PartitionData) -> None:
    """Enter into the ledger the offsets that the leader reports as deleted or lost."""
    history = partition.log.ledger.history
    history.compacted_to(data.compacted_below)
    for deleted in data.deleted:
        history.learn(gone_of(deleted))


def _floor(partition: Partition, data: PartitionData) -> int | None:
    """Return the lowest offset to which an answer may truncate the log; None if it does not."""
    follower = partition.follower
    if follower is None or data.nonce != follower.nonce:
        return None
    if data.error_code:
        if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE or data.log_start_offset < 0:
            return None
        return min(partition.log_start_offset, data.log_start_offset)
    return follower.parting(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)[0]
