"""Copies of logs on their way into another log directory, and duplicate folders.

Kafka's names: `topic-partition.<32 hex digits>-future` until the copy takes the place of the log.
"""

import contextlib
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import storage_error
from ottla.storage.files import partition_metadata
from ottla.storage.files.checkpoint import CheckpointJob
from ottla.storage.files.names import (
    LOG_SUFFIX,
    future_folder,
    parse_future_folder,
    parse_segment_file,
    segment_file,
    stray_folder,
)
from ottla.storage.log.log import Log
from ottla.storage.log.open_log import open_log
from ottla.storage.log.relocation import rename, take_over
from ottla.storage.segment.batch_walk import BadHeader, walk
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segments import Deletion, Departure


def future_folders(directory: LogDirectory) -> dict[TopicPartition, str]:
    """Return the paths of the folders that logs are copied to. Raises StorageError."""
    found: dict[TopicPartition, str] = {}
    try:
        for name in directory.filesystem.listdir(directory.path):
            partition = parse_future_folder(name)
            if partition is not None:
                found[partition] = f"{directory.path}/{name}"
    except OSError as error:
        raise storage_error(error, directory.path, "list the logs") from error
    return found


def open_future(
    directory: LogDirectory,
    partition: TopicPartition,
    topic_id: UUID,
    config: LogConfig,
    log_start_offset: int,
    unique: UUID,
    producer_expiration_ms: int,
    now_ms: int,
) -> Log:
    """Open the copy that an earlier run began, or begin a new one. Raises StorageError.

    A copy of an earlier run is read whole, since it is unknown how much of it was flushed.
    """
    filesystem = directory.filesystem
    folder = future_folders(directory).get(partition)
    if folder is not None and partition_metadata.read(filesystem, folder) != topic_id:
        remove(directory, folder)
        folder = None
    is_new = folder is None
    if folder is None:
        folder = f"{directory.path}/{future_folder(partition, unique)}"
        try:
            filesystem.mkdir(folder)
            partition_metadata.write(filesystem, folder, topic_id)
        except OSError as error:
            raise storage_error(error, folder, "begin a copy of the log") from error
    log = open_log(
        filesystem,
        folder,
        partition,
        config,
        log_start_offset=log_start_offset if is_new else 0,
        recovery_point=0,
        clean=False,
        producer_expiration_ms=producer_expiration_ms,
        now_ms=now_ms,
    )
    log.flush_state.has_new_folder = is_new
    directory.adopt(log)
    return log


def prepare_values(directory: LogDirectory, copy: Log, log_start_offset: int) -> CheckpointJob:
    """Enter a flushed copy in the checkpoints of its directory; return the job that writes them.

    It must have run before the copy gets the log's name.
    """
    partition, checkpoints = copy.topic_partition, directory.checkpoints
    checkpoints.recovery_points[partition] = copy.flush_state.recovery_point
    checkpoints.log_starts.pop(partition, None)
    if log_start_offset > copy.segments.first.base_offset:
        checkpoints.log_starts[partition] = log_start_offset
    return checkpoints.prepare_values()


def put_in_place(
    partition: TopicPartition, source: LogDirectory, target: LogDirectory, unique: UUID
) -> Departure:
    """Make the complete copy in `target` the partition's log. Raises StorageError.

    The caller makes the copy's name durable before it renames the folder in `source`: until then, a
    loss of power may undo this. So before this, all acknowledged records of the copy are flushed.
    """
    future = target.futures[partition]
    rename(future, target.folder_of(partition))
    take_over(future, source.logs[partition])
    del target.futures[partition]
    target.logs[partition] = future
    target.checkpoints.copy_marks(partition, source.checkpoints)
    return source.take_out(partition, unique)


def remove(directory: LogDirectory, folder: str) -> None:
    """Remove a copy that is no longer needed and has no readers. Raises StorageError."""
    try:
        Deletion(directory.filesystem, [], [], 0, folder=folder).run()
    except OSError as error:
        raise storage_error(error, folder, "remove a copy of the log") from error


def end_offset(directory: LogDirectory, partition: TopicPartition) -> int:
    """Return the offset after the last whole batch of a log; -1 if there is no log.

    Two copies of a log compare by it: their segments may differ. Raises StorageError.
    """
    folder = directory.folder_of(partition)
    filesystem = directory.filesystem
    try:
        parsed = [parse_segment_file(name) for name in filesystem.listdir(folder)]
        bases = [found[0] for found in parsed if found is not None and found[1] == LOG_SUFFIX]
        if not bases:
            return -1
        end = max(bases)
        file = filesystem.open(f"{folder}/{segment_file(end, LOG_SUFFIX)}")
        try:
            with contextlib.suppress(BadHeader):
                for _, header in walk(file, 0, file.size(), end):
                    end = header.last_offset + 1
        finally:
            file.close()
        return end
    except OSError as error:
        raise storage_error(error, folder, "look at the log") from error


def set_stray(directory: LogDirectory, partition: TopicPartition, unique: UUID) -> None:
    """Rename a folder, so that it belongs to no partition, and keep it. Raises StorageError."""
    folder = directory.folder_of(partition)
    try:
        directory.filesystem.rename(folder, f"{directory.path}/{stray_folder(partition, unique)}")
        directory.filesystem.fsync_directory(directory.path)
    except OSError as error:
        raise storage_error(error, folder, "set a second copy of the log aside") from error
    directory.forget(partition)
