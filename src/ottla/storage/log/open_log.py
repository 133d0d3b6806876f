"""Opening a partition's log, with recovery after an unclean stop; or beginning a new one.

From the files to a log's parts: `loading`.
"""

from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.failed_flush import has_failed_flush
from ottla.storage.log.loaded_log import begin, load
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig


def open_log(
    filesystem: FileSystem,
    folder: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    clean: bool = False,
    is_lossy: bool = False,
    lost_power: bool = False,
    producer_expiration_ms: int = 86_400_000,
    now_ms: int,
) -> Log:
    """Open the log in `folder`, made where missing.

    Below `recovery_point` everything was flushed; `clean` says that the log was closed in
    order, so that its end need not be checked; `is_lossy` that the cluster takes records
    above `recovery_point` for lost; `lost_power` that pages which were not flushed may be
    missing, and nothing in them was promised. Raises LogCorrupt, StorageError.
    """
    write_again = has_failed_flush(filesystem, folder)
    clean = clean and not write_again
    loaded = load(
        filesystem,
        folder,
        config,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        clean=clean,
        write_again=write_again,
        is_lossy=is_lossy,
        lost_power=lost_power,
        producer_expiration_ms=producer_expiration_ms,
        now_ms=now_ms,
    )
    flushed = loaded.log_end_offset if clean else recovery_point
    return Log(filesystem, folder, topic_partition, config, loaded, flushed, now_ms)


def begin_log(
    filesystem: FileSystem,
    folder: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    topic_id: UUID,
    *,
    producer_expiration_ms: int = 86_400_000,
    now_ms: int,
) -> Log:
    """The log of a partition that has no folder: the first append makes it."""
    loaded = begin(
        filesystem,
        folder,
        config,
        topic_id,
        producer_expiration_ms=producer_expiration_ms,
        now_ms=now_ms,
    )
    return Log(filesystem, folder, topic_partition, config, loaded, 0, now_ms)
