"""Applies retention: waits for readers, writes deletions to the ledger, then deletes segments.

Readers are the groups in `ottla.retention.hold.groups`. In a partition with readers, the leader
decides, and followers delete only what their leader has deleted.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.log_lines import Seldom
from ottla.base.quantities import span_words
from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals, write_ledger
from ottla.broker.retention.readers import UNKNOWN, Readers
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.broker.runtime.view import ClusterView
from ottla.broker.usage.table import PRODUCE, UsageTable
from ottla.metadata.decisions import Decision, DecisionKind, Decisions
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import DiskFull, StorageError, storage_error
from ottla.storage.log.log import Log
from ottla.storage.log.retention import (
    Hold,
    Verdict,
    delete_old_segments,
    hold,
    note_old_segments,
    old_segments,
)

_log = logging.getLogger(__name__)

# Segments whose files are renamed in one turn of the loop: 0.2 ms each.
_SLICE = 32
_SPACE_CHECK_MS = 1000
_TIMESTAMP_CHECK_MS = 10_000
_DAY_MS = 86_400_000
# A topic whose records arrive nearly expired is reported this often.
_EXPIRED_INTERVAL_MS = 600_000


@dataclass(frozen=True, slots=True)
class RetentionPartStatus:
    """Counts of records kept beyond retention because readers still need them."""

    held_partitions: int
    held_bytes: int
    # How many times a partition was found whose newest records are deleted soon after they arrive,
    # because of their timestamps.
    born_expired: int


class RetentionKeeper(BrokerPart):
    """Applies retention to all partitions of a broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        view: ClusterView,
        partitions: Partitions,
        directories: LogDirectories,
        removals: Removals,
        decisions: Decisions,
        readers: Readers,
        users: UsageTable,
    ) -> None:
        self._settings = settings
        self._partitions = partitions
        self._directories = directories
        self._chores = Chores()
        self._view = view
        self._runtime = runtime
        self._decisions = decisions
        self._removals = removals
        self.readers = readers
        self._users = users
        # The log end offsets at the last check of timestamps.
        self._checked: dict[Partition, int] = {}
        self._born_expired = 0
        self._seldom = Seldom(_EXPIRED_INTERVAL_MS)
        # For each segment, by base offset, the time since which retention would delete it.
        self._wanted_since: dict[Partition, dict[int, int]] = {}
        # The partitions with held segments, and the committed offset of each of their readers.
        self.held: dict[Partition, tuple[Hold, dict[str, int]]] = {}

    def begin(self) -> None:
        """Start applying retention at intervals, and at once if a disk is short of space."""
        interval_ms = self._settings.integer("log.retention.check.interval.ms")
        self._chores.every(interval_ms, self.apply_retention)
        self._chores.every(_SPACE_CHECK_MS, self.make_room)
        self._chores.every(_TIMESTAMP_CHECK_MS, self.check_timestamps)

    async def stop(self) -> None:
        self.readers.close()
        await self._chores.stop()

    def status(self) -> RetentionPartStatus:
        return RetentionPartStatus(
            len(self.held),
            sum(held.held_bytes for held, _ in self.held.values()),
            self._born_expired,
        )

    async def apply_retention(self) -> None:
        """Apply retention to all partitions."""
        now_ms = self._runtime.clock.now_ms()
        self._keep_only(self._partitions)
        for partition in self._partitions:
            try:
                await self._apply_with_ballast(partition, now_ms)
            except StorageError as error:
                self._partitions.on_storage_error(partition, error)
            await asyncio.sleep(0)

    async def check_timestamps(self) -> None:
        """Report partitions whose new records retention deletes soon, because of their timestamps.

        A segment goes when its newest timestamp is too old. So only the newest one of the active
        segment is looked at, and only if something was appended since the last check.
        """
        now_ms = self._runtime.clock.now_ms()
        checked, self._checked = self._checked, {}
        for partition in self._partitions:
            log, config = partition.log, partition.config
            end = self._checked[partition] = log.log_end_offset
            # At the first check nothing is new; later a new log is.
            before = checked.get(partition, log.log_start_offset if checked else end)
            if partition.leader is None or before == end:
                continue
            newest_ms = log.segments.active.known_max_timestamp()
            age_ms = now_ms - newest_ms
            # A time shorter than two days is halved, so that a day is not too much.
            least_ms = config.retention_ms - min(_DAY_MS, config.retention_ms // 2)
            if (
                newest_ms >= 0 <= config.retention_ms
                and age_ms > least_ms
                and "delete" in config.cleanup_policy
                and not config.retention_by_append
            ):
                self._report_born_expired(partition, age_ms, now_ms)

    def _report_born_expired(self, partition: Partition, age_ms: int, now_ms: int) -> None:
        self._born_expired += 1
        if self._seldom.admit(partition.topic, now_ms) is None:
            return
        topic, retention_ms = partition.topic, partition.config.retention_ms
        left_ms = max(0, retention_ms - age_ms)
        _log.warning(
            "%s: records that just arrived have timestamps older than %s, so retention.ms=%d"
            " deletes them %s after their arrival; they are of %s: mend the timestamps, or count"
            " from arrival (`ottla config set topic %s ottla.retention.by=append`)",
            partition.topic_partition,
            span_words(age_ms - age_ms % 1000),
            retention_ms,
            f"within {span_words(left_ms)}" if left_ms else "soon",
            self._latest_producers(topic),
            topic,
        )

    def _latest_producers(self, topic: str) -> str:
        """Name up to three client ids that produced to the topic last."""
        uses = sorted(
            (one for one in self._users if one.key[:2] == (topic, PRODUCE)),
            key=lambda one: (one.bytes != one.swept_bytes, one.last_ms),
            reverse=True,
        )
        names = [f"client {one.key.client_id!r} ({one.key.principal})" for one in uses[:3]]
        return " or ".join(names) or "an unknown client"

    async def make_room(self) -> None:
        """Apply retention and remove deleted files at once if a disk is short of space.

        On disks with room, create missing ballast files, to be given up when the disk is full.
        """
        if self._directories.is_short_of_space():
            await self.apply_retention()
            self._removals.remove_now()
        for ballast in self._directories.missing_ballast():
            await self._runtime.in_thread(ballast.make)

    def _keep_only(self, partitions: Iterable[Partition]) -> None:
        """Drop the state of all other partitions."""
        known = set(partitions)
        self.held = {one: held for one, held in self.held.items() if one in known}
        self._wanted_since = {p: since for p, since in self._wanted_since.items() if p in known}

    async def _apply_with_ballast(self, partition: Partition, now_ms: int) -> None:
        """Do as `apply`; if the disk is full, remove its ballast file and try again."""
        try:
            await self.apply(partition, now_ms)
        except DiskFull:
            if not self._directories.give_up_ballast(partition.topic_partition):
                raise
            _log.warning(
                "the disk of %s is full to its last byte, perhaps of what another program wrote: "
                "retention goes on in the room that was kept for it",
                partition.topic_partition,
            )
            await self.apply(partition, now_ms)

    async def apply(self, partition: Partition, now_ms: int) -> None:
        """Delete the segments that retention releases. Raises StorageError."""
        log = partition.log
        verdict = old_segments(log, now_ms, partition.high_watermark)
        segments, truncations = log.segments.as_list(), log.truncations
        log_end = log.log_end_offset
        readers: dict[str, int] = {}
        found = Hold(verdict.count)
        self._forget(partition)
        if verdict.count > verdict.by_start and partition.config.hold_groups:
            if partition.leader is None:
                found = Hold(verdict.by_start)
            else:
                groups = sorted(partition.config.hold_groups)
                readers = await self.readers.committed(groups, partition.topic_partition)
                found = self._hold(partition, log, verdict, readers, now_ms)
        verdict = verdict.at_most(found.count)
        if not verdict.count:
            return
        end = self._end(log, verdict)
        note_old_segments(log, verdict, now_ms)
        await write_ledger(self._runtime, log)
        start = log.log_start_offset
        while verdict.count:
            held = log.segments.as_list()
            if log.offline or log.truncations != truncations or held[: len(segments)] != segments:
                return  # The log has changed meanwhile: try again next time.
            if verdict.count == len(held) and log.log_end_offset != log_end:
                return  # The last segment was appended to meanwhile, and is not old any more.
            some = verdict.at_most(min(verdict.count, _SLICE))
            for deletion in delete_old_segments(log, now_ms, partition.high_watermark, some):
                self._removals.remove_later(deletion)
            verdict, segments = verdict.without(some.count), segments[some.count :]
            await asyncio.sleep(0)
        if partition.config.hold_groups and partition.leader is not None:
            partition.notify_log_start()
        if found.setting:
            self._report_unread(partition, readers, start, end, found.setting, now_ms)

    @staticmethod
    def _end(log: Log, verdict: Verdict) -> int:
        """Return the end offset of the segments to delete."""
        if verdict.count < len(log.segments):
            return log.segments[verdict.count].base_offset
        return log.log_end_offset

    def _forget(self, partition: Partition) -> None:
        """Drop a partition's hold."""
        self.held.pop(partition, None)
        if not partition.config.hold_groups:
            self._wanted_since.pop(partition, None)

    def _hold(
        self,
        partition: Partition,
        log: Log,
        verdict: Verdict,
        readers: dict[str, int],
        now_ms: int,
    ) -> Hold:
        wanted = [segment.base_offset for segment in log.segments.as_list()[: verdict.count]]
        known = self._wanted_since.get(partition, {})
        since = {base: known.get(base, now_ms) for base in wanted}
        self._wanted_since[partition] = since
        try:
            found = hold(
                log.segments.as_list(),
                verdict,
                min(readers.values()),
                partition.config,
                since,
                log_end_offset=log.log_end_offset,
                now_ms=now_ms,
            )
        except OSError as error:
            raise storage_error(error, log.folder, "look for old segments") from error
        if found.held_bytes:
            self.held[partition] = (found, readers)
        return found

    def _report_unread(
        self,
        partition: Partition,
        readers: dict[str, int],
        start: int,
        end: int,
        setting: str,
        now_ms: int,
    ) -> None:
        """Log and record the groups that lose unread records because the limit `setting` is hit."""
        for group, committed in readers.items():
            first = max(start, committed)
            if first >= end:
                continue
            stands = "has committed nothing" if committed == UNKNOWN else f"stands at {committed}"
            cause = f"offsets {first} to {end} are deleted, which group {group} has not read"
            evidence = f"retention waited for it; it {stands}, and {setting} is reached"
            _log.warning("%s: %s: %s", partition.topic_partition, cause, evidence)
            self._decisions.record(
                Decision(
                    DecisionKind.DELETED_UNREAD,
                    partition.topic_partition,
                    self._view.broker_id,
                    partition.leader_epoch,
                    cause,
                    evidence,
                    setting,
                    now_ms,
                )
            )
