"""The offset checkpoints of one log directory: their values, and upper limits for these.

Recovery points, high watermarks and log start offsets are written together, the offsets of the
compactor separately. A checkpoint must never promise more of a log than the disk holds. So it is
lowered before a truncation, and its values are removed before a new log of the same name begins.
"""

from collections.abc import Collection, Iterable, Mapping

from ottla.base.ids import TopicPartition
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CheckpointJob,
    CheckpointOrder,
    decode_offsets,
)
from ottla.storage.files.offset_ledger import LedgerJob
from ottla.storage.log.log import Log


class Checkpoints:
    """The checkpoints of the log directory at `path`."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        """Read the checkpoints. Raises OSError."""
        self._filesystem = filesystem
        self._path = path
        self.recovery_points = self._offsets(RECOVERY_POINTS)
        self.high_watermarks = self._offsets(HIGH_WATERMARKS)
        self.log_starts = self._offsets(LOG_START_OFFSETS)
        # The offset up to which compaction has cleaned each log.
        self.cleaned = self._offsets(CLEANED_OFFSETS)
        # For logs about to be truncated, the highest offset that their checkpoints may have.
        self._floors: dict[TopicPartition, int] = {}
        # Logs whose checkpoint on the disk may still be above the limit in `_floors`.
        self._unsure: set[TopicPartition] = set()
        self._order, self._cleaned_order = CheckpointOrder(), CheckpointOrder()
        # Partitions whose values were forgotten, and the last job that may still hold them.
        self._forgotten: dict[TopicPartition, int] = {}
        self._forgotten_cleaned: dict[TopicPartition, int] = {}
        # The ledgers of the last periodic checkpoint, written before its log start offsets.
        self._ledgers: list[LedgerJob] = []

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        """Read a checkpoint. An unreadable one is treated as missing; recovery then reads more."""
        try:
            return decode_offsets(self._filesystem.read_bytes(f"{self._path}/{name}"))
        except (FileNotFoundError, ValueError):
            return {}

    def is_promised(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint says that a log with records exists."""
        return bool(self.recovery_points.get(partition) or self.log_starts.get(partition))

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions that a checkpoint names."""
        return {*self.recovery_points, *self.high_watermarks, *self.log_starts, *self.cleaned}

    def is_low(self, partition: TopicPartition, offset: int) -> bool:
        """Whether an open log's recovery-point checkpoint on the disk is at or below `offset`."""
        is_sure = partition not in self._unsure and self.is_forgotten(partition)
        return is_sure and self.recovery_points.get(partition, 0) <= offset

    def hold_down(self, partition: TopicPartition, offset: int) -> None:
        """Limit the log's checkpoints that are prepared from now on to `offset`.

        One of them must be on the disk before the log is truncated there (`note_lowered`).
        """
        self._floors[partition] = min(offset, self._floors.get(partition, offset))
        self._unsure.add(partition)

    def note_lowered(self, partitions: Iterable[TopicPartition]) -> None:
        """Record that a checkpoint prepared since `hold_down` of these logs is on the disk."""
        self._unsure.difference_update(partitions)

    def let_go(self, partition: TopicPartition) -> None:
        """End the limit of `hold_down`, after the truncation or without one."""
        self._floors.pop(partition, None)

    def lower_cleaned(self, partition: TopicPartition, offset: int) -> None:
        """Lower the log's cleaned offset to `offset` at most."""
        if partition in self.cleaned:
            self.cleaned[partition] = min(self.cleaned[partition], offset)

    def forget(self, partition: TopicPartition, folder: str) -> None:
        """Leave the log in `folder` out of checkpoints that are prepared from now on.

        Until one is written, the checkpoints on the disk may still have values of the log, so no
        new log of that name may begin (`is_forgotten`).
        """
        found = [
            values.pop(partition, None)
            for values in (self.recovery_points, self.high_watermarks, self.log_starts)
        ]
        if any(value is not None for value in found):
            self._forgotten[partition] = self._order.prepared
        if self.cleaned.pop(partition, None) is not None:
            self._forgotten_cleaned[partition] = self._cleaned_order.prepared
        self._ledgers = [job for job in self._ledgers if not job.path.startswith(f"{folder}/")]

    def is_forgotten(self, partition: TopicPartition) -> bool:
        """Whether no checkpoint on the disk has values that were forgotten (`forget`)."""
        return not (
            _is_left(self._forgotten, partition, self._order)
            or _is_left(self._forgotten_cleaned, partition, self._cleaned_order)
        )

    def prepare_removals(self) -> list[CheckpointJob]:
        """Return the jobs that remove forgotten values from the disk, if there are such values.

        Other partitions keep the values of the last checkpoint: no log is read.
        """
        jobs = []
        _prune(self._forgotten, self._order)
        _prune(self._forgotten_cleaned, self._cleaned_order)
        if self._forgotten:
            jobs.append(self.prepare_values())
        if self._forgotten_cleaned:
            jobs.append(self.prepare_cleaned())
        return jobs

    def copy_marks(self, partition: TopicPartition, source: "Checkpoints") -> None:
        """Copy the high watermark and cleaned offset of a log that moves here from `source`."""
        for theirs, ours in (
            (source.high_watermarks, self.high_watermarks),
            (source.cleaned, self.cleaned),
        ):
            if partition in theirs:
                ours[partition] = theirs[partition]

    def prepare(
        self, logs: Mapping[TopicPartition, Log], high_watermarks: Mapping[TopicPartition, int]
    ) -> CheckpointJob:
        """Gather the values of the three checkpoints (P19).

        `logs` are the open logs; other logs keep the values that were read from the disk. The job
        writes nothing if all values are on the disk already.
        """
        # Hot: every few seconds for all logs, in one turn of the loop.
        before = self.recovery_points, self.high_watermarks, self.log_starts
        points = {partition: log.flush_state.recovery_point for partition, log in logs.items()}
        for partition, floor in self._floors.items():
            if partition in points:
                points[partition] = min(points[partition], floor)
        self.recovery_points = self.recovery_points | points
        self.high_watermarks = self.high_watermarks | {
            partition: high_watermarks[partition]
            for partition in logs
            if partition in high_watermarks
        }
        starts = {
            partition: log.log_start_offset
            for partition, log in logs.items()
            if log.log_start_offset > log.segments.first.base_offset
        }
        self.log_starts = starts | {
            partition: offset
            for partition, offset in self.log_starts.items()
            if partition not in logs
        }
        self._ledgers = _ledger_jobs(logs.values())
        is_same = before == (self.recovery_points, self.high_watermarks, self.log_starts)
        if is_same and not self._ledgers and 0 < self._order.prepared == self._order.written:
            return CheckpointJob(self._filesystem, self._path, {}, self._order, self._order.written)
        return self.prepare_values()

    def prepare_values(self) -> CheckpointJob:
        """Prepare the three checkpoints from the values gathered last; no log is read."""
        offsets = {
            RECOVERY_POINTS: self.recovery_points.copy(),
            HIGH_WATERMARKS: self.high_watermarks.copy(),
            LOG_START_OFFSETS: self.log_starts.copy(),
        }
        return self._job(offsets, self._order, list(self._ledgers))

    def prepare_cleaned(self) -> CheckpointJob:
        """Prepare the checkpoint of the offsets up to which logs are cleaned."""
        return self._job({CLEANED_OFFSETS: self.cleaned.copy()}, self._cleaned_order, [])

    def _job(
        self,
        offsets: dict[str, dict[TopicPartition, int]],
        order: CheckpointOrder,
        ledgers: list[LedgerJob],
    ) -> CheckpointJob:
        order.prepared += 1
        return CheckpointJob(self._filesystem, self._path, offsets, order, order.prepared, ledgers)


def _ledger_jobs(logs: Collection[Log]) -> list[LedgerJob]:
    """Return jobs that write the ledgers that have changed since they were last written."""
    news = [log for log in logs if log.ledger.history.changes and log.ledger.has_news]
    found = [log.ledger.job(log.filesystem, log.folder) for log in news]
    return [job for job in found if job is not None]


def _is_left(
    forgotten: Mapping[TopicPartition, int], partition: TopicPartition, order: CheckpointOrder
) -> bool:
    last = forgotten.get(partition)
    return last is not None and order.written <= last


def _prune(forgotten: dict[TopicPartition, int], order: CheckpointOrder) -> None:
    for partition in [one for one, last in forgotten.items() if order.written > last]:
        del forgotten[partition]
