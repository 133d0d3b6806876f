"""Continues a recovered log with the batches that only the flush journal still has."""

from uuid import UUID

from ottla.record.header import HEADER_SIZE, computed_crc, read_header
from ottla.storage.log.flush_journal import FlushJournal
from ottla.storage.log.log import Log


def replay_journal(journal: FlushJournal, log: Log, topic_id: UUID, now_ms: int) -> None:
    """Append the journal's batches to a log that was just opened, and flush the log.

    Raises StorageError; the journal then keeps its entries.
    """
    entries = journal.entries(log.topic_partition)
    if entries is None:
        return
    before = log.log_end_offset
    for entry in entries:
        if entry.topic_id == topic_id:
            _append_missing(log, entry.batches, entry.start_offset, now_ms)
    end = log.log_end_offset
    if end != before:
        log.recovery.notes.append(
            f"{log.folder}: ended at offset {before}, continued to {end} by the flush journal"
        )
    if log.flush_state.recovery_point < end:
        log.flush(now_ms)
    journal.drop(log.topic_partition)


def _append_missing(log: Log, batches: bytes, start_offset: int, now_ms: int) -> None:
    """Append the batches that the log lacks. Batches of an earlier state of the log are skipped.

    The log ended at `start_offset` before the batches were appended in the last run. A log that was
    truncated since then goes on in a later leader epoch.
    """
    view = memoryview(batches)
    position, expected = 0, start_offset
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        end = position + header.size
        if end > len(view) or computed_crc(view, position, header.size) != header.crc:
            return  # The log was truncated while its end was copied; this was not acknowledged.
        log_end = log.log_end_offset
        if header.last_offset >= log_end:
            # Offsets that compaction has removed may be missing before a batch.
            is_next = expected <= log_end <= header.base_offset
            if not is_next or header.leader_epoch < log.leader_epochs.latest:
                return
            log.append_as_follower(view[position:end], now_ms)
        expected = header.last_offset + 1
        position = end
