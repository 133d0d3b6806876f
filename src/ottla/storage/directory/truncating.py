"""Truncates an open log of a directory, after lowering its checkpoint on the disk.

A crash in between must not find a log that ends before its recovery point.
"""

from ottla.base.ids import TopicPartition
from ottla.storage.directory.deletion import Deletion
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.log.truncation import end_truncated_to, restart_at, truncate_to


def truncate(
    home: LogDirectory, partition: TopicPartition, offset: int, now_ms: int
) -> list[Deletion]:
    """Truncate an open log. Raises StorageError.

    Writes the checkpoint first, in this thread, where that is not low enough
    (`Checkpoints.hold_down`).
    """
    log = home.logs[partition]
    offset = end_truncated_to(log, offset)
    log.flush_state.lower_recovery_point(offset)
    home.checkpoints.lower_cleaned(partition, offset)
    _lower(home, partition, offset)
    return truncate_to(log, offset, now_ms)


def restart(
    home: LogDirectory, partition: TopicPartition, offset: int, now_ms: int
) -> list[Deletion]:
    """Truncate an open log fully and start it at `offset`; otherwise as `truncate`."""
    log = home.logs[partition]
    least = min(log.log_start_offset, offset)
    log.flush_state.lower_recovery_point(least)
    home.checkpoints.cleaned.pop(partition, None)
    _lower(home, partition, least)
    return restart_at(log, offset, now_ms)


def _lower(home: LogDirectory, partition: TopicPartition, offset: int) -> None:
    """Lower the checkpoint on the disk to `offset` at most. Raises StorageError."""
    checkpoints = home.checkpoints
    if not checkpoints.is_low(partition, offset):
        checkpoints.hold_down(partition, offset)
        home.prepare_checkpoints({}).run()
        checkpoints.note_lowered([partition])
        checkpoints.let_go(partition)
