"""Opens a partition's log, with recovery after an unclean stop, or begins a new log."""

from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.storage.disk.errors import LogCorrupt, storage_error
from ottla.storage.disk.filesystem import TEMPORARY_SUFFIX, FileSystem
from ottla.storage.files.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCHS,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    parse_segment_file,
)
from ottla.storage.files.offset_ledger import OffsetLedger
from ottla.storage.index.leader_epochs import LeaderEpochs
from ottla.storage.log.copied_gaps import note_copied_gaps
from ottla.storage.log.log import LoadedLog, Log
from ottla.storage.producers.snapshot import newest_good
from ottla.storage.producers.state import ProducerStates
from ottla.storage.recovery.leftovers import FAILED_FLUSH, complete_swaps, forget_failed_flush
from ottla.storage.recovery.recovery import Recovery, recover
from ottla.storage.recovery.replay import Replay, widen
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segment import Segment


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
    """Open the log in `folder`, which is created if it is missing.

    All records below `recovery_point` were flushed. `clean` says that the log was closed cleanly,
    so that its end need not be checked. `is_lossy` says that the cluster treats records above
    `recovery_point` as lost. `lost_power` says that unflushed pages may be missing, and that no
    record in them was acknowledged. Raises LogCorrupt, StorageError.
    """
    try:
        filesystem.mkdir(folder)
        names = complete_swaps(filesystem, folder)
        write_again = FAILED_FLUSH in names
        clean = clean and not write_again
        is_new = not any(name.endswith(LOG_SUFFIX) for name in names)
        segments = _find_segments(filesystem, folder, names, config, log_start_offset, now_ms)
        known_below = 2**63 - 1 if clean else recovery_point
        snapshots, flushed = _snapshots(filesystem, folder, names, known_below)
        producers = ProducerStates(producer_expiration_ms)
        replay = _begin_replay(filesystem, segments, producers, snapshots, known_below, now_ms)
        found = recover(
            segments,
            replay,
            known_below,
            check_end=not clean,
            write_again=write_again,
            is_lossy=is_lossy,
            kept_to=max(flushed, recovery_point) if lost_power else None,
        )
        if write_again:
            forget_failed_flush(filesystem, folder)
        end = replay.next_offset
        if clean and end < recovery_point:
            raise _too_short(segments[-1], end, recovery_point)
        if end < log_start_offset:
            segments, end = [_restart_at(segments, config, log_start_offset)], log_start_offset
            producers.load([], end, now_ms)
        segments[-1].create()
        widen(producers, segments)
        ledger = OffsetLedger.read(filesystem, folder, unrecorded_below=0 if is_new else end)
        if not clean:
            note_copied_gaps(segments, ledger.history, recovery_point, end)
    except OSError as error:
        raise storage_error(error, folder, "load the log") from error
    start = max(log_start_offset, segments[0].base_offset)
    epochs = replay.epochs
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    producers.map_end_offset = end
    kept = [offset for offset in snapshots if offset <= end]
    if not ledger.is_written:
        known_below = ledger.history.unrecorded_below
        ledger.history.fill(0, min(start, known_below), StartCause.UNRECORDED, now_ms)
    loaded = LoadedLog(segments, epochs, producers, kept, start, end, found, ledger)
    recovery_point = end if clean else recovery_point
    return Log(filesystem, folder, topic_partition, config, loaded, recovery_point, now_ms)


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
    """Return the log of a partition that has no folder; the first append creates the folder."""
    segment = Segment(filesystem, folder, 0, config, now_ms)
    segment.begin(topic_id)
    producers = ProducerStates(producer_expiration_ms)
    producers.load([], 0, now_ms)
    loaded = LoadedLog(
        [segment], LeaderEpochs(), producers, [], 0, 0, Recovery(), OffsetLedger.begin()
    )
    return Log(filesystem, folder, topic_partition, config, loaded, 0, now_ms)


def _begin_replay(
    filesystem: FileSystem,
    segments: list[Segment],
    producers: ProducerStates,
    snapshots: list[int],
    known_below: int,
    now_ms: int,
) -> Replay:
    """Load state from the side files, and find where batches must be read from. Raises OSError."""
    folder, first_offset = segments[0].folder, segments[0].base_offset
    epochs, epochs_read = _read_epochs(filesystem, folder)
    transactions_read = _read_transactions(segments)
    reflected, entries = newest_good(filesystem, folder, snapshots, known_below)
    if not epochs_read or not transactions_read:
        # State that only the batches contain must be read from the first batch on.
        reflected, entries = -1, []
    begin = max(first_offset, reflected)
    # The file may be older than the batches from here on, which are read and have their epochs.
    epochs.truncate_from_end(begin)
    producers.load(entries, begin, now_ms)
    return Replay(epochs, producers, begin)


def _too_short(last: Segment, end: int, recovery_point: int) -> LogCorrupt:
    return LogCorrupt(
        last.path(),
        last.size,
        end,
        f"the log ends here but was flushed up to offset {recovery_point}",
        "Restore the file from a copy or a replica, or delete the partition.",
    )


def _find_segments(
    filesystem: FileSystem,
    folder: str,
    names: list[str],
    config: LogConfig,
    log_start_offset: int,
    now_ms: int,
) -> list[Segment]:
    """Return the segments by base offset; leftovers of interrupted work are removed."""
    logs = {name[:20] for name in names if name.endswith(LOG_SUFFIX)}
    segments = []
    for name in names:
        path = f"{folder}/{name}"
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)):
            filesystem.unlink(path)
            continue
        parsed = parse_segment_file(name)
        if parsed is None:
            continue
        base_offset, suffix = parsed
        if suffix == LOG_SUFFIX:
            segment = Segment(filesystem, folder, base_offset, config, now_ms)
            segment.size = filesystem.size(path)
            segment.indexes.loaded = False
            segments.append(segment)
        elif suffix in SEGMENT_SUFFIXES and suffix != SNAPSHOT_SUFFIX and name[:20] not in logs:
            filesystem.unlink(path)
    if not segments:
        segment = Segment(filesystem, folder, log_start_offset, config, now_ms)
        segment.create()
        segments.append(segment)
    segments.sort(key=lambda segment: segment.base_offset)
    return segments


def _read_epochs(filesystem: FileSystem, folder: str) -> tuple[LeaderEpochs, bool]:
    """Return the leader epochs from their file, and whether it could be read."""
    try:
        return LeaderEpochs.decode(filesystem.read_bytes(f"{folder}/{LEADER_EPOCHS}")), True
    except (FileNotFoundError, ValueError):
        return LeaderEpochs(), False


def _read_transactions(segments: list[Segment]) -> bool:
    """Load all transaction indexes, which are small and rare; return whether all are good."""
    try:
        for segment in segments:
            segment.read_transaction_index()
    except ValueError:
        for segment in segments:
            segment.transactions.entries.clear()
        return False
    return True


def _snapshots(
    filesystem: FileSystem, folder: str, names: list[str], offset_max: int
) -> tuple[list[int], int]:
    """Return the offsets of the producer snapshots, and the offset that they prove flushed.

    Snapshots above `offset_max` are removed, since they may reflect lost records. A snapshot is
    written only after all records before it are flushed.
    """
    kept, flushed = [], 0
    for name in names:
        parsed = parse_segment_file(name)
        if parsed is not None and parsed[1] == SNAPSHOT_SUFFIX:
            flushed = max(flushed, parsed[0])
            if parsed[0] > offset_max:
                filesystem.unlink(f"{folder}/{name}")
            else:
                kept.append(parsed[0])
    return sorted(kept), flushed


def _restart_at(segments: list[Segment], config: LogConfig, log_start_offset: int) -> Segment:
    """Replace all segments, which end below the log start offset, with an empty one there."""
    for segment in segments:
        segment.close()
        segment.remove_files()
    first = segments[0]
    fresh = Segment(first.filesystem, first.folder, log_start_offset, config, first.created_ms)
    fresh.create()
    return fresh
