"""Laws of a log's ledger: whatever is done to a log, every offset is explained by it."""

import contextlib
import errno
from random import Random

import pytest

from ottla.ledger.account import Account
from ottla.ledger.history import Loss, StartCause
from ottla.ledger.removals import BEFORE_COPY, UNRECORDED
from ottla.storage.disk.errors import StorageError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files.names import LEDGER, LEDGER_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.log.range_account import Accounting
from ottla.storage.log.relocation import take_over
from ottla.storage.log.retention import delete_old_segments, note_old_segments, old_segments
from ottla.storage.log.truncation import begin_within, restart_at, truncate_to

from .batches import batch, marker, parsed
from .compacting import DAY_MS, add, clean, compacted_log
from .logs import FOLDER, append, open_log


def account(log: Log, start: int = 0, end: int | None = None) -> Account:
    """The account of a range, or of all."""
    return Accounting(log, start, log.log_end_offset if end is None else end).run()


def terms(found: Account) -> dict[str, int]:
    """Its terms that are not 0."""
    names = ("data", "control", "aborted", "undecided", "compacted", "deleted", "lost")
    held = {name: getattr(found, name) for name in (*names, "unexplained")}
    return {name: count for name, count in held.items() if count}


def by_pass(found: Account) -> dict[int, int]:
    """Compacted offsets by the number of the pass."""
    return {one.number: count for one, count in found.passes.items()}


def by_cause(found: Account) -> dict[StartCause, int]:
    """Deleted offsets by cause."""
    counts: dict[StartCause, int] = {}
    for one in found.deletions:
        for cause, count in one.counts.items():
            counts[cause] = counts.get(cause, 0) + count
    return counts


def dirty() -> Log:
    """A log with keys that come back, in several segments."""
    log = compacted_log(MemoryFileSystem(), segment_bytes=300)
    for number in range(8):
        add(log, [(b"key%d" % (number % 3), b"old%d" % number), (b"often", b"%d" % number)])
    add(log, [(b"last", b"x" * 300)])
    return log


def copied(source: Log, filesystem: MemoryFileSystem | None = None, **settings: int) -> Log:
    """A follower's copy of all that `source` holds."""
    log = compacted_log(filesystem, **settings)
    log.ledger.history.compacted_to(source.ledger.history.compacted_below)
    copy_rest(source, log)
    return log


def copy_rest(source: Log, log: Log) -> None:
    """Copy what `log` lacks."""
    while log.log_end_offset < source.log_end_offset:
        found = source.read(log.log_end_offset, 1000, max_offset=source.log_end_offset)
        log.append_as_follower(found.file.pread(found.size, found.position), 5_000)


def transactional(log: Log, count: int, sequence: int) -> None:
    """A batch of a transaction of producer 7."""
    encoded = batch(count, attributes=0x10, producer_id=7, producer_epoch=0, sequence=sequence)
    log.append_as_leader(*parsed(encoded), 0, 1_000)


def end(log: Log, *, commit: bool) -> None:
    """The marker of its transaction."""
    log.append_as_leader(*parsed(marker(commit=commit, producer_id=7)), 0, 1_000)


def test_a_plain_log_is_all_data() -> None:
    """Any range of it has as many records as offsets."""
    log = open_log()
    append(log, 10)
    append(log, 5)
    assert terms(account(log)) == {"data": 15}
    assert terms(account(log, 3, 12)) == {"data": 9}
    assert terms(account(log, 4, 4)) == {}


def test_transactions_are_told_by_their_outcome() -> None:
    """Committed, aborted, undecided; the markers are control."""
    log = open_log()
    append(log, 2)
    transactional(log, 3, 0)
    end(log, commit=True)
    transactional(log, 4, 3)
    append(log, 1)
    end(log, commit=False)
    transactional(log, 5, 7)
    assert terms(account(log)) == {"data": 6, "control": 2, "aborted": 4, "undecided": 5}
    assert terms(account(log, 8, 14)) == {"data": 1, "aborted": 2, "control": 1, "undecided": 2}


def test_what_compaction_took_is_laid_to_its_pass() -> None:
    """Each pass has its own count, and the whole balances."""
    log = dirty()
    first = clean(log)
    went = first.records_read - first.records_kept
    assert terms(account(log)) == {"data": 17 - went, "compacted": went}
    assert by_pass(account(log)) == {1: went}
    add(log, [(b"key0", b"newer"), (b"often", b"newer")])
    add(log, [(b"other", b"x" * 300)])
    clean(log, first_dirty=first.end)
    found = account(log)
    assert found.unexplained == 0
    assert by_pass(found) == {1: went, 2: found.compacted - went}
    assert found.compacted > went


def test_every_range_of_a_compacted_log_balances() -> None:
    """Also where it cuts batches, gaps and cells."""
    log = dirty()
    clean(log)
    whole = log.log_end_offset
    for start in range(whole + 1):
        for stop in range(start, whole + 1):
            assert account(log, start, stop).unexplained == 0


def test_the_notes_survive_a_restart() -> None:
    """They stand beside the segments."""
    log = dirty()
    clean(log)
    before = account(log)
    log.close(clean=True)
    again = compacted_log_again(log)
    assert terms(account(again)) == terms(before)
    assert by_pass(account(again)) == by_pass(before)


def compacted_log_again(log: Log, **settings: int | bool) -> Log:
    """The same log, opened anew after a kill."""
    return open_log(
        log.filesystem,
        recovery_point=log.flush_state.recovery_point,
        log_start_offset=log.log_start_offset,
        config=log.config,
        **settings,  # type: ignore[arg-type]
    )


def test_a_hole_that_no_pass_noted_is_unexplained() -> None:
    """Without the notes of a segment its holes are nobody's: that is not made up."""
    log = dirty()
    clean(log)
    went = account(log).compacted
    log.close(clean=True)
    filesystem = log.filesystem
    for name in filesystem.listdir(FOLDER):
        if name.endswith(LEDGER_SUFFIX):
            filesystem.unlink(f"{FOLDER}/{name}")
    found = account(compacted_log_again(log))
    assert (found.compacted, found.unexplained) == (0, went)


def test_what_was_before_the_ledger_is_told_as_that() -> None:
    """A log that another program wrote has no notes: neither of its holes nor of its start."""
    log = dirty()
    clean(log)
    went = account(log, 2).compacted
    log.close(clean=True)
    filesystem = log.filesystem
    for name in filesystem.listdir(FOLDER):
        if name.endswith((LEDGER_SUFFIX, LEDGER)):
            filesystem.unlink(f"{FOLDER}/{name}")
    log.log_start_offset = 2
    again = compacted_log_again(log)
    found = account(again)
    assert by_pass(found) == {UNRECORDED: went}
    assert by_cause(found) == {StartCause.UNRECORDED: 2}
    assert found.unexplained == 0
    append(again, 3)
    assert account(again).unexplained == 0


def test_retention_says_by_which_setting() -> None:
    """What is too old, and then what is too much."""
    log = open_log(segment_bytes=300, retention_ms=1_000, retention_bytes=100)
    for number in range(6):
        append(log, 3, payload=b"x" * 200, timestamp=1_000 if number < 2 else 10_000)
    delete_old_segments(log, 10_000, log.log_end_offset)
    found = account(log)
    assert by_cause(found) == {StartCause.RETENTION_TIME: 6, StartCause.RETENTION_BYTES: 9}
    assert terms(found) == {"data": 3, "deleted": 15}


def test_deleted_records_are_told_apart_from_retention() -> None:
    """Of a segment that retention takes only the rest is laid to it."""
    log = open_log(segment_bytes=300, retention_ms=1_000)
    for _ in range(3):
        append(log, 3, payload=b"x" * 200, timestamp=1_000)
    log.advance_log_start(4, StartCause.DELETE_RECORDS, 1_500)
    assert terms(account(log)) == {"data": 5, "deleted": 4}
    delete_old_segments(log, 10_000, 9)
    assert by_cause(account(log)) == {StartCause.DELETE_RECORDS: 4, StartCause.RETENTION_TIME: 5}
    assert terms(account(log)) == {"deleted": 9}


def test_history_outlives_the_segments() -> None:
    """And a restart."""
    log = open_log(segment_bytes=300, retention_ms=1_000)
    for _ in range(3):
        append(log, 3, payload=b"x" * 200, timestamp=1_000)
    delete_old_segments(log, 10_000, 9)
    log.flush()
    again = open_log(log.filesystem, recovery_point=9)
    assert terms(account(again)) == {"deleted": 9}
    assert by_cause(account(again)) == {StartCause.RETENTION_TIME: 9}


def test_a_copy_notes_the_holes_it_was_given() -> None:
    """Of those that the leader says it made; they are laid to its passes, before the copy."""
    source = dirty()
    outcome = clean(source)
    source.ledger.history.compacted_to(outcome.end)
    log = copied(source, segment_bytes=200)
    assert terms(account(log)) == terms(account(source))
    assert set(by_pass(account(log))) == {BEFORE_COPY}
    clean(log)
    assert account(log).unexplained == 0


def test_a_hole_that_the_leader_did_not_speak_of_is_no_compaction() -> None:
    """A copy launders nothing."""
    source = dirty()
    clean(source)
    log = copied(source)
    found = account(log)
    assert (found.compacted, found.unexplained) == (0, account(source).compacted)


def test_a_copy_that_was_killed_knows_its_holes_again() -> None:
    """What was not flushed is noted again from the batches, and nothing twice."""
    source = dirty()
    source.ledger.history.compacted_to(clean(source).end)
    expected = terms(account(source))
    for flushed in range(source.log_end_offset):
        filesystem = MemoryFileSystem()
        log = compacted_log(filesystem, segment_bytes=200)
        log.ledger.history.compacted_to(source.ledger.history.compacted_below)
        while log.log_end_offset <= flushed:
            found = source.read(log.log_end_offset, 1, max_offset=source.log_end_offset)
            log.append_as_follower(found.file.pread(found.size, found.position), 5_000)
        log.flush()
        checkpoint = log.flush_state.recovery_point
        copy_rest(source, log)
        if flushed % 2:
            log.flush()
        again = open_log(filesystem, recovery_point=checkpoint, config=log.config)
        assert terms(account(again)) == expected, flushed


def test_a_cut_in_the_middle_of_holes_counts_them_anew() -> None:
    """Wherever a compacted log is cut, what is left balances, then and after a restart."""
    source = dirty()
    source.ledger.history.compacted_to(clean(source).end)
    for cut in range(1, source.log_end_offset):
        log = copied(source, segment_bytes=400)
        log.flush()
        log.flush_state.lower_recovery_point(cut)
        truncate_to(log, cut, 6_000)
        assert account(log).unexplained == 0, cut
        again = open_log(
            log.filesystem, recovery_point=log.flush_state.recovery_point, config=log.config
        )
        assert account(again).unexplained == 0, cut
        copy_rest(source, again)
        assert terms(account(again)) == terms(account(source)), cut


def test_a_replica_made_anew_knows_why_it_begins_where_it_does() -> None:
    """By the leader's word, and where that lacks, that it was made anew."""
    log = open_log()
    append(log, 10)
    log.ledger.history.delete(0, 30, StartCause.RETENTION_TIME, 5)
    restart_at(log, 40, 2_000)
    append(log, 2)
    assert by_cause(account(log)) == {StartCause.RETENTION_TIME: 30, StartCause.WHOLE: 10}
    assert terms(account(log)) == {"data": 2, "deleted": 40}


def test_lost_offsets_are_told_until_they_are_written_again() -> None:
    """A range may reach to where the log once ended, and no further."""
    log = open_log()
    for _ in range(5):
        append(log, 2)
    truncate_to(log, 4, 2_000)
    append(log, 4)
    log.ledger.history.lose(Loss(4, 10, 2, 2_000))
    found = account(log, 0, 10)
    assert terms(found) == {"data": 8, "lost": 2}
    assert found.replaced == 4
    with pytest.raises(Exception, match="where the log ends"):
        account(log, 0, 11)


def test_deletions_are_kept_by_a_log_that_moves() -> None:
    """A copy in another directory takes the ledger with it."""
    log = open_log()
    append(log, 10)
    log.advance_log_start(4, StartCause.DELETE_RECORDS, 1_500)
    other = open_log(folder="/other/flights-0", log_start_offset=4)
    found = log.read(4, 1000, max_offset=10)
    begin_within(other, found.file.pread(found.size, found.position), 2_000)
    other.append_as_follower(found.file.pread(found.size, found.position), 2_000)
    take_over(other, log)
    assert terms(account(other)) == {"deleted": 4, "data": 6}
    assert by_cause(account(other)) == {StartCause.DELETE_RECORDS: 4}


def test_tombstones_and_aborted_records_that_went_are_compacted() -> None:
    """Whatever the reason for which a pass let them go."""
    log = compacted_log(MemoryFileSystem(), segment_bytes=300)
    add(log, [(b"gone", b"here"), (b"stays", b"here")])
    add(log, [(b"gone", None)])
    add(log, [(b"filler", b"x" * 300)])
    clean(log, now_ms=10_000)
    add(log, [(b"filler", b"y" * 300)])
    clean(log, now_ms=10_000 + 2 * DAY_MS)
    found = account(log)
    assert found.unexplained == 0
    assert found.data + found.compacted == log.log_end_offset
    assert found.data == 3


@pytest.mark.parametrize("step", range(30))
def test_a_power_cut_anywhere_in_a_deletion_leaves_every_offset_explained(step: int) -> None:
    """What goes is in the ledger before it goes; what is still there is not counted as gone."""
    for seed in range(4):
        filesystem = MemoryFileSystem()
        log = open_log(filesystem, segment_bytes=300, retention_ms=1_000)
        for _ in range(4):
            append(log, 3, payload=b"x" * 200, timestamp=1_000)
        log.flush()
        for folder in (FOLDER, "/kafka", "/"):
            filesystem.fsync_directory(folder)
        made = 0

        def stop(operation: str, path: str) -> OSError | None:
            nonlocal made
            made += operation in {"append", "fsync", "truncate", "rename", "unlink", "open"}
            return OSError(errno.EIO, "the power is gone", path) if made > step else None

        filesystem.fault = stop
        with contextlib.suppress(OSError, StorageError):
            note_old_segments(log, old_segments(log, 10_000, 9), 10_000)
            job = log.ledger.job(filesystem, FOLDER)
            assert job is not None
            job.run()
            for deletion in delete_old_segments(log, 10_000, 9):
                deletion.run()
        filesystem.crash(Random(seed))
        again = open_log(filesystem, recovery_point=12, config=log.config)
        found = account(again)
        assert found.unexplained == 0
        assert found.data + found.deleted == 12
        assert by_cause(found) == (
            {StartCause.RETENTION_TIME: found.deleted} if found.deleted else {}
        )
