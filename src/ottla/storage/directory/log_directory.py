"""One log directory: its owner, its lock, its checkpoints, and the logs that stand in it.

Files at its top, all Kafka's: `meta.properties`, `.lock`, `.kafka_cleanshutdown` (present while
stopped in order), and the three offset checkpoints.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial as given
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.storage.directory import partition_metadata
from ottla.storage.directory.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    decode_offsets,
    write_atomically,
)
from ottla.storage.directory.checkpoint_job import CheckpointJob, CheckpointOrder
from ottla.storage.directory.deletion import Deletion, Departure
from ottla.storage.directory.meta_properties import claim
from ottla.storage.directory.names import (
    DELETED_FOLDER_SUFFIX,
    deleted_folder,
    parse_deleted_folder,
    parse_partition_folder,
    stray_folder,
)
from ottla.storage.directory.run_marker import (
    RUN_MARKER,
    RunMarker,
    encode_run_marker,
    read_run_marker,
    write_run_marker,
)
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.ledger.offset_ledger import LedgerJob
from ottla.storage.log.config import LogConfig
from ottla.storage.log.log import Log
from ottla.storage.recovery.salvage import open_salvaged

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


class LogDirectory:
    """One of a broker's log directories."""

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        cluster_id: str,
        node_id: int,
        fresh_id: UUID,
        *,
        flushes_first: bool = False,
    ) -> None:
        """Lock and claim the directory, made where missing; read its checkpoints.

        `flushes_first`: nothing is acknowledged here before it is flushed.

        Raises OttlaError: see `meta_properties.claim`; StorageError where it is in use or fails.
        """
        self.filesystem = filesystem
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        # Copies of logs of other directories, on their way here.
        self.futures: dict[TopicPartition, Log] = {}
        # Logs that could not be opened, and why.
        self.refused: dict[TopicPartition, StorageError] = {}
        # Logs that are about to be cut: the checkpoint promises nothing of them from there on.
        self.floors: dict[TopicPartition, int] = {}
        # Those of which it is not known whether that stands on the disk.
        self.unsure: set[TopicPartition] = set()
        # Why the directory serves no more; empty while it does.
        self.failure = ""
        self._order, self._cleaned_order = CheckpointOrder(), CheckpointOrder()
        # Partitions whose values were forgotten, and the last job that may still hold them.
        self._forgotten: dict[TopicPartition, int] = {}
        self._forgotten_cleaned: dict[TopicPartition, int] = {}
        # Of the last periodic checkpoint: they are to be written before its log starts.
        self._ledgers: list[LedgerJob] = []
        try:
            _make_durably(filesystem, path)
            lock = filesystem.lock(f"{path}/{LOCK}")
            if lock is None:
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{path} is in use by another broker process. Stop that one, or give this "
                    "broker a data directory of its own.",
                )
            self._lock = lock
            try:
                self.directory_id = claim(
                    filesystem, path, cluster_id, node_id, fresh_id
                ).directory_id
                self._read_checkpoints()
                self._begin_run(flushes_first=flushes_first)
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise storage_error(error, path, "open the log directory") from error

    def _read_checkpoints(self) -> None:
        self.recovery_points = self._offsets(RECOVERY_POINTS)
        self.high_watermarks = self._offsets(HIGH_WATERMARKS)
        self.log_starts = self._offsets(LOG_START_OFFSETS)
        self.cleaned = self._offsets(CLEANED_OFFSETS)

    def _begin_run(self, *, flushes_first: bool) -> None:
        """Learn how the last run ended, and leave word for the one after this."""
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.was_clean = self.filesystem.exists(marker)
        page_cache_id = self.filesystem.page_cache_id(self.path)
        last = read_run_marker(self.filesystem, self.path)
        # Whether all is here that the last run acknowledged. Not so where there was none: then
        # the directory is new, and so may be the disk.
        self.kept_all = self.was_clean or (last is not None and last.kept_all(page_cache_id))
        # Whether pages that were not flushed may be missing.
        self.lost_power = not self.was_clean and not (last and last.kept_cache(page_cache_id))
        # From here on the directory is in use: a crash must not find the clean marker.
        self.filesystem.unlink(marker)
        self._run = RunMarker(page_cache_id, flushes_first)
        # Logs that are to be read as such.
        names = self.filesystem.listdir(self.path) if self.lost_power and flushes_first else []
        self._unread = {found for found in map(parse_partition_folder, names) if found}
        # What is lacking is remembered until the cluster knows of it, however often a start fails.
        unknown = RunMarker("", flushes_first=False)
        self._told = self._begun if self.kept_all else unknown
        write_run_marker(self.filesystem, self.path, self._told)
        self.filesystem.fsync_directory(self.path)

    @property
    def _begun(self) -> RunMarker:
        """Until all logs have been read after a loss of power, the next run must know of it."""
        return replace(self._run, page_cache_id="") if self._unread else self._run

    def confirm_run(self) -> None:
        """The cluster knows what is lacking here: the next run is judged by this one.

        Raises StorageError.
        """
        try:
            write_run_marker(self.filesystem, self.path, self._begun)
            self._told = self._begun
            self.filesystem.fsync_directory(self.path)
        except OSError as error:
            raise storage_error(error, self.path, "note that this broker runs") from error

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint; an unreadable one is as good as none: more is read from the logs."""
        try:
            return decode_offsets(self.filesystem.read_bytes(f"{self.path}/{name}"))
        except (FileNotFoundError, ValueError):
            return {}

    def folder_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition}"

    def folders(self) -> dict[TopicPartition, UUID | None]:
        """Partitions with a folder here and the topic ids that these say. Raises StorageError."""
        found = {}
        try:
            for name in self.filesystem.listdir(self.path):
                partition = parse_partition_folder(name)
                if partition is not None and self.filesystem.is_directory(f"{self.path}/{name}"):
                    folder = f"{self.path}/{name}"
                    found[partition] = partition_metadata.read(self.filesystem, folder)
        except OSError as error:
            raise storage_error(error, self.path, "list the logs") from error
        return found

    def leftovers(self) -> list[Deletion]:
        """Removals that an earlier run of the broker did not finish."""
        try:
            names = self.filesystem.listdir(self.path)
        except OSError as error:
            raise storage_error(error, self.path, "list the logs") from error
        return [
            Deletion(self.filesystem, [], [], 0, folder=f"{self.path}/{name}")
            for name in names
            if name.endswith(DELETED_FOLDER_SUFFIX)
        ]

    def open_log(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        *,
        producer_expiration_ms: int,
        unique: UUID,
        now_ms: int,
        salvages: bool = False,
    ) -> Log:
        """Open a partition's log; one that has no folder begins. May run in a thread of its own.

        A folder that holds another topic of that name (deleted and made again while this broker
        was away) is set aside by the suffix `-stray` and kept. With `salvages` a damaged log is
        opened without what of it cannot be read. Raises StorageError.
        """
        folder = self.folder_of(partition)
        filesystem = self.filesystem
        try:
            known = partition_metadata.read(filesystem, folder)
            if known is None and not (self._is_promised(partition) or filesystem.exists(folder)):
                self._unread.discard(partition)
                return self._begin_log(partition, topic_id, config, producer_expiration_ms, now_ms)
            damaged_id = None
            if known is not None and partition_metadata.is_damaged(known, topic_id):
                known, damaged_id = None, known
            is_stray = known is not None and known != topic_id
            if is_stray:
                filesystem.rename(folder, f"{self.path}/{stray_folder(partition, unique)}")
            if known != topic_id:
                # Nothing is made durable yet, as nothing is lost with it: the first flush of the
                # log makes this file durable, and its folder's name.
                filesystem.mkdir(folder)
                partition_metadata.write(filesystem, folder, topic_id)
        except OSError as error:
            raise storage_error(error, folder, "open the log") from error
        recovery_point = 0 if is_stray else self.recovery_points.get(partition, 0)
        open_it = given(
            Log.open,
            filesystem,
            folder,
            partition,
            config,
            log_start_offset=0 if is_stray else self.log_starts.get(partition, 0),
            # What was flushed before it was acknowledged is never cut for the sake of a leader
            # that may be nobody else.
            is_lossy=not self.kept_all and not self._run.flushes_first,
            lost_power=self.lost_power and self._run.flushes_first,
            producer_expiration_ms=producer_expiration_ms,
            now_ms=now_ms,
        )
        clean = self.was_clean and partition in self.recovery_points and not is_stray
        if salvages:
            log = open_salvaged(filesystem, folder, open_it, recovery_point, clean=clean)
        else:
            log = open_it(recovery_point=recovery_point, clean=clean)
        if damaged_id is not None:
            log.recovery.salvaged.append(
                f"{folder}: partition.metadata named topic {damaged_id} and is written anew"
            )
        self._unread.discard(partition)
        # One that never was flushed, as far as is known, may have a name in the cache alone.
        log.has_new_folder = known != topic_id or not self.recovery_points.get(partition)
        return log

    def _is_promised(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint says that there should be a log with records."""
        return bool(self.recovery_points.get(partition) or self.log_starts.get(partition))

    def _begin_log(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        producer_expiration_ms: int,
        now_ms: int,
    ) -> Log:
        log = Log.begin(
            self.filesystem,
            self.folder_of(partition),
            partition,
            config,
            topic_id,
            producer_expiration_ms=producer_expiration_ms,
            now_ms=now_ms,
        )
        log.has_new_folder = True
        return log

    def take_out(self, partition: TopicPartition, unique: UUID) -> Departure:
        """Know a log no more, whether it was open or not; its folder is renamed after this.

        Raises StorageError.
        """
        log = self.logs.get(partition)
        if log is not None:
            departure = log.leave(unique)
        else:
            target = f"{self.path}/{deleted_folder(partition, unique)}"
            departure = Departure(self.filesystem, self.folder_of(partition), target, [], 0)
        self._unread.discard(partition)
        for known in (self.logs, self.refused, self.floors):
            known.pop(partition, None)
        self.forget(partition)
        return departure

    def forget(self, partition: TopicPartition) -> None:
        """Let checkpoints that are prepared from now on hold no value for the partition.

        Until one is written, those on the disk may: no log of that name may begin (`is_forgotten`).
        """
        found = [
            values.pop(partition, None)
            for values in (self.recovery_points, self.high_watermarks, self.log_starts)
        ]
        if any(value is not None for value in found):
            self._forgotten[partition] = self._order.prepared
        if self.cleaned.pop(partition, None) is not None:
            self._forgotten_cleaned[partition] = self._cleaned_order.prepared
        folder = f"{self.folder_of(partition)}/"
        self._ledgers = [job for job in self._ledgers if not job.path.startswith(folder)]

    def is_forgotten(self, partition: TopicPartition) -> bool:
        """Whether no checkpoint on the disk holds a value that was forgotten."""
        return not (
            _is_left(self._forgotten, partition, self._order)
            or _is_left(self._forgotten_cleaned, partition, self._cleaned_order)
        )

    def prepare_removals(self) -> list[CheckpointJob]:
        """What takes forgotten values from the disk; nothing where there are none.

        Of other partitions the checkpoints say what they said last: no log is looked at.
        """
        jobs = []
        _prune(self._forgotten, self._order)
        _prune(self._forgotten_cleaned, self._cleaned_order)
        if self._forgotten:
            jobs.append(self.prepare_values())
        if self._forgotten_cleaned:
            jobs.append(self.prepare_cleaned_checkpoint())
        return jobs

    def elsewhere(self, homes: Mapping[TopicPartition, object]) -> list[TopicPartition]:
        """Partitions that have values but no folder here, where it is known why.

        Their log is in another directory (a move, or a second copy was set aside), or was deleted
        on a disk that had no room for a checkpoint. Raises OSError.
        """
        named = {*self.recovery_points, *self.high_watermarks, *self.log_starts, *self.cleaned}
        without = [one for one in named if homes.get(one) is not self]
        if not without:
            return []
        names = self.filesystem.listdir(self.path)
        deleted = set(map(parse_deleted_folder, names))
        return [one for one in without if one in homes or one in deleted]

    def prepare_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> CheckpointJob:
        """Gather what the three checkpoints should say now (P19).

        Of logs that are not open, what was read of them stays.
        """
        for partition, log in self.logs.items():
            floor = self.floors.get(partition, log.recovery_point)
            self.recovery_points[partition] = min(log.recovery_point, floor)
            if log.log_start_offset > log.segments.first.base_offset:
                self.log_starts[partition] = log.log_start_offset
            else:
                self.log_starts.pop(partition, None)
            if partition in high_watermarks:
                self.high_watermarks[partition] = high_watermarks[partition]
        found = [
            log.ledger.job(self.filesystem, log.folder)
            for log in self.logs.values()
            if log.ledger.has_news
        ]
        self._ledgers = [job for job in found if job is not None]
        job = self.prepare_values()
        if self._told.flushes_first and self._told != self._begun:
            # All logs have been read.
            job.files[f"{self.path}/{RUN_MARKER}"] = encode_run_marker(self._begun)
            self._told = self._begun
        return job

    def prepare_values(self) -> CheckpointJob:
        """The three checkpoints with the values that are known, whatever the logs say by now."""
        offsets = {
            RECOVERY_POINTS: self.recovery_points.copy(),
            HIGH_WATERMARKS: self.high_watermarks.copy(),
            LOG_START_OFFSETS: self.log_starts.copy(),
        }
        return self._job(offsets, self._order, list(self._ledgers))

    def _job(
        self,
        offsets: dict[str, dict[TopicPartition, int]],
        order: CheckpointOrder,
        ledgers: list[LedgerJob],
    ) -> CheckpointJob:
        order.prepared += 1
        return CheckpointJob(self.filesystem, self.path, offsets, order, order.prepared, ledgers)

    def prepare_cleaned_checkpoint(self) -> CheckpointJob:
        """Gather up to where logs here are clean."""
        return self._job({CLEANED_OFFSETS: self.cleaned.copy()}, self._cleaned_order, [])

    def fail(self, reason: str) -> None:
        """Serve no more from here; what it holds answers KAFKA_STORAGE_ERROR."""
        self.failure = self.failure or reason
        for log in (*self.logs.values(), *self.futures.values()):
            log.offline = log.offline or reason

    def close(self, high_watermarks: Mapping[TopicPartition, int], *, clean: bool) -> None:
        """Close what is open and unlock; leave the marker where everything went well.

        Raises StorageError, with the directory closed uncleanly.
        """
        try:
            job = self.prepare_checkpoints(high_watermarks)
            if clean and not self.failure:
                job.run()
                if not self.refused:
                    content = b'{"version":0,"brokerEpoch":-1}'
                    write_atomically(self.filesystem, f"{self.path}/{CLEAN_SHUTDOWN}", content)
        except OSError as error:
            raise storage_error(error, self.path, "close the log directory") from error
        finally:
            self._lock.close()


def _is_left(
    forgotten: Mapping[TopicPartition, int], partition: TopicPartition, order: CheckpointOrder
) -> bool:
    last = forgotten.get(partition)
    return last is not None and order.written <= last


def _prune(forgotten: dict[TopicPartition, int], order: CheckpointOrder) -> None:
    for partition in [one for one, last in forgotten.items() if order.written > last]:
        del forgotten[partition]


def _make_durably(filesystem: FileSystem, path: str) -> None:
    """Make a directory and its missing parents so that they survive a power cut."""
    missing = []
    ancestor = path
    while ancestor and not filesystem.exists(ancestor):
        missing.append(ancestor)
        ancestor = ancestor.rpartition("/")[0]
    filesystem.mkdir(path)
    for made in reversed(missing):
        parent, _, _ = made.rpartition("/")
        filesystem.fsync_directory(parent or ("/" if made.startswith("/") else "."))
