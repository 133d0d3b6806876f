"""Applies a leader's answers to this follower's partitions."""

import logging
from typing import assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.own_registration import OwnRegistration
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removals import Removals
from ottla.broker.replication.cuts import Cuts, Taken
from ottla.broker.replication.ledger_news import gone_of
from ottla.broker.replication.recorder import Recorder
from ottla.broker.replication.source_link import Spawn
from ottla.broker.replication.throttles import ReplicaThrottle
from ottla.ledger.history import Loss, StartCause
from ottla.metadata.decisions import Decision
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
from ottla.replica.registration import Registration
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import DiskFull, StorageError
from ottla.storage.log.truncation import begin_within
from ottla.wire.messages.fetch import PartitionData

_log = logging.getLogger(__name__)

# The first wait after a refused fetch; it doubles up to replica.fetch.backoff.ms.
FIRST_RETRY_MS = 20

# Errors that pass while metadata spreads: logged once per partition and leader epoch.
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
        """The registration whose id and epochs the fetches carry."""
        return self._own.current

    # Hot: once per partition of a fetch.
    def room(self, partition: Partition) -> int:
        """Bytes of a partition that may be fetched now; 0 if the throttle holds it back."""
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
        """Apply an answer; one that belongs to no fetch in flight is ignored.

        An answer that truncates the log may be taken in later, and `taken` is called then.
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
            # The core matches the answer by its nonce; an error usually means another leader epoch.
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
        """After a local error, wait before the next fetch, twice as long each time."""
        follower = partition.follower
        if follower is not None:
            follower.retry_at_ms = self._clock.monotonic_ms() + follower.retry_ms
            follower.retry_ms = min(follower.retry_ms * 2, self._retry_ms_max)


def _lost_end(partition: Partition, follower: Follower) -> tuple[int, int]:
    """The offset below which truncated records may have been committed, with the leader epoch.

    After an unclean election that is the whole truncated end, for the new leader may lack committed
    records. Otherwise it is what is known to be committed.
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
    """The lowest offset to which an answer may truncate the log; None if it does not truncate."""
    follower = partition.follower
    if follower is None or data.nonce != follower.nonce:
        return None
    if data.error_code:
        if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE or data.log_start_offset < 0:
            return None
        return min(partition.log_start_offset, data.log_start_offset)
    return follower.parting(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)[0]
