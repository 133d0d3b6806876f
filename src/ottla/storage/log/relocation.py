"""Puts a copy of a log in its place, and renames a log's folder for that or for its deletion."""

from uuid import UUID

from ottla.storage.disk.errors import storage_error
from ottla.storage.files.names import deleted_folder
from ottla.storage.files.offset_ledger import OffsetLedger
from ottla.storage.log.flush import FlushJob
from ottla.storage.log.log import Log
from ottla.storage.segment.segments import Departure


def checkpoint_as(log: Log, other: Log) -> FlushJob:
    """Return the job that checkpoints `log` with the producers and the ledger of `other`.

    `other` has the same records, and may know more: of records that are deleted.
    """
    assert log.log_end_offset == other.log_end_offset
    log.ledger = OffsetLedger(other.ledger.history.copy(), is_written=False)
    own, log.producers = log.producers, other.producers
    try:
        return log.prepare_flush(checkpoint=True)
    finally:
        log.producers = own


def take_over(log: Log, other: Log) -> None:
    """Give `log` the in-memory state of `other`, which has the same records and may know more."""
    assert log.log_end_offset == other.log_end_offset
    log.config = other.config
    log.producers = other.producers
    log.leader_epochs = other.leader_epochs
    log.flush_state.forget_epochs_file()
    log.log_start_offset = max(log.log_start_offset, other.log_start_offset)
    log.ledger = OffsetLedger(other.ledger.history.copy(), is_written=False)


def rename(log: Log, folder: str) -> None:
    """Rename the log's folder in the same directory. Raises StorageError.

    The next flush makes the new name durable.
    """
    log.make()
    log.settle_replacement()
    try:
        log.filesystem.rename(log.folder, folder)
    except OSError as error:
        raise storage_error(error, log.folder, "rename the log") from error
    log.folder = folder
    for segment in log.segments:
        segment.folder = folder
    log.flush_state.has_new_folder = True


def leave(log: Log, unique: UUID) -> Departure:
    """Close the log to readers and writers, and return the pending rename of its folder.

    The rename may run in any thread. `unique` keeps the new name apart from that of a topic created
    again. Raises StorageError.
    """
    log.settle_replacement()
    log.offline = f"{log.topic_partition}: the log was deleted"
    log.is_deleted = True
    parent = log.folder.rpartition("/")[0]
    return Departure(
        log.filesystem,
        log.folder,
        f"{parent}/{deleted_folder(log.topic_partition, unique)}",
        log.segments.as_list(),
        log.config.file_delete_delay_ms,
        has_folder=not log.segments.active.is_unmade,
    )
