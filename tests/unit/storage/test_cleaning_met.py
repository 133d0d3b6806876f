"""Laws of a replacement that meets a change of the log: whichever step of the cleaner's thread it
comes between, the log has what the change leaves, now and after a crash, and nothing else.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

import pytest

from ottla.ledger.history import StartCause
from ottla.storage.cleaner.compaction import Cleaning
from ottla.storage.cleaner.plan import LogCleaning
from ottla.storage.cleaner.swap import Swap
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files.names import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.log.range_account import Accounting
from ottla.storage.log.relocation import leave
from ottla.storage.log.retention import delete_old_segments
from ottla.storage.log.truncation import restart_at, truncate_to
from ottla.storage.segment.segments import Deletion, depart

from .compacting import add, compacted_log, found

Change = Callable[[Log], list[Deletion]]

# Where the log is cut. Segments are of two batches of two records.
CHANGES: dict[str, Change] = {
    "cut behind it": lambda log: truncate_to(log, 18, 5_000),
    "cut inside": lambda log: truncate_to(log, 5, 5_000),
    "cut to the start": lambda log: truncate_to(log, 0, 5_000),
    "begun anew": lambda log: restart_at(log, 40, 5_000),
    "its first segment gone": lambda log: start_at(log, 4),
    "all that is closed gone": lambda log: start_at(log, 20),
    "nothing": lambda _log: [],
}
MOMENTS = (
    "begun",
    "while names are made durable",
    "while the new segment is looked at",
    "announced",
    "taken over",
    "while old names are taken away durably",
    "put in place",
)


def start_at(log: Log, offset: int) -> list[Deletion]:
    """Delete the segments below `offset`, as retention does."""
    log.advance_log_start(offset, StartCause.DELETE_RECORDS, 5_000)
    return delete_old_segments(log, 5_000, log.log_end_offset)


def dirty() -> tuple[MemoryFileSystem, Log]:
    """Twenty-two records of three keys, flushed, in six segments."""
    filesystem = MemoryFileSystem()
    log = compacted_log(filesystem, segment_bytes=260)
    for number in range(11):
        add(log, [(b"key%d" % (number % 3), b"%020d" % number), (b"same", b"%020d" % number)])
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8, 12, 16, 20]
    log.flush()
    filesystem.fsync_directory("/kafka")
    filesystem.fsync_directory("/")
    return filesystem, log


class Ended(Exception):
    """Nobody goes on."""


@dataclass
class Meeting:
    """Cleans as the broker does; `change` comes at a moment of the first replacement, once."""

    filesystem: MemoryFileSystem
    log: Log
    moment: str
    change: Change | None
    # The cleaner's thread gets no further than that.
    ends_there: bool = False
    deletions: list[Deletion] = field(default_factory=list)

    def run(self) -> None:
        swaps = self.prepare()
        with contextlib.suppress(Ended):
            for number, swap in enumerate(swaps):
                if not swap.still_holds or not self.replace(swap):
                    for left in swaps[number:]:
                        left.remove()
                    break
        self.filesystem.fault = None
        assert self.change is None, "the moment has not come"
        for deletion in self.deletions:
            deletion.run()

    def prepare(self) -> list[Swap]:
        log = self.log
        log.update_config(replace(log.config, segment_bytes=520))
        cleaning = LogCleaning(log, 20)
        job = cleaning.job(0, now_ms=2_000, keys_max=1_000)
        outcome = Cleaning(self.filesystem, job, lambda _: None).run()
        log.update_config(replace(log.config, segment_bytes=260))
        assert [group.base_offsets for group in outcome.groups] == [[0, 4], [8, 12], [16]]
        return cleaning.swaps(outcome)

    def replace(self, swap: Swap) -> bool:
        swap.begin()
        self.at("begun")
        self.during("fsync", "while names are made durable", swap.announce)
        self.at("announced")
        if not swap.still_holds:
            return False
        swap.take_over()
        self.at("taken over")
        self.during("fsync", "while old names are taken away durably", swap.put_in_place)
        self.at("put in place")
        self.deletions.append(swap.finish())
        return True

    def at(self, moment: str) -> None:
        change = self.change
        if moment == self.moment and change is not None:
            self.change = None
            self.deletions += change(self.log)
            if self.ends_there:
                raise Ended

    def during(self, operation: str, moment: str, step: Callable[[], None]) -> None:
        """Let the moment come within `step`, before an operation on the disk."""

        def note(now: str, _path: str) -> None:
            if now == "open":
                self.at("while the new segment is looked at")
            elif now == operation:
                self.at(moment)

        self.filesystem.fault = note
        step()
        self.filesystem.fault = None


@pytest.mark.parametrize("ends_there", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_the_middle_of_a_replacement_holds(
    name: str, moment: str, ends_there: bool
) -> None:
    """Cut, emptied, or deleted at its start; then written to, and read after a power cut.

    Whether the cleaner goes on behind the change or not.
    """
    if name == "nothing" and ends_there:
        return
    for seed in range(3):
        filesystem, log = dirty()
        before = found(log)
        Meeting(filesystem, log, moment, CHANGES[name], ends_there).run()
        assert ends_there or log.replacement is None
        start, end = log.log_start_offset, log.log_end_offset
        shown = found(log)
        assert set(shown) <= set(before)
        present = [record for record in before if start <= record[0] < end]
        latest = {key: (offset, key, value) for offset, key, value in present}
        assert set(latest.values()) <= set(shown)
        for number in range(6):
            add(log, [(b"new%d" % number, b"%020d" % number), (b"also", b"%020d" % number)])
        assert [offset for offset, _, _ in found(log)[-12:]] == list(range(end, end + 12))
        log.flush()
        after = found(log)
        # The checkpoint of where the log starts is written later, by the same loop.
        filesystem.crash(Random(seed))
        again = compacted_log(
            filesystem,
            segment_bytes=260,
            recovery_point=log.flush_state.recovery_point,
            log_start_offset=start,
        )
        assert [one for one in found(again) if one[0] >= start] == after
        assert (again.log_start_offset, again.log_end_offset) == (start, end + 12)
        assert Accounting(again, start, end + 12).run().unexplained == 0
        names = filesystem.listdir(log.folder)
        leftovers = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
        assert not [name for name in names if name.endswith(leftovers)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_replacement_leaves_the_next_topic_of_that_name_alone(moment: str) -> None:
    """The topic is deleted and made again in the middle: no name in its folder changes."""
    filesystem, log = dirty()
    made: list[Log] = []

    def make_anew(old: Log) -> list[Deletion]:
        (deletion,) = depart([leave(old, UUID(int=7))])
        assert isinstance(deletion, Deletion)
        new = compacted_log(filesystem, segment_bytes=260)
        for number in range(9):
            add(new, [(b"key", b"%020d" % number), (b"same", b"%020d" % number)])
        new.flush()
        made.append(new)
        return [deletion]

    Meeting(filesystem, log, moment, make_anew).run()
    (new,) = made
    segments = [f"{segment.base_offset:020d}.log" for segment in new.segments]
    names = filesystem.listdir(new.folder)
    assert [name for name in names if ".log" in name] == segments
    assert len(found(new)) == 18


def test_files_are_found_whose_names_have_changed_in_the_cleaners_thread() -> None:
    """The log does not know yet: it reads indexes, times and what went all the same."""
    filesystem, log = dirty()
    swap = Meeting(filesystem, log, "", None).prepare()[2]
    for segment in log.segments.as_list()[:-1]:
        segment.indexes.loaded = False
    swap.begin()
    swap.announce()
    swap.take_over()
    swap.put_in_place()
    new = log.segments[4]
    new.close()
    assert (new.swap_suffix, new.indexes.loaded) == (SWAP_SUFFIX, False)
    assert new.known_max_timestamp() == 1_000
    assert new.file.size() == new.size
    assert Accounting(log, 16, 20).run().unexplained == 0
    new.read_index_files()
    swap.finish().run()
    assert new.swap_suffix == ""
    assert Accounting(log, 16, 20).run().unexplained == 0
