"""Opening, filling and reading logs, for the tests of this folder."""

from ottla.base.ids import TopicPartition
from ottla.record.header import BatchHeader, read_header
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log import open_log as opening
from ottla.storage.log.log import Appended, Log
from ottla.storage.segment.config import LogConfig

from .batches import batch

PARTITION = TopicPartition("flights", 0)
FOLDER = "/kafka/flights-0"
NOW_MS = 1_000


def open_log(
    filesystem: FileSystem | None = None,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
    is_lossy: bool = False,
    lost_power: bool = False,
    config: LogConfig | None = None,
    folder: str = FOLDER,
    partition: TopicPartition = PARTITION,
    **settings: int | str | frozenset[str],
) -> Log:
    """A log in memory, or on `filesystem`; `settings` are fields of its LogConfig."""
    return opening.open_log(
        filesystem or MemoryFileSystem(),
        folder,
        partition,
        config or LogConfig(**settings),  # type: ignore[arg-type]  # Fields of several types.
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean=clean,
        is_lossy=is_lossy,
        lost_power=lost_power,
        now_ms=NOW_MS,
    )


def append(
    log: Log,
    count: int = 1,
    *,
    payload: bytes = b"x" * 20,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
    **fields: int,
) -> Appended:
    """Append a batch of `count` records as the leader does."""
    encoded = batch(count, payload=payload, **fields)
    header = read_header(encoded)
    return log.append_as_leader(memoryview(encoded), header, leader_epoch, now_ms)


def read_headers(log: Log, offset: int, max_bytes: int = 1 << 20) -> list[BatchHeader]:
    """The headers of the batches that one read gives."""
    located = log.read(offset, max_bytes, max_offset=log.log_end_offset)
    content = located.file.pread(located.size, located.position)
    found, position = [], 0
    while position < len(content):
        found.append(read_header(content, position))
        position += found[-1].size
    assert position == len(content)
    return found


def ranges(log: Log, max_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    """(first, last offset) of every batch that a reader from the start on finds."""
    found: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while headers := read_headers(log, offset, max_bytes):
        found += [(header.base_offset, header.last_offset) for header in headers]
        offset = found[-1][1] + 1
    return found


def overwrite(filesystem: FileSystem, path: str, position: int, content: bytes) -> None:
    """Change bytes inside a file, as a failing disk does."""
    whole = bytearray(filesystem.read_bytes(path))
    whole[position : position + len(content)] = content
    file = filesystem.open(path)
    file.truncate(0)
    file.append(whole)


def flip(filesystem: FileSystem, path: str, position: int, mask: int = 1) -> None:
    """Turn bits of one byte inside a file over."""
    overwrite(filesystem, path, position, bytes([filesystem.read_bytes(path)[position] ^ mask]))
