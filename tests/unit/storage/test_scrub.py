"""Laws of the scrub: whatever bit of a log turns over is found, and what is whole is left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.retention import delete_old_segments
from ottla.storage.log.scrub import STEP_BYTES, SegmentScrub, scrubs
from ottla.storage.log.truncation import truncate_to

from .logs import FOLDER, append, flip, open_log

FIRST = f"{FOLDER}/00000000000000000000.log"


def look_through(log: Log) -> int:
    """Scrub all segments; how many bytes were read."""
    taken = 0
    for scrub in scrubs(log):
        while not scrub.is_done:
            taken += scrub.step()
        scrub.close()
    return taken


def filled() -> tuple[MemoryFileSystem, Log]:
    """Three segments, of three batches but the last, in two terms."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=300)
    for number in range(7):
        append(log, 2, payload=bytes([number]) * 30, leader_epoch=1 + number // 4)
    assert len(log.segments) == 3
    return filesystem, log


def test_a_whole_log_is_left_alone() -> None:
    """Every byte is read once, the active segment's included."""
    _, log = filled()
    assert look_through(log) == log.size_bytes


@given(segment=st.integers(0, 2), position=st.floats(0, 1, exclude_max=True))
@settings(max_examples=200, deadline=None)
def test_any_flipped_bit_is_found(segment: int, position: float) -> None:
    """Header or records, first segment or active one: file and place are told, and a remedy."""
    filesystem, log = filled()
    wanted = log.segments[segment]
    bit = int(position * wanted.size * 8)
    flip(filesystem, wanted.path(), bit // 8, 1 << bit % 8)
    with pytest.raises(LogCorrupt, match="restore the file") as caught:
        look_through(log)
    assert caught.value.path == wanted.path()
    assert 0 <= caught.value.position < wanted.size


def test_damage_is_found_at_its_batch() -> None:
    """The position is the batch's first byte, the offset its first record's."""
    filesystem, log = filled()
    flip(filesystem, FIRST, 91 + 70)
    with pytest.raises(LogCorrupt) as caught:
        look_through(log)
    assert (caught.value.position, caught.value.offset) == (91, 2)


def test_damage_is_found_again_at_a_second_look() -> None:
    """Who looks again finds the same, and not what a first look has left behind."""
    filesystem, log = filled()
    flip(filesystem, FIRST, 91 + 70)
    scrub = scrubs(log)[0]
    told = []
    for _ in range(2):
        with pytest.raises(LogCorrupt) as caught:
            scrub.step()
        told.append(caught.value.message)
    assert told[0] == told[1]


def test_batches_larger_than_a_step_are_read_whole() -> None:
    """A step ends between batches, however large they are."""
    log = open_log()
    for number in range(3):
        append(log, payload=bytes([number]) * (STEP_BYTES + 1))
    assert look_through(log) >= log.size_bytes


def test_what_is_appended_meanwhile_is_left_to_the_next_scrub() -> None:
    """A scrub looks at the segment as it stood when it began."""
    log = open_log()
    append(log, payload=b"a" * 30)
    (scrub,) = scrubs(log)
    append(log, payload=b"b" * 30)
    scrub.step()
    assert scrub.is_done
    assert scrub.still_holds


@pytest.mark.parametrize("change", ["truncated", "deleted", "offline"])
def test_a_scrub_of_what_is_gone_says_so(change: str) -> None:
    """What was found in a segment that was cut or removed meanwhile means nothing."""
    _, log = filled()
    scrub: SegmentScrub = scrubs(log)[0]
    if change == "truncated":
        truncate_to(log, 3, 2_000)
    elif change == "deleted":
        log.advance_log_start(8)
        delete_old_segments(log, 2_000, log.log_end_offset)
    else:
        log.offline = "its disk failed"
    assert not scrub.still_holds
