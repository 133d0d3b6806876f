"""Laws of logs whose machine loses power again and again, where flushes come before promises."""

from random import Random

import pytest

from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import end_truncated_to, truncate_to

from .logs import FOLDER, append, flip, open_log, overwrite, ranges, read_headers

BATCH_BYTES = 81
TWO = 2 * BATCH_BYTES
FIRST = f"{FOLDER}/00000000000000000000.log"
# First and last offset, leader epoch, checksum.
Batch = tuple[int, int, int, int]


def batches(log: Log) -> list[Batch]:
    found: list[Batch] = []
    offset = log.log_start_offset
    while headers := read_headers(log, offset):
        found += [(h.base_offset, h.last_offset, h.leader_epoch, h.crc) for h in headers]
        offset = found[-1][1] + 1
    return found


class Life:
    """A log, its disk, and what may be found there after the next power cut."""

    def __init__(self, seed: int, *, cuts: bool) -> None:
        self.random = Random(seed)
        self.cuts = cuts
        self.filesystem = MemoryFileSystem()
        self.filesystem.mkdir("/kafka")
        self.filesystem.fsync_directory("/")
        self.filesystem.fsync_directory("/kafka")
        self.segment_bytes = self.random.choice([200, 500, 4_000, 1 << 20])
        self.checkpoint = 0
        self.lost_power = False
        # What was flushed last, and the log as it was before each cut since then and is now.
        self.flushed: list[Batch] = []
        self.versions: list[list[Batch]] = [[]]
        self.appended = self.epoch = 0

    def open(self) -> Log | None:
        try:
            log = open_log(
                self.filesystem,
                recovery_point=self.checkpoint,
                lost_power=self.lost_power,
                segment_bytes=self.segment_bytes,
            )
        except LogCorrupt:
            # A follower's cut that was half undone looks like damage: it begins anew.
            assert len(self.versions) > 1
            return None
        log.flush_state.has_new_folder = not self.checkpoint
        found = batches(log)
        assert found[: len(self.flushed)] == self.flushed
        if self.lost_power:
            assert any(found == version[: len(found)] for version in self.versions)
        else:
            assert found == self.versions[-1]
        if len(self.versions) == 1:
            self.versions.clear()
        self.versions.append(found)
        return log

    def go_on(self, log: Log) -> None:
        """Append, flush or cut, some times."""
        random = self.random
        for _ in range(random.randint(0, 25)):
            kind = random.random()
            if kind < 0.8:
                self.appended += 1
                size = random.choice([5, 30, 300, 3_000, 9_000])
                payload = bytes([97 + self.appended % 20]) * size
                append(log, random.randint(1, 3), payload=payload, leader_epoch=self.epoch)
                self.versions[-1] = batches(log)
            elif kind < 0.95 or not self.cuts:
                log.flush(checkpoint=random.random() < 0.3)
                self.flushed = batches(log)
                self.versions = [self.flushed]
                if random.random() < 0.5:
                    self.checkpoint = log.flush_state.recovery_point
            else:
                self.cut(log)

    def cut(self, log: Log) -> None:
        end = end_truncated_to(log, self.random.randint(0, log.log_end_offset))
        self.checkpoint = min(self.checkpoint, end)
        truncate_to(log, end, 1_000)
        self.flushed = [batch for batch in self.flushed if batch[1] < log.log_end_offset]
        self.versions.append(batches(log))
        self.epoch += 1

    def stop(self) -> None:
        self.lost_power = self.random.random() < 0.7
        self.filesystem.crash(self.random if self.lost_power else None)


@pytest.mark.parametrize("cuts", [False, True])
def test_every_restart_finds_what_was_flushed_and_a_beginning_of_the_rest(cuts: bool) -> None:
    """Segments, pages, names and cuts are lost in any order: no log is refused but one that was
    cut and not flushed since, none has a hole, and old records never follow new ones."""
    for seed in (187316, *range(60)):
        life = Life(seed, cuts=cuts)
        for _ in range(life.random.randint(2, 8)):
            log = life.open()
            if log is None:
                break
            life.go_on(log)
            life.stop()


def torn_inside(flushed: int = 0) -> MemoryFileSystem:
    """Three segments of two batches; the first one's second batch is half lost."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=TWO)
    for number in range(6):
        if flushed and number == flushed:
            log.flush()
        append(log)
    filesystem.crash()
    filesystem.open(FIRST).truncate(TWO - 30)
    return filesystem


def test_closed_segment_that_a_power_cut_tore_ends_the_log() -> None:
    """The next segment was not flushed either, whatever of it has reached the disk."""
    filesystem = torn_inside()
    log = open_log(filesystem, recovery_point=1, lost_power=True, segment_bytes=TWO)
    assert ranges(log) == [(0, 0)]
    assert filesystem.listdir(FOLDER) == ["00000000000000000000.log"]
    assert append(log).base_offset == 1


def test_closed_segment_is_not_cut_where_no_page_can_be_missing() -> None:
    """A process that died has left all it wrote: what lacks now was damaged."""
    filesystem = torn_inside()
    with pytest.raises(LogCorrupt, match="valid batches stand in the next segment"):
        open_log(filesystem, recovery_point=1, segment_bytes=TWO)


def test_closed_segment_below_the_recovery_point_is_not_cut() -> None:
    """What was flushed is promised."""
    filesystem = torn_inside()
    with pytest.raises(LogCorrupt, match="Flushed records are damaged"):
        open_log(filesystem, recovery_point=2, lost_power=True, segment_bytes=TWO)


def test_closed_segment_that_was_flushed_since_the_checkpoint_is_not_cut() -> None:
    """The checkpoint is old, but the flush has left a producer snapshot behind the segment."""
    filesystem = torn_inside(flushed=5)
    assert filesystem.exists(f"{FOLDER}/00000000000000000002.snapshot")
    with pytest.raises(LogCorrupt, match="Flushed records are damaged"):
        open_log(filesystem, recovery_point=1, lost_power=True, segment_bytes=TWO)


def test_flush_after_a_recovery_leaves_the_same_evidence() -> None:
    """Segments that recovery had to read were closed by nobody it knows."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=TWO)
    for _ in range(3):
        append(log)
    filesystem.crash()
    open_log(filesystem, segment_bytes=TWO).flush()
    filesystem.crash()
    filesystem.open(FIRST).truncate(TWO - 30)
    with pytest.raises(LogCorrupt, match="Flushed records are damaged"):
        open_log(filesystem, lost_power=True, segment_bytes=TWO)


def test_page_that_is_missing_inside_a_batch_ends_the_log() -> None:
    """Zeros may be records, but not a whole page of them, in a bad batch, after a power cut."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for _ in range(3):
        append(log, payload=b"x" * 9_000)
    filesystem.crash()
    overwrite(filesystem, FIRST, 12_288, bytes(4_096))
    with pytest.raises(LogCorrupt, match="valid batches stand at byte"):
        open_log(filesystem, recovery_point=1)
    assert ranges(open_log(filesystem, recovery_point=1, lost_power=True)) == [(0, 0)]


def test_damaged_batch_without_a_missing_page_is_refused_after_a_power_cut_too() -> None:
    """A power cut turns no single bits over."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for _ in range(3):
        append(log)
    flip(filesystem, FIRST, BATCH_BYTES + 70)
    with pytest.raises(LogCorrupt, match="checksum"):
        open_log(filesystem, recovery_point=1, lost_power=True)


def test_what_recovery_cut_off_does_not_come_back() -> None:
    """The next power cut must not put it in front of what was written in its place."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=TWO + 40)
    for _ in range(2):
        append(log)
    filesystem.open(FIRST).append(b"\2" * 40)
    log.flush()
    filesystem.crash()
    for seed in range(20):
        log = open_log(filesystem, recovery_point=2, lost_power=True, segment_bytes=TWO + 40)
        append(log, payload=b"y" * 200)
        filesystem.crash(Random(seed))
        assert filesystem.size(FIRST) == TWO


def test_segments_before_a_cut_are_flushed_as_before() -> None:
    """They were closed and waited for a flush when a leader had the log cut behind them."""
    for seed in range(5):
        filesystem = MemoryFileSystem()
        log = open_log(filesystem, segment_bytes=TWO)
        for _ in range(6):
            append(log)
        truncate_to(log, 3, 1_000)
        assert [segment.base_offset for segment in log.flush_state.rolled] == [0]
        log.flush()
        filesystem.fsync_directory("/kafka")
        filesystem.fsync_directory("/")
        filesystem.crash(Random(seed))
        again = open_log(filesystem, recovery_point=3, segment_bytes=TWO)
        assert ranges(again) == [(0, 0), (1, 1), (2, 2)]


def test_segments_that_recovery_dropped_do_not_come_back() -> None:
    """The next power cut must not put old records behind those that were written meanwhile."""
    for seed in range(20):
        filesystem = torn_inside()
        for name in ("/", "/kafka", FOLDER):
            filesystem.fsync_directory(name)
        open_log(filesystem, recovery_point=1, lost_power=True, segment_bytes=TWO)
        filesystem.crash(Random(seed))
        assert filesystem.listdir(FOLDER) == ["00000000000000000000.log"]


def test_cut_that_a_power_cut_undoes_leaves_one_history() -> None:
    """A follower was cut and went on in a new segment: that, or what was there before the cut."""
    seen = set()
    for seed in range(20):
        filesystem = MemoryFileSystem()
        log = open_log(filesystem, segment_bytes=4 * BATCH_BYTES)
        for _ in range(4):
            append(log)
        log.flush()
        for name in ("/", "/kafka"):
            filesystem.fsync_directory(name)
        truncate_to(log, 2, 1_000)
        append(log, payload=b"y" * 300, leader_epoch=1)
        assert [segment.base_offset for segment in log.segments] == [0, 2]
        filesystem.crash(Random(seed))
        log = open_log(filesystem, recovery_point=2, lost_power=True, segment_bytes=4 * BATCH_BYTES)
        found = [(first, epoch) for first, _, epoch, _ in batches(log)]
        assert log.log_end_offset == len(found)
        seen.add(tuple(found))
    old = ((0, 0), (1, 0), (2, 0), (3, 0))
    assert seen == {old, old[:2]}


def test_records_of_an_older_term_behind_newer_ones_were_cut_off() -> None:
    """A power cut brought their segment back, exactly where the newer ones end."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=TWO)
    append(log, leader_epoch=0)
    append(log, leader_epoch=2)
    filesystem.crash()
    old = MemoryFileSystem()
    log = open_log(old, segment_bytes=TWO)
    for _ in range(3):
        append(log, leader_epoch=1)
    name = f"{FOLDER}/00000000000000000002.log"
    filesystem.open(name, create=True).append(old.read_bytes(name))
    log = open_log(filesystem, recovery_point=1, lost_power=True, segment_bytes=TWO)
    assert ranges(log) == [(0, 0), (1, 1)]
    assert log.leader_epochs.entries == [(0, 0), (2, 1)]
