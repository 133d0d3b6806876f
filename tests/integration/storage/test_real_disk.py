"""What only a real file system can show: a full disk, and page cache reads."""

import os
from pathlib import Path
from uuid import UUID

import pytest
from rig.small_disk import SIZE_BYTES

from ottla.base.ids import TopicPartition
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import DiskFull
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.disk.reserve import reserve_bytes
from ottla.storage.log.log import Log
from ottla.storage.log.open_log import open_log
from ottla.storage.segment.config import LogConfig

PARTITION = TopicPartition("flights", 0)


def append(log: Log) -> None:
    builder = BatchBuilder()
    builder.append(1_000, None, bytes(50_000))
    batch = builder.build()
    log.append_as_leader(memoryview(batch), read_header(batch), 0, 1_000)


def test_full_disk_refuses_writes_serves_reads_and_heals(small_disk: Path) -> None:
    """No half batch stays; with space the next append succeeds, without a restart."""
    directories = LogDirectories(OsFileSystem(), [str(small_disk)], cluster_id="c", node_id=1)
    log = directories.open(PARTITION, UUID(int=1), LogConfig(), now_ms=1_000)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(SIZE_BYTES - reserve_bytes(SIZE_BYTES) - 650_000))
    with pytest.raises(DiskFull, match="no space left"):  # noqa: PT012  # Until it is full.
        for _ in range(100):
            append(log)
    end, size = log.log_end_offset, log.size_bytes
    assert 5 < end < 20
    assert log.segments.active.file.size() == size
    for _ in range(3):
        with pytest.raises(DiskFull):
            append(log)
    assert log.read(0, 1 << 20, max_offset=end).size == size
    ballast.unlink()
    append(log)
    assert log.log_end_offset == end + 1
    directories.close({}, clean=True)
    directories = LogDirectories(OsFileSystem(), [str(small_disk)], cluster_id="c", node_id=1)
    again = directories.open(PARTITION, UUID(int=1), LogConfig(), now_ms=1_000)
    assert again.log_end_offset == end + 1
    directories.close({}, clean=True)


def _read_bytes() -> int:
    """Bytes this process has had fetched from disks."""
    for line in Path("/proc/self/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "read_bytes":
            return int(value)
    raise AssertionError("no read_bytes")


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count reads")
def test_reader_that_keeps_up_reads_no_disk(tmp_path: Path) -> None:
    """What was just appended comes from the page cache (P1, P4).

    The count is the whole process's, pages of its own code among them, which the system may have
    dropped: of 25 MB not a quarter may have come from a disk.
    """
    log = open_log(OsFileSystem(), f"{tmp_path}/flights-0", PARTITION, LogConfig(), now_ms=0)
    before = _read_bytes()
    for offset in range(500):
        append(log)
        located = log.read(offset, 1 << 20, max_offset=offset + 1)
        content = located.file.pread(located.size, located.position)
        assert read_header(content).base_offset == offset
    assert log.size_bytes > 25_000_000
    assert _read_bytes() - before < log.size_bytes / 4
