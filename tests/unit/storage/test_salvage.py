"""Laws of reading past damage, and of making a log of what is left."""

import pytest

from ottla.storage.directory.salvage import SALVAGE_MARKER, mark, open_salvaged
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.recovery.readable import Damage, Whole

from .logs import FOLDER, append, open_log

SEGMENT = f"{FOLDER}/{0:020d}.log"


def damaged(place: int, content: bytes, batches: int = 6, size: int = 1 << 20) -> MemoryFileSystem:
    """A closed log of equal batches of two records; the second batch is changed at `place`."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=size)
    for _ in range(batches):
        append(log, 2)
    each = log.segments.first.size // (batches if len(log.segments) == 1 else 2)
    log.close(clean=True, now_ms=0)
    node = filesystem._file(SEGMENT)  # A disk does not ask.
    node.content[each + place : each + place + len(content)] = content
    return filesystem


def salvaged(filesystem: MemoryFileSystem, recovery_point: int = 12, *, clean: bool = True) -> Log:
    return open_salvaged(
        filesystem,
        FOLDER,
        lambda *, recovery_point, clean: open_log(
            filesystem, recovery_point=recovery_point, clean=clean
        ),
        recovery_point,
        clean=clean,
    )


def offsets(log: Log) -> list[int]:
    """The base offsets of all batches with records."""
    return [
        each.header.base_offset
        for part in log.readable(1_000)
        for each in part
        if isinstance(each, Whole) and each.header.record_count
    ]


@pytest.mark.parametrize("place", [0, 5, 8, 11, 16])
def test_a_header_that_the_checksum_does_not_cover_is_mended(place: int) -> None:
    """Base offset, length, magic number: no record is lost, and the log opens ever after."""
    filesystem = damaged(place, b"\x5a")
    with pytest.raises(LogCorrupt):
        open_log(filesystem, recovery_point=12, clean=True)
    log = salvaged(filesystem)
    assert offsets(log) == [0, 2, 4, 6, 8, 10]
    assert log.log_end_offset == 12
    assert any("mended" in note for note in log.recovery.salvaged)
    assert filesystem.exists(SEGMENT + ".damaged")
    log.close(clean=True, now_ms=0)
    again = open_log(filesystem, recovery_point=12, clean=True)
    assert offsets(again) == [0, 2, 4, 6, 8, 10]


def test_only_the_batch_that_cannot_be_read_is_lost() -> None:
    """Its header is gone: what stands behind it is found by its own."""
    filesystem = damaged(0, b"\xff" * 61)
    log = salvaged(filesystem)
    assert offsets(log) == [0, 4, 6, 8, 10]
    assert log.log_end_offset == 12
    # It is written on.
    append(log, 2)
    assert offsets(log) == [0, 4, 6, 8, 10, 12]


def test_offsets_of_a_lost_end_are_not_given_out_again() -> None:
    """A batch without records stands for them."""
    filesystem = damaged(0, b"\xff" * 4_000)
    log = salvaged(filesystem)
    assert offsets(log) == [0]
    assert log.log_end_offset == 12
    assert append(log).base_offset == 12
    assert any("offsets 2 to 11 are lost" in note for note in log.recovery.salvaged)


def test_a_cut_off_file_is_salvaged_too() -> None:
    """After a crash, with a recovery point behind what is left."""
    filesystem = damaged(0, b"")
    node = filesystem._file(SEGMENT)
    del node.content[len(node.content) // 2 + 10 :]
    with pytest.raises(LogCorrupt):
        open_log(filesystem, recovery_point=12)
    log = salvaged(filesystem, clean=False)
    assert offsets(log) == [0, 2, 4]
    assert log.log_end_offset == 12


def test_segments_behind_a_damaged_one_stay() -> None:
    """After an unclean stop, too, when recovery would drop what it does not reach."""
    filesystem = damaged(0, b"\xff" * 100, size=250)
    log = salvaged(filesystem, recovery_point=0, clean=False)
    assert len(log.segments) > 1
    assert offsets(log)[-1] == 10
    assert 2 not in offsets(log)


def test_what_was_marked_while_it_was_in_use_is_salvaged_once() -> None:
    """A wrong checksum below the recovery point is not looked for when a log is opened."""
    filesystem = damaged(65, b"\x5a")
    open_log(filesystem, recovery_point=12, clean=True).close(clean=True, now_ms=0)
    mark(filesystem, FOLDER)
    log = salvaged(filesystem)
    assert offsets(log) == [0, 4, 6, 8, 10]
    assert not filesystem.exists(f"{FOLDER}/{SALVAGE_MARKER}")
    assert not any(isinstance(each, Damage) for part in log.readable(1_000) for each in part)


def test_a_good_log_is_left_as_it_is() -> None:
    """Nothing is written, nothing is told."""
    filesystem = damaged(0, b"")
    before = filesystem.read_bytes(SEGMENT)
    log = salvaged(filesystem)
    assert log.recovery.salvaged == []
    assert filesystem.read_bytes(SEGMENT) == before
    assert not filesystem.exists(SEGMENT + ".damaged")


@pytest.mark.parametrize("step", range(40))
def test_a_power_cut_in_the_middle_loses_nothing_more(step: int) -> None:
    """Whatever was done up to then: the next start salvages the same."""
    filesystem = damaged(0, b"\xff" * 61)
    done = 0

    class PowerCut(Exception):
        pass

    def cut(*_: object) -> None:
        nonlocal done
        done += 1
        if done > step:
            raise PowerCut

    check = filesystem.check
    filesystem.check = lambda operation, path: (cut(), check(operation, path))[1]  # type: ignore[method-assign]
    try:
        salvaged(filesystem)
    except PowerCut:
        filesystem.check = check  # type: ignore[method-assign]
        filesystem.crash()
    else:
        filesystem.check = check  # type: ignore[method-assign]
    assert offsets(salvaged(filesystem)) == [0, 4, 6, 8, 10]
