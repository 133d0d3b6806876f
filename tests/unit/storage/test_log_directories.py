"""Laws of log directories: placing, checkpoints, clean and unclean stops, failing disks."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.placement import Wanted
from ottla.storage.disk.errors import DirectoryFailed, DiskFull, LogCorrupt, StorageError
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import restart_at
from ottla.storage.segment.config import LogConfig

from .logs import append, flip, overwrite, ranges

TOPIC_ID = UUID("01234567-89ab-cdef-fedc-ba9876543210")
PATHS = ("/one", "/two")


def start(filesystem: MemoryFileSystem, *paths: str, **options: str | int) -> LogDirectories:
    ids = iter(range(1, 1_000))
    return LogDirectories(
        filesystem,
        paths or PATHS,
        cluster_id=str(options.get("cluster_id", "mine")),
        node_id=int(options.get("node_id", 1)),
        flushes_first=bool(options.get("flushes_first", False)),
        new_id=lambda: UUID(int=next(ids)),
    )


def partition(number: int) -> TopicPartition:
    return TopicPartition("flights", number)


def open_one(directories: LogDirectories, number: int = 0, topic_id: UUID = TOPIC_ID) -> Log:
    return directories.open(partition(number), topic_id, LogConfig(), now_ms=1_000)


def with_checkpoint(filesystem: MemoryFileSystem) -> tuple[LogDirectories, Log]:
    """A log of three records in /one, flushed, and checkpoints that say so."""
    directories = start(filesystem, "/one")
    log = open_one(directories)
    for _ in range(3):
        append(log)
    log.flush()
    directories.write_checkpoints({})
    return directories, log


def recovery_points(filesystem: MemoryFileSystem) -> bytes:
    return filesystem.read_bytes("/one/recovery-point-offset-checkpoint")


def test_new_partitions_go_where_the_fewest_are() -> None:
    """Disks are filled evenly by count, as in Kafka."""
    directories = start(MemoryFileSystem())
    for number in range(5):
        open_one(directories, number)
    assert [sorted(directory.logs) for directory in directories.directories] == [
        [partition(0), partition(2), partition(4)],
        [partition(1), partition(3)],
    ]


def test_partition_is_found_again_where_it_is() -> None:
    """Whatever the counts say after a restart."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem)
    for number in range(3):
        append(open_one(directories, number), number + 1)
    directories.close({}, clean=True)
    directories = start(filesystem)
    assert directories.found_at_start == {partition(n): TOPIC_ID for n in range(3)}
    assert [open_one(directories, n).log_end_offset for n in (2, 1, 0)] == [3, 2, 1]
    assert sorted(directories.directories[1].logs) == [partition(1)]


def test_an_empty_partition_stays_in_the_directory_that_was_chosen_for_it() -> None:
    """Whatever the counts say after a kill: somebody may have asked for that directory."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem)
    for number in range(2):
        directories.prefer(partition(number), directories.directories[1])
        open_one(directories, number)
    filesystem.crash()
    directories = start(filesystem)
    for number in range(2):
        open_one(directories, number)
    assert sorted(directories.directories[1].logs) == [partition(0), partition(1)]


def test_checkpoints_are_written_and_used() -> None:
    """Recovery point, high watermark and log start come back after a kill (P19)."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    log = open_one(directories)
    for _ in range(4):
        append(log)
    log.flush()
    append(log)
    log.advance_log_start(2)
    directories.write_checkpoints({partition(0): 3})
    assert recovery_points(filesystem) == b"0\n1\nflights 0 4\n"
    assert filesystem.read_bytes("/one/replication-offset-checkpoint") == b"0\n1\nflights 0 3\n"
    assert filesystem.read_bytes("/one/log-start-offset-checkpoint") == b"0\n1\nflights 0 2\n"
    filesystem.crash()
    directories = start(filesystem, "/one")
    log = open_one(directories)
    assert (log.log_start_offset, log.flush_state.recovery_point, log.log_end_offset) == (2, 4, 5)
    assert (directories.high_watermark(partition(0)), log.recovery.scanned_bytes) == (3, 81)


def test_clean_stop_leaves_a_marker_that_the_next_start_takes_away() -> None:
    """After a clean stop nothing is scanned; after a kill the marker must not be there."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    append(open_one(directories))
    directories.close({}, clean=True)
    assert filesystem.exists("/one/.kafka_cleanshutdown")
    directories = start(filesystem, "/one")
    assert not filesystem.exists("/one/.kafka_cleanshutdown")
    log = open_one(directories)
    assert (log.recovery.scanned_bytes, log.flush_state.recovery_point, ranges(log)) == (
        0,
        1,
        [(0, 0)],
    )


def test_unclean_stop_leaves_no_marker() -> None:
    """The next start scans what was not flushed."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    append(open_one(directories))
    directories.close({}, clean=False)
    assert not filesystem.exists("/one/.kafka_cleanshutdown")
    assert open_one(start(filesystem, "/one")).recovery.scanned_bytes == 81


def test_corrupt_log_is_offline_and_others_serve() -> None:
    """The error names what is wrong; a clean stop does not hide it from the next start."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    directories.confirm_run()
    for number in (0, 1):
        for _ in range(3):
            append(open_one(directories, number))
    directories.write_checkpoints({})
    filesystem.crash()
    path = "/one/flights-0/00000000000000000000.log"
    flip(filesystem, path, 100)
    for _ in range(2):
        directories = start(filesystem, "/one")
        wanted = [Wanted(partition(number), TOPIC_ID, LogConfig()) for number in (0, 1)]
        found = directories.open_all(wanted, now_ms=1_000)
        assert isinstance(found[partition(0)], LogCorrupt)
        assert isinstance(found[partition(1)], Log)
        directories.close({}, clean=True)


def test_failed_directory_takes_its_logs_along_and_no_others() -> None:
    """KAFKA_STORAGE_ERROR there, service elsewhere; new partitions go elsewhere, too."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem)
    first, second, third = (open_one(directories, number) for number in range(3))
    filesystem.fault = lambda operation, path: (
        OSError(errno.EIO, "Input/output error")
        if operation == "fsync" and path.startswith("/one")
        else None
    )
    append(first)
    with pytest.raises(DirectoryFailed) as caught:
        first.flush()
    assert directories.fail(partition(0), caught.value) == [partition(0), partition(2)]
    for log in (first, third):
        with pytest.raises(StorageError, match="Input/output error"):
            append(log)
    append(second)
    open_one(directories, 7)
    assert partition(7) in directories.directories[1].logs
    with pytest.raises(StorageError, match="Input/output error"):
        open_one(directories, 2)


def test_directory_that_cannot_be_opened_is_left_out() -> None:
    """A broker starts with the disks it has; with none it does not start."""
    filesystem = MemoryFileSystem()
    filesystem.fault = lambda operation, path: (
        OSError(errno.EIO, "Input/output error") if path.startswith("/one") else None
    )
    directories = start(filesystem)
    assert [directory.path for directory in directories.directories] == ["/two"]
    assert list(directories.unusable) == ["/one"]
    with pytest.raises(DirectoryFailed):
        start(filesystem, "/one")


def test_directory_in_use_is_refused() -> None:
    """Two brokers on one directory would destroy it."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    with pytest.raises(OttlaError, match="in use by another broker process"):
        start(filesystem, "/one")
    directories.close({}, clean=True)
    start(filesystem, "/one")


def test_refused_start_unlocks_what_it_had() -> None:
    """One directory of another cluster: none stays locked."""
    filesystem = MemoryFileSystem()
    start(filesystem, "/two", cluster_id="other").close({}, clean=True)
    with pytest.raises(OttlaError) as caught:
        start(filesystem)
    assert caught.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID
    start(filesystem, "/one")
    assert LogDirectories.find_cluster_id(filesystem, ["/new", "/two"]) == "other"


def test_deleted_log_has_another_name_until_its_files_are_removed() -> None:
    """A topic of the same name can be made at once; a crash in between is made good."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    append(open_one(directories))
    deletion = directories.delete(partition(0))
    assert [name for name in filesystem.listdir("/one") if name.startswith("flights")] == [
        "flights-0.00000000000000000000000000000003-delete"
    ]
    assert open_one(directories).log_end_offset == 0
    filesystem.crash()
    directories = start(filesystem, "/one")
    for leftover in directories.leftovers():
        leftover.run()
    assert [name for name in filesystem.listdir("/one") if name.endswith("-delete")] == []
    deletion.run()


def test_folder_of_an_older_topic_of_that_name_is_set_aside() -> None:
    """Its records are not those of the new topic; they are kept for whoever wants them."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    append(open_one(directories))
    directories.close({}, clean=True)
    directories = start(filesystem, "/one")
    assert open_one(directories, 0, UUID(int=77)).log_end_offset == 0
    assert sum(name.endswith("-stray") for name in filesystem.listdir("/one")) == 1


def test_a_character_that_the_disk_damaged_makes_no_other_topic() -> None:
    """The file that names the topic has no checksum, but two topics' ids differ in nearly all."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    log = open_one(directories)
    append(log)
    path = f"{log.folder}/partition.metadata"
    directories.close({}, clean=True)
    before = filesystem.read_bytes(path)
    filesystem._file(path).content[-5] ^= 1
    assert filesystem.read_bytes(path) != before
    directories = start(filesystem, "/one")
    log = open_one(directories)
    assert log.log_end_offset == 1
    assert filesystem.read_bytes(path) == before
    assert "partition.metadata" in log.recovery.salvaged[0]


def test_truncation_lowers_the_recovery_point_on_the_disk_first() -> None:
    """Else a crash in between would look like lost records."""
    filesystem = MemoryFileSystem()
    directories, _ = with_checkpoint(filesystem)
    directories.truncate(partition(0), 1, 1_000)
    assert recovery_points(filesystem) == b"0\n1\nflights 0 1\n"
    filesystem.crash()
    assert open_one(start(filesystem, "/one")).log_end_offset == 1


def test_older_checkpoint_never_replaces_a_newer_one() -> None:
    """A job that waited for its thread must not bring back a recovery point above the log's end."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    log = open_one(directories)
    for _ in range(3):
        append(log)
    log.flush()
    (late,) = directories.prepare_checkpoints({})
    directories.truncate(partition(0), 1, 1_000)
    late.run()
    assert recovery_points(filesystem) == b"0\n1\nflights 0 1\n"


def test_a_log_that_is_to_be_cut_is_promised_no_further_whoever_writes_the_checkpoint() -> None:
    """From then on until it is cut, or will not be; the cut itself then waits for no disk."""
    filesystem = MemoryFileSystem()
    directories, log = with_checkpoint(filesystem)
    assert directories.is_low(partition(0), 3)
    assert not directories.is_low(partition(0), 1)
    directories.hold_down(partition(0), 2)
    directories.hold_down(partition(0), 1)
    directories.write_checkpoints({})
    assert recovery_points(filesystem) == b"0\n1\nflights 0 1\n"
    assert log.flush_state.recovery_point == 3
    directories.let_go(partition(0))
    directories.write_checkpoints({})
    assert recovery_points(filesystem) == b"0\n1\nflights 0 3\n"
    directories.hold_down(partition(0), 1).checkpoints.note_lowered([partition(0)])
    directories.write_checkpoints({})
    syncs: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation == "fsync":
            syncs.append(path)

    filesystem.fault = note
    directories.truncate(partition(0), 1, 1_000)
    directories.let_go(partition(0))
    assert (syncs, log.flush_state.recovery_point, log.log_end_offset) == ([], 1, 1)


def test_a_checkpoint_that_could_not_be_lowered_is_lowered_before_the_next_attempt() -> None:
    """Else a log that is cut later, on a disk that has room again, would be promised too much."""
    filesystem = MemoryFileSystem()
    directories, _ = with_checkpoint(filesystem)
    filesystem.capacity_bytes = 0
    with pytest.raises(StorageError):
        directories.truncate(partition(0), 1, 1_000)
    assert not directories.is_low(partition(0), 1)
    filesystem.capacity_bytes = None
    directories.truncate(partition(0), 1, 1_000)
    assert recovery_points(filesystem) == b"0\n1\nflights 0 1\n"


def test_restarted_log_begins_empty_where_it_is_told() -> None:
    """A follower whose leader has deleted all it could continue from drops records and terms."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    log = open_one(directories)
    append(log)
    log.flush()
    directories.write_checkpoints({})
    directories.restart(partition(0), 500, 1_000)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert log.leader_epochs.entries == []
    log.flush()
    filesystem.crash()
    log = open_one(start(filesystem, "/one"))
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)


def test_process_that_died_has_kept_what_it_wrote() -> None:
    """R-11: the page cache outlives the process, not the machine."""
    filesystem = MemoryFileSystem()
    first = start(filesystem, "/one")
    assert first.kept_all is False, "a new disk may have replaced another"
    first.confirm_run()
    filesystem.crash()
    assert start(filesystem, "/one").kept_all is True
    filesystem.crash(Random(1))
    assert start(filesystem, "/one").kept_all is False


def test_loss_is_remembered_until_the_cluster_knows_of_it() -> None:
    """A start that fails after a power cut, before it registers, hides nothing from the next."""
    filesystem = MemoryFileSystem()
    start(filesystem, "/one").confirm_run()
    filesystem.crash(Random(1))
    for _ in range(2):
        assert start(filesystem, "/one").kept_all is False
        filesystem.crash()
    start(filesystem, "/one").confirm_run()
    filesystem.crash()
    assert start(filesystem, "/one").kept_all is True


def test_broker_that_flushes_first_loses_nothing_to_a_power_cut() -> None:
    """What it acknowledged was on the disk: so it stays eligible, if it did so all the time."""
    filesystem = MemoryFileSystem()
    start(filesystem, "/one", flushes_first=True).confirm_run()
    filesystem.crash(Random(1))
    assert start(filesystem, "/one").kept_all is True
    filesystem.crash(Random(1))
    assert start(filesystem, "/one").kept_all is False, "the second run did not flush first"


def lose_a_page(filesystem: MemoryFileSystem, number: int) -> None:
    """Let the second of three batches miss a page."""
    path = f"/one/flights-{number}/00000000000000000000.log"
    overwrite(filesystem, path, 12_288, bytes(4_096))


def test_a_power_cut_is_known_until_all_logs_were_read() -> None:
    """Pages may be missing in each of them, and a start may die before it has opened the last.

    What lacks a page later, after the death of a process or a stop in order, was damaged.
    """
    filesystem = MemoryFileSystem()

    def begin() -> LogDirectories:
        directories = start(filesystem, "/one", flushes_first=True)
        directories.confirm_run()
        return directories

    directories = begin()
    for number in range(3):
        log = open_one(directories, number)
        for _ in range(3):
            append(log, payload=b"x" * 9_000)
        log.flush()
    filesystem.crash(Random(1))
    for number in range(3):
        lose_a_page(filesystem, number)
    directories = begin()
    directories.delete(partition(2))
    for number in range(2):
        assert open_one(directories, number).log_end_offset == 1
        directories.write_checkpoints({})
        filesystem.crash()
        directories = begin()

    for number in range(2):
        assert open_one(directories, number).log_end_offset == 1
    for _ in range(2):
        append(open_one(directories), payload=b"x" * 9_000)
    directories.write_checkpoints({})
    filesystem.crash()
    lose_a_page(filesystem, 0)
    with pytest.raises(LogCorrupt, match="valid batches stand"):
        open_one(begin())


def test_damage_after_a_stop_in_order_is_refused_though_power_was_lost() -> None:
    """Everything had been flushed: nothing can be missing."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one", flushes_first=True)
    log = open_one(directories)
    for _ in range(3):
        append(log, payload=b"x" * 9_000)
    directories.close({}, clean=True)
    filesystem.crash(Random(1))
    path = "/one/flights-0/00000000000000000000.log"
    filesystem.open(path).truncate(filesystem.size(path) - 10)
    with pytest.raises(LogCorrupt, match="Flushed records are damaged"):
        open_one(start(filesystem, "/one", flushes_first=True))


def test_broker_stopped_in_order_has_kept_all() -> None:
    """Whatever happened to the machine meanwhile."""
    filesystem = MemoryFileSystem()
    start(filesystem, "/one").close({}, clean=True)
    filesystem.crash(Random(1))
    assert start(filesystem, "/one").kept_all is True


def test_unreadable_checkpoint_costs_time_but_no_records() -> None:
    """Without a recovery point the whole log is scanned."""
    filesystem = MemoryFileSystem()
    with_checkpoint(filesystem)
    filesystem.crash()
    filesystem.open("/one/recovery-point-offset-checkpoint").truncate(5)
    log = open_one(start(filesystem, "/one"))
    assert (log.log_end_offset, log.recovery.scanned_bytes) == (3, 243)


def test_what_was_flushed_in_a_new_folder_survives_a_power_cut() -> None:
    """The folder's own name is made durable with the first flush, and the directory's at start."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/deep/down/one")
    flushed, empty = open_one(directories, 0), open_one(directories, 1)
    for _ in range(3):
        append(flushed)
    flushed.flush()
    filesystem.crash()
    directories = start(filesystem, "/deep/down/one")
    assert open_one(directories, 0).log_end_offset == 3
    # A partition that held nothing is made again.
    assert open_one(directories, 1).log_end_offset == empty.log_end_offset == 0


def test_making_partitions_waits_for_no_disk() -> None:
    """A topic of many partitions is there at once: nothing of it could be lost yet."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    synced: list[str] = []

    def watch(operation: str, path: str) -> None:
        if "fsync" in operation:
            synced.append(path)

    filesystem.fault = watch
    for number in range(50):
        open_one(directories, number)
    assert synced == []


def test_a_new_log_is_made_by_its_first_append() -> None:
    """Topics have thousands of partitions: until then nothing is asked of the disk."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    changes: list[tuple[str, str]] = []

    def note(operation: str, path: str) -> None:
        if operation != "read":
            changes.append((operation, path))

    filesystem.fault = note
    log = open_one(directories)
    assert (changes, ranges(log)) == ([], [])
    append(log)
    append(log)
    assert changes == [
        ("mkdir", "/one/flights-0"),
        ("open", "/one/flights-0/partition.metadata"),
        ("append", "/one/flights-0/partition.metadata"),
        ("open", "/one/flights-0/00000000000000000000.log"),
        ("size", "/one/flights-0/00000000000000000000.log"),
        ("append", "/one/flights-0/00000000000000000000.log"),
        ("append", "/one/flights-0/00000000000000000000.log"),
    ]
    assert ranges(log) == [(0, 0), (1, 1)]


def test_a_log_without_records_leaves_nothing_and_is_there_again() -> None:
    """After a clean stop, a kill and a power cut; a deletion has nothing to remove."""
    filesystem = MemoryFileSystem()
    for clean in (True, False):
        directories = start(filesystem, "/one")
        log = open_one(directories)
        log.begin_epoch(3)
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
        log.close(clean=clean)
        directories.close({partition(0): 0}, clean=clean)
        assert not [name for name in filesystem.listdir("/one") if name.startswith("flights")]
    directories = start(filesystem, "/one")
    open_one(directories)
    before = filesystem.listdir("/one")
    directories.delete(partition(0)).run()
    assert filesystem.listdir("/one") == before
    append(open_one(directories))
    filesystem.crash(Random(1))
    assert open_one(start(filesystem, "/one")).log_end_offset in (0, 1)


def test_whatever_needs_its_folder_makes_a_log_that_holds_nothing() -> None:
    """Flushing it, letting it begin elsewhere, and a first batch far from its start."""
    for number, act in enumerate(
        (
            lambda log: log.flush(),
            lambda log: restart_at(log, 7, 1_000),
            lambda log: log.roll(1_000, 2**31),
        )
    ):
        filesystem = MemoryFileSystem()
        act(open_one(start(filesystem, "/one"), number))
        names = filesystem.listdir(f"/one/flights-{number}")
        assert "partition.metadata" in names
        assert any(name.endswith(".log") for name in names)


def test_a_first_append_that_finds_the_disk_full_is_tried_again() -> None:
    """However far it came: the log begins once there is room, and is its own."""
    for steps in range(4):
        filesystem = MemoryFileSystem()
        directories = start(filesystem, "/one")
        log = open_one(directories)
        left = iter(range(steps))

        def refuse(_operation: str, path: str, left: Iterator[int] = left) -> OSError | None:
            if path.startswith("/one/flights-0") and next(left, None) is None:
                return OSError(errno.ENOSPC, "No space left on device")
            return None

        filesystem.fault = refuse
        with pytest.raises(DiskFull):
            append(log)
        filesystem.fault = None
        append(log)
        log.flush()
        filesystem.crash(Random(1))
        directories = start(filesystem, "/one")
        assert directories.found_at_start == {partition(0): TOPIC_ID}
        assert open_one(directories).log_end_offset == 1


def test_a_folder_whose_process_died_before_it_said_whose_it_is_is_taken() -> None:
    """Nothing can be in it, and nobody else's id stands there."""
    for steps in range(5):
        filesystem = MemoryFileSystem()
        directories = start(filesystem, "/one")
        log = open_one(directories)
        left = iter(range(steps))

        def die(_operation: str, path: str, left: Iterator[int] = left) -> OSError | None:
            if path.startswith("/one/flights-0") and next(left, None) is None:
                return OSError(errno.EIO, "Input/output error")
            return None

        filesystem.fault = die
        with pytest.raises(StorageError):
            append(log)
        filesystem.crash()
        directories = start(filesystem, "/one")
        append(open_one(directories))
        directories.close({}, clean=True)
        directories = start(filesystem, "/one")
        assert directories.found_at_start == {partition(0): TOPIC_ID}
        assert open_one(directories).log_end_offset == 1


def test_a_log_never_begins_over_records() -> None:
    """What stands there although nothing should is left alone."""
    filesystem = MemoryFileSystem()
    log = open_one(start(filesystem, "/one"))
    filesystem.mkdir("/one/flights-0")
    path = "/one/flights-0/00000000000000000000.log"
    filesystem.open(path, create=True).append(b"somebody else's")
    with pytest.raises(StorageError):
        append(log)
    assert filesystem.read_bytes(path) == b"somebody else's"


def test_a_log_that_was_promised_and_is_gone_is_missed() -> None:
    """An empty one in its place would hide the loss."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    append(open_one(directories))
    directories.close({}, clean=True)
    filesystem.rename("/one/flights-0", "/lost")
    with pytest.raises(LogCorrupt, match="flushed up to offset 1"):
        open_one(start(filesystem, "/one"))


def test_an_open_log_holds_one_descriptor(tmp_path: Path) -> None:
    """New, found after a crash or after a clean stop: a broker has thousands of logs."""

    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    for was_clean in (None, False, True):
        directories = LogDirectories(OsFileSystem(), [str(tmp_path)], cluster_id="mine", node_id=1)
        before = held()
        log = open_one(directories)
        append(log)
        assert held() - before == 1, f"after a clean stop: {was_clean}"
        clean = was_clean is False
        log.close(clean=clean)
        directories.close({}, clean=clean)


def test_a_clean_stop_writes_only_logs_that_changed_since_a_clean_start() -> None:
    """A restart with thousands of idle logs; an epoch without records is not news."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    for number in range(3):
        append(open_one(directories, number), 2)
    directories.close({}, clean=True)
    directories = start(filesystem, "/one")
    idle, grown, cut = (open_one(directories, number) for number in range(3))
    idle.begin_epoch(9)
    append(grown, 1)
    append(cut, 1)
    directories.truncate(partition(2), 2, 1_000)
    written: set[str] = set()

    def note(operation: str, path: str) -> None:
        if operation in ("fsync", "append", "rename"):
            written.update(part for part in path.split("/") if part.startswith("flights"))

    filesystem.fault = note
    directories.close({}, clean=True)
    assert written == {"flights-1", "flights-2"}
    filesystem.fault = None
    filesystem.crash(Random(1))
    directories = start(filesystem, "/one")
    logs = [open_one(directories, number) for number in range(3)]
    assert [log.log_end_offset for log in logs] == [2, 3, 2]
    assert not any(log.recovery.scanned_bytes for log in logs)


def test_many_logs_are_flushed_together_by_a_clean_stop(tmp_path: Path) -> None:
    """By threads on a real disk; the name of their folders is flushed once for all."""
    directories = LogDirectories(OsFileSystem(), [str(tmp_path)], cluster_id="mine", node_id=1)
    for number in range(20):
        append(open_one(directories, number), 3)
    directories.close({}, clean=True)
    directories = LogDirectories(OsFileSystem(), [str(tmp_path)], cluster_id="mine", node_id=1)
    assert directories.directories[0].run.was_clean
    for number in range(20):
        log = open_one(directories, number)
        assert ranges(log) == [(0, 2)]
        assert log.flush_state.snapshots == [3]
    directories.close({}, clean=True)
