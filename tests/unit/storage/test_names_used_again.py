"""Laws of a topic that is deleted and made again: nothing of the first comes back with the name."""

import errno
from random import Random
from uuid import UUID

import pytest

from ottla.base.ids import TopicPartition
from ottla.storage.directory.future_logs import prepare_values
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import StorageError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)
from ottla.storage.log.log import Log

from .logs import append, ranges
from .test_log_directories import TOPIC_ID, open_one, partition, start, with_checkpoint

SECOND_ID = UUID("fedcba98-7654-3210-0123-456789abcdef")
FILES = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANED_OFFSETS)


class Killed(Exception):
    """Ends the process at a step."""


def named_in(filesystem: MemoryFileSystem, path: str = "/one") -> list[str]:
    """Checkpoints on the disk that hold a value for flights-0."""
    return [name for name in FILES if b"flights 0 " in filesystem.read_bytes(f"{path}/{name}")]


def first_topic(filesystem: MemoryFileSystem, *paths: str) -> LogDirectories:
    """A log of ten records whose first nine were deleted; all four checkpoints say so."""
    directories = start(filesystem, *(paths or ("/one",)))
    log = open_one(directories)
    append(log, 10)
    log.flush()
    log.advance_log_start(9)
    home = directories.home(partition(0))
    assert home is not None
    home.checkpoints.cleaned[partition(0)] = 9
    home.checkpoints.prepare_cleaned().run()
    directories.write_checkpoints({partition(0): 10})
    assert named_in(filesystem, home.path) == list(FILES)
    return directories


def reopened(filesystem: MemoryFileSystem, *paths: str) -> tuple[LogDirectories, Log]:
    directories = start(filesystem, *(paths or ("/one",)))
    return directories, open_one(directories, topic_id=SECOND_ID)


def check_second(directories: LogDirectories, log: Log, appended: int) -> None:
    """The log holds what the second topic was given, and nothing is known of the first."""
    assert (log.log_start_offset, log.log_end_offset) == (0, appended)
    assert ranges(log) == [(offset, offset) for offset in range(appended)]
    assert directories.high_watermark(partition(0)) <= appended
    home = directories.home(partition(0))
    assert home is not None
    assert home.checkpoints.cleaned.get(partition(0), 0) == 0


def delete_and_make_again(directories: LogDirectories, told: list[int]) -> None:
    """All steps from the deletion to the checkpoint after; `told` gets what is acknowledged."""
    directories.delete(partition(0)).run()
    log = open_one(directories, topic_id=SECOND_ID)
    for number in range(3):
        append(log)
        told[0] = number + 1
    log.flush()
    told[1] = 3
    home = directories.home(partition(0))
    assert home is not None
    home.checkpoints.prepare_cleaned().run()
    directories.write_checkpoints({partition(0): 3})


def killed_at(step: int, filesystem: MemoryFileSystem, told: list[int]) -> bool:
    """Delete and make again, killed at the operation of that number; whether it came so far."""
    directories = first_topic(filesystem)
    left = iter(range(step))

    def die(_operation: str, _path: str) -> None:
        if next(left, None) is None:
            raise Killed

    filesystem.fault = die
    try:
        delete_and_make_again(directories, told)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power cut"])
def test_a_crash_at_any_step_brings_nothing_of_the_first_topic_back(power: bool) -> None:
    """Between deletion, creation, first append, flush and the next periodic checkpoint."""
    for step in range(1_000):
        filesystem, told = MemoryFileSystem(), [0, 0]
        if not killed_at(step, filesystem, told):
            assert step > 30
            return
        filesystem.crash(Random(step) if power else None)
        directories, log = reopened(filesystem)
        # A batch that was written, but not acknowledged, may be there.
        least = told[1] if power else told[0]
        assert least <= log.log_end_offset <= told[0] + 1
        check_second(directories, log, log.log_end_offset)
        # And it goes on, through another crash.
        append(log)
        end = log.log_end_offset
        filesystem.crash()
        check_second(*reopened(filesystem), end)
    pytest.fail("it never came to its end")


def test_a_deletion_takes_the_values_out_of_all_four_checkpoints() -> None:
    """As in Kafka, when it returns: with others' values kept, and once for many partitions."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    append(open_one(directories, 1))
    directories.write_checkpoints({partition(1): 1})
    directories.delete(partition(0))
    assert named_in(filesystem) == []
    content = filesystem.read_bytes(f"/one/{HIGH_WATERMARKS}")
    assert content == b"0\n1\nflights 1 1\n"


def test_what_no_checkpoint_names_is_deleted_without_writing_any() -> None:
    """Topics that live shorter than a checkpoint's interval cost no more than before."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    append(open_one(directories, 1))
    changed: list[str] = []

    def note(_operation: str, path: str) -> None:
        if "checkpoint" in path:
            changed.append(path)

    filesystem.fault = note
    directories.delete(partition(1))
    assert changed == []


def test_a_folder_that_is_set_aside_takes_its_values_along() -> None:
    """The topic was deleted and made again while this broker was away."""
    filesystem = MemoryFileSystem()
    first_topic(filesystem)
    filesystem.crash()
    directories, log = reopened(filesystem)
    assert named_in(filesystem) == []
    append(log)
    check_second(directories, log, 1)
    filesystem.crash()
    check_second(*reopened(filesystem), 1)


def test_a_log_that_is_opened_again_keeps_its_values() -> None:
    """Also where it was first opened in place of an older topic's, and could not be."""
    filesystem = MemoryFileSystem()
    first_topic(filesystem)
    filesystem.crash()
    directories = start(filesystem, "/one")
    assert open_one(directories).log_start_offset == 9
    assert named_in(filesystem) == list(FILES)


def test_on_a_full_disk_a_topic_is_deleted_but_its_name_waits() -> None:
    """A deletion makes room; no log begins under the name while the disk speaks of the first."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    filesystem.capacity_bytes = 0
    directories.delete(partition(0))
    assert named_in(filesystem) == list(FILES)
    with pytest.raises(StorageError):
        open_one(directories, topic_id=SECOND_ID)
    filesystem.capacity_bytes = None
    log = open_one(directories, topic_id=SECOND_ID)
    assert named_in(filesystem) == []
    append(log)
    filesystem.crash()
    check_second(*reopened(filesystem), 1)


def test_a_crash_after_a_deletion_on_a_full_disk_is_known_by_the_deleted_folder() -> None:
    """Its values count for nothing: the folder's name says what became of the log."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    filesystem.capacity_bytes = 0
    directories.delete(partition(0))
    filesystem.crash()
    filesystem.capacity_bytes = None
    directories, log = reopened(filesystem)
    append(log)
    check_second(directories, log, 1)
    filesystem.crash()
    check_second(*reopened(filesystem), 1)


def test_a_disk_that_fails_keeps_the_log_and_says_why() -> None:
    """The folder stays where a checkpoint could not be written; the topic's name can be used."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)

    def fail(operation: str, path: str) -> OSError | None:
        is_meant = operation == "fsync" and RECOVERY_POINTS in path
        return OSError(errno.EIO, "Input/output error") if is_meant else None

    filesystem.fault = fail
    with pytest.raises(StorageError, match="write a checkpoint"):
        directories.delete(partition(0))
    assert filesystem.exists("/one/flights-0")
    filesystem.fault = None
    log = open_one(directories, topic_id=SECOND_ID)
    assert named_in(filesystem) == []
    append(log)
    filesystem.crash()
    check_second(*reopened(filesystem), 1)


def test_a_checkpoint_that_failed_does_not_stand_for_an_older_one() -> None:
    """The removal was prepared before it, runs after it, and must still be written."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    departure = directories.take_out(partition(0))
    removals = directories.prepare_removals()
    (newer,) = directories.prepare_checkpoints({})
    filesystem.capacity_bytes = 0
    with pytest.raises(StorageError):
        newer.run()
    filesystem.capacity_bytes = None
    for job in removals:
        job.run()
    assert named_in(filesystem) == []
    assert departure.folder == "/one/flights-0"


def moved(filesystem: MemoryFileSystem) -> LogDirectories:
    """The first topic's log, moved from /one to /two; no checkpoint was written after that."""
    directories = first_topic(filesystem, "/one", "/two")
    target = directories.at("/two")
    assert target is not None
    log = directories.home(partition(0)).logs[partition(0)]  # type: ignore[union-attr]
    copy = directories.open_future(partition(0), TOPIC_ID, log.config, target, 0, 1_000)
    content = log.segments.active.file.pread(log.segments.active.size, 0)
    copy.append_as_follower(bytearray(content), 1_000)
    target.futures[partition(0)] = copy
    prepare_values(target, copy, log.log_start_offset).run()
    directories.move(partition(0), target)().run()
    return directories


def test_a_log_that_was_moved_keeps_its_start_through_a_crash() -> None:
    """Deleted records do not come back in the other directory."""
    filesystem = MemoryFileSystem()
    moved(filesystem)
    filesystem.crash()
    directories = start(filesystem)
    assert open_one(directories).log_start_offset == 9
    assert directories.home(partition(0)) is directories.at("/two")


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("path", ["/one", "/two"])
def test_a_name_that_was_moved_and_deleted_begins_anew_in_either_directory(
    crashes: bool, path: str
) -> None:
    """The directory that the log left holds no values for it either."""
    filesystem = MemoryFileSystem()
    directories = moved(filesystem)
    if crashes:
        filesystem.crash()
        directories = start(filesystem)
    directories.delete(partition(0)).run()
    assert (named_in(filesystem, "/one"), filesystem.exists("/two/flights-0")) == ([], False)
    home = directories.at(path)
    assert home is not None
    directories.prefer(partition(0), home)
    log = open_one(directories, topic_id=SECOND_ID)
    append(log)
    assert directories.home(partition(0)) is home
    filesystem.crash()
    check_second(*reopened(filesystem, "/one", "/two"), 1)


def test_the_name_is_of_one_partition_alone() -> None:
    """What is forgotten of one partition is kept of its neighbours."""
    filesystem = MemoryFileSystem()
    directories = first_topic(filesystem)
    other = open_one(directories, 10)
    append(other, 5)
    other.flush()
    directories.write_checkpoints({})
    directories.delete(partition(0))
    content = filesystem.read_bytes(f"/one/{RECOVERY_POINTS}")
    assert content == b"0\n1\nflights 10 5\n"
    assert TopicPartition("flights", 10) in directories.directories[0].checkpoints.recovery_points


def test_many_partitions_are_deleted_with_one_write_of_the_checkpoints() -> None:
    """They leave in slices; what is said of all of them goes with the first."""
    filesystem = MemoryFileSystem()
    directories = start(filesystem, "/one")
    for number in range(6):
        append(open_one(directories, number))
    directories.write_checkpoints({})
    written: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation == "fsync" and RECOVERY_POINTS in path:
            written.append(path)

    filesystem.fault = note
    for number in range(6):
        directories.forget(partition(number))
    for number in range(6):
        directories.delete(partition(number))
    assert len(written) == 1
    assert filesystem.read_bytes(f"/one/{RECOVERY_POINTS}") == b"0\n0\n"


def test_a_cut_waits_while_the_disk_may_say_what_was_forgotten() -> None:
    """That a value is not known here any more does not make it low on the disk."""
    filesystem = MemoryFileSystem()
    directories, _ = with_checkpoint(filesystem)
    directories.forget(partition(0))
    assert not directories.is_low(partition(0), 1)
    directories.truncate(partition(0), 1, 1_000)
    filesystem.crash()
    assert open_one(start(filesystem, "/one")).log_end_offset == 1
