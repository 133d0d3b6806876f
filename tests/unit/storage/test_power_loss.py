"""Laws of what a crash leaves: all that was flushed, and behind it a prefix of the rest."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log

from .logs import FOLDER, append, flip, open_log, ranges

LOG = f"{FOLDER}/00000000000000000000.log"
# Records per batch; None stands for a flush, "checkpoint" for one with indexes.
steps = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 4), st.integers(0, 3_000)),
        st.sampled_from(["flush", "checkpoint"]),
    ),
    max_size=25,
)


def run(log: Log, todo: list[tuple[int, int] | str]) -> tuple[list[tuple[int, int]], int]:
    """Do the steps; returns all batches and the flushed end."""
    expected, sequence = [], 0
    log.flush(checkpoint=True)
    for step in todo:
        if isinstance(step, str):
            log.flush(checkpoint=step == "checkpoint")
            continue
        count, size = step
        # No zeros in what is written, so that lost pages can be told.
        appended = append(
            log, count, payload=b"x" * size, producer_id=1, producer_epoch=0, sequence=sequence
        )
        sequence += count
        expected.append((appended.base_offset, appended.last_offset))
    return expected, log.flush_state.recovery_point


def check_reopened(
    log: Log, expected: list[tuple[int, int]], flushed: int, *, segment_bytes: int
) -> None:
    found = ranges(log)
    assert found == expected[: len(found)]
    assert log.log_end_offset == (found[-1][1] + 1 if found else 0)
    assert log.log_end_offset >= flushed
    entries = log.producers.described()
    assert [entry.last_offset for entry in entries] == ([found[-1][1]] if found else [])
    # And it goes on: the retry of what was lost is no duplicate, nor is it out of order.
    appended = append(log, 1, producer_id=1, producer_epoch=0, sequence=log.log_end_offset)
    assert (appended.base_offset, appended.duplicate) == (found[-1][1] + 1 if found else 0, False)
    assert all(segment.size <= segment_bytes for segment in log.segments)


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 2**32), st.sampled_from([4_000, 1 << 20]))
def test_power_cut_keeps_what_was_flushed_and_a_prefix(
    todo: list[tuple[int, int] | str], seed: int, segment_bytes: int
) -> None:
    """Whatever pages, names and sectors are lost: no flushed record is, and no hole is served."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=segment_bytes)
    filesystem.fsync_directory("/")
    filesystem.fsync_directory("/kafka")
    expected, flushed = run(log, todo)
    filesystem.crash(Random(seed))
    try:
        again = open_log(filesystem, recovery_point=flushed, segment_bytes=segment_bytes)
    except LogCorrupt as refused:
        # A lost page inside one batch, with good ones behind it, looks like damage: then nothing
        # is cut or served, and the offset named is not below what was flushed.
        if refused.offset < flushed:
            raise
        return
    check_reopened(again, expected, flushed, segment_bytes=segment_bytes)


@settings(max_examples=100, deadline=None)
@given(steps, st.data(), st.sampled_from(["lost", "torn", "zeroed"]))
def test_any_byte_of_the_unsynced_end_may_be_lost_torn_or_zeroed(
    todo: list[tuple[int, int] | str], data: st.DataObject, kind: str
) -> None:
    """From any byte behind the flushed end on: the log opens, as a prefix on batch boundaries."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    expected, flushed = run(log, todo)
    size = filesystem.size(LOG)
    first = log.read(flushed, 1, max_offset=log.log_end_offset).position
    place = data.draw(st.integers(first, size))
    file = filesystem.open(LOG)
    if kind == "torn":
        file.truncate(place)
        file.append(data.draw(st.binary(min_size=0, max_size=600)))
    else:
        file.truncate(place)
        if kind == "zeroed":
            file.append(bytes(size - place))
    filesystem.crash()
    check_reopened(
        open_log(filesystem, recovery_point=flushed), expected, flushed, segment_bytes=1 << 30
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.data())
def test_any_flipped_byte_is_cut_or_refused_but_never_served(
    sizes: list[int], data: st.DataObject
) -> None:
    """One wrong byte behind the flushed end: a prefix without its batch, or a refusal.

    Offset and leader epoch stand before what the checksum covers: an offset that jumps is seen
    at the next batch, a wrong epoch is not seen.
    """
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    starts = []
    for size in sizes:
        starts.append(log.segments.active.size)
        append(log, payload=b"x" * size)
    number = data.draw(st.integers(0, len(sizes) - 1))
    is_last = number == len(sizes) - 1
    inside = data.draw(st.integers(8 if is_last else 0, 60 + sizes[number]))
    flip(filesystem, LOG, starts[number] + inside, data.draw(st.integers(1, 255)))
    if is_last and not 12 <= inside < 16:
        assert ranges(open_log(filesystem)) == [(offset, offset) for offset in range(number)]
    elif not 12 <= inside < 16:
        with pytest.raises(LogCorrupt) as caught:
            open_log(filesystem)
        assert caught.value.position in starts[number : number + 2]
    else:
        assert open_log(filesystem).log_end_offset == len(sizes)


def test_hole_in_what_a_lossy_broker_had_not_flushed_is_the_end_of_its_log() -> None:
    """Where the cluster knows that records are lost here, the rest comes from the leader."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    log.flush()
    hole = log.segments.active.size
    append(log, payload=b"x" * 200)
    append(log)
    flip(filesystem, LOG, hole + 100)
    filesystem.crash()
    with pytest.raises(LogCorrupt, match="valid batches stand"):
        open_log(filesystem, recovery_point=1)
    again = open_log(filesystem, recovery_point=1, is_lossy=True)
    assert ranges(again) == [(0, 0)]
