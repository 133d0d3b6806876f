"""Laws of a disk's reserve: records of clients stop first, what makes room again stops last."""

import errno
from uuid import UUID

import pytest

from ottla.base.ids import TopicPartition
from ottla.record.header import read_header
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import DiskFull
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.disk.reserve import DiskUse, Reserve, reserve_bytes
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig

from .batches import batch, marker
from .logs import append

MEBIBYTE = 1 << 20
DISK_BYTES = 8 * MEBIBYTE
PAYLOAD = bytes(50_000)


def disk() -> MemoryFileSystem:
    return MemoryFileSystem(capacity_bytes=DISK_BYTES)


def ballast(filesystem: MemoryFileSystem, free_bytes: int) -> None:
    """Let another program leave `free_bytes` free."""
    filesystem.mkdir("/other")
    file = filesystem.open("/other/ballast", create=True)
    file.append(bytes(filesystem.free_bytes("/") - free_bytes))


def open_log(filesystem: MemoryFileSystem, topic: str) -> tuple[LogDirectories, Log]:
    directories = LogDirectories(filesystem, ["/logs"], cluster_id="c", node_id=1)
    partition = TopicPartition(topic, 0)
    return directories, directories.open(partition, UUID(int=1), LogConfig(), now_ms=1_000)


def fill(log: Log) -> int:
    """Append until that is refused; how many bytes are still free then."""
    with pytest.raises(DiskFull, match="reserved for deletions and restarts"):  # noqa: PT012  # Until it is full.
        while True:
            append(log, payload=PAYLOAD)
    return log.filesystem.free_bytes("/logs")


def test_reserve_is_a_share_of_a_small_disk_and_bounded_on_a_large_one() -> None:
    """A disk of 24 MiB keeps 3 free, one of a terabyte 256."""
    assert reserve_bytes(24 * MEBIBYTE) == 3 * MEBIBYTE
    assert reserve_bytes(1 << 40) == 256 * MEBIBYTE


def test_clients_appends_end_where_the_reserve_begins() -> None:
    """Nothing of the refused batch is written, and room heals it."""
    filesystem = disk()
    ballast(filesystem, 3 * MEBIBYTE)
    _, log = open_log(filesystem, "flights")
    left = fill(log)
    assert MEBIBYTE <= left < MEBIBYTE + 60_000
    end = log.log_end_offset
    filesystem.unlink("/other/ballast")
    assert append(log, payload=PAYLOAD).base_offset == end


def test_internal_topics_use_half_of_the_reserve() -> None:
    """Commits go on where clients' records are refused."""
    filesystem = disk()
    ballast(filesystem, MEBIBYTE)
    _, log = open_log(filesystem, "__consumer_offsets")
    assert MEBIBYTE // 2 <= fill(log) < MEBIBYTE // 2 + 60_000


def test_transaction_markers_are_written_where_records_are_refused() -> None:
    """A transaction that can be neither committed nor aborted would hold its readers up."""
    filesystem = disk()
    ballast(filesystem, MEBIBYTE)
    _, log = open_log(filesystem, "flights")
    with pytest.raises(DiskFull):
        append(log)
    end = marker(commit=True, producer_id=7)
    log.append_as_leader(memoryview(end), read_header(end), 0, 1_000)
    assert log.log_end_offset == 1


@pytest.mark.parametrize(
    ("topic", "quarters"), [("flights", 3), ("__consumer_offsets", 1)], ids=["client", "internal"]
)
def test_followers_have_room_for_what_a_leader_on_the_same_disk_took(
    topic: str, quarters: int
) -> None:
    """Else a leader that fills the disk would lose its followers with the last batch."""
    filesystem = disk()
    ballast(filesystem, MEBIBYTE)
    _, log = open_log(filesystem, topic)
    with pytest.raises(DiskFull):  # noqa: PT012  # Until it is full.
        while True:
            found = batch(1, base_offset=log.log_end_offset, payload=PAYLOAD)
            log.append_as_follower(found, 1_000)
    least = quarters * MEBIBYTE // 4
    assert least <= filesystem.free_bytes("/") < least + 60_000


def test_room_that_others_take_is_noticed() -> None:
    """A measurement holds for a moment only, however much was free."""
    filesystem = disk()
    reserve = Reserve(filesystem, "/")
    assert reserve.allows(100, 1_000, DiskUse.RECORDS)
    ballast(filesystem, 1000)
    assert not reserve.allows(100, 2_000, DiskUse.RECORDS)
    assert not reserve.allows(100, 2_000, DiskUse.COPIED_OWN)
    with pytest.raises(OSError, match="No space left") as caught:
        reserve.require(100, DiskUse.OWN)
    assert caught.value.errno == errno.ENOSPC
    filesystem.unlink("/other/ballast")
    assert reserve.allows(100, 2_000, DiskUse.RECORDS)


def test_several_logs_of_one_disk_share_its_room() -> None:
    """Together they leave the reserve free."""
    filesystem = disk()
    directories, first = open_log(filesystem, "flights")
    second = directories.open(TopicPartition("planes", 0), UUID(int=2), LogConfig(), now_ms=1_000)
    with pytest.raises(DiskFull):  # noqa: PT012  # Until it is full.
        while True:
            append(first, payload=PAYLOAD)
            append(second, payload=PAYLOAD)
    assert filesystem.free_bytes("/") >= MEBIBYTE


def test_disk_of_unknown_size_has_no_reserve() -> None:
    """Some network file systems say 0; what they refuse is found when it is written."""
    filesystem = disk()
    filesystem.capacity_bytes = 0
    reserve = Reserve(filesystem, "/")
    assert reserve.allows(1 << 30, 0, DiskUse.RECORDS)
    assert not reserve.is_short()


def test_disk_is_short_before_appends_are_refused() -> None:
    """So that deleted files go at once also where only large batches are refused."""
    filesystem = disk()
    reserve = Reserve(filesystem, "/")
    assert not reserve.is_short()
    ballast(filesystem, 2 * MEBIBYTE - 1)
    assert reserve.is_short()
    assert reserve.allows(100, 0, DiskUse.RECORDS)
