"""Logs to compact, cleaned in this process, and what a reader then finds; for tests."""

from collections.abc import Iterable

from ottla.record.builder import BatchBuilder
from ottla.record.compression import Compression
from ottla.record.header import read_header
from ottla.record.reader import records
from ottla.storage.cleaner.compaction import Cleaning
from ottla.storage.cleaner.job import CleaningJob, CleaningOutcome
from ottla.storage.cleaner.plan import LogCleaning
from ottla.storage.cleaner.swap import Swap
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.log.log import Log

from .logs import open_log

DAY_MS = 24 * 3600 * 1000
Pair = tuple[bytes | None, bytes | None]


def compacted_log(filesystem: FileSystem | None = None, **settings: int | bool) -> Log:
    """A log of a compacted topic."""
    return open_log(filesystem, cleanup_policy=frozenset({"compact"}), **settings)  # type: ignore[arg-type]


def add(
    log: Log,
    pairs: Iterable[Pair],
    *,
    timestamp: int = 1_000,
    compression: int = Compression.NONE,
    now_ms: int = 1_000,
    **producer: int | bool,
) -> int:
    """Append one batch as a leader does; its base offset."""
    builder = BatchBuilder(compression, **producer)  # type: ignore[arg-type]
    for key, value in pairs:
        builder.append(timestamp, key, value)
    batch = builder.build()
    return log.append_as_leader(memoryview(batch), read_header(batch), 0, now_ms).base_offset


def clean(
    log: Log, *, first_dirty: int = 0, now_ms: int = 2_000, keys_max: int = 1_000_000
) -> CleaningOutcome:
    """Clean the closed segments and put the outcome in place."""
    log.flush()
    cleaning = LogCleaning(log, log.segments.active.base_offset)
    job = cleaning.job(first_dirty, now_ms=now_ms, keys_max=keys_max)
    job = CleaningJob.decode(job.encode())
    outcome = Cleaning(log.filesystem, job, lambda _: None).run()
    outcome = CleaningOutcome.decode(outcome.encode())
    assert cleaning.still_holds
    for swap in cleaning.swaps(outcome):
        replace(swap)
    return outcome


def replace(swap: Swap) -> None:
    """All steps of a replacement."""
    swap.begin()
    swap.announce()
    swap.take_over()
    swap.put_in_place()
    swap.finish().run()


def found(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of every record that a reader of uncommitted data sees."""
    result = []
    for number in range(len(log.segments)):
        segment = log.segments[number]
        content, position = segment.file.pread(segment.size, 0), 0
        while position < len(content):
            header = read_header(content, position)
            if not header.is_control:
                result += [(r.offset, r.key, r.value) for r in records(content, position, header)]
            position += header.size
    return result
