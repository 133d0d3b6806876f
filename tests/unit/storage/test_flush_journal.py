"""Laws of the flush journal: what it took is there after every power cut, and nothing older is."""

import contextlib
import errno
import os
from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.storage.directory import log_directory
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import DirectoryFailed, DiskFull, LogCorrupt
from ottla.storage.disk.memory_filesystem import MemoryFile, MemoryFileSystem
from ottla.storage.log.flush import FlushState
from ottla.storage.log.flush_journal import FlushJournal
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig

from .logs import NOW_MS, append, flip
from .test_power_cuts_in_a_row import Batch, batches

PATH = "/kafka"
PARTITIONS = [TopicPartition("flights", number) for number in range(4)]
TOPIC_ID = UUID(int=7)


class Disk(MemoryFileSystem):
    """A disk that keeps its files, for which a broker uses the journal."""

    in_memory = False


class Broker:
    """The log directory of a broker with four logs, on a disk that outlives it."""

    def __init__(self, disk: Disk, segment_bytes: int = 1 << 20) -> None:
        self.disk = disk
        self.directories = LogDirectories(
            disk, [PATH], cluster_id="c", node_id=1, flushes_first=True
        )
        self.directory = self.directories.at(PATH)
        self._config = LogConfig(segment_bytes=segment_bytes)
        self.logs: dict[TopicPartition, Log] = {}
        for partition in PARTITIONS:
            self.open(partition)
        for log in self.logs.values():
            if log.flush_state.recovery_point < log.log_end_offset:
                log.flush()

    def open(self, partition: TopicPartition) -> None:
        self.logs[partition] = self.directories.open(
            partition, TOPIC_ID, self._config, now_ms=NOW_MS
        )

    @property
    def journal(self) -> FlushJournal:
        return self.directory.journal

    def flush_together(self, logs: list[Log] | None = None) -> list[Log]:
        """Flush logs as a group does; return those whose ends the journal took."""
        tails = []
        for log in self.logs.values() if logs is None else logs:
            tail = log.flush_state.tail(log) if self.journal.has_room else None
            if tail is not None:
                tails.append((log, tail))
            elif log.flush_state.recovery_point < log.log_end_offset:
                log.flush()
        if tails:
            assert not any(self.journal.write([(TOPIC_ID, tail) for _, tail in tails]))
        for log, tail in tails:
            log.flush_state.on_journaled(tail, log.truncations)
        return [log for log, _ in tails]

    def begin(self) -> None:
        """Append to each log and flush it, so that the journal can take the next records."""
        for log in self.logs.values():
            append(log)
            log.flush()


def files(disk: Disk) -> list[str]:
    return [name for name in disk.listdir(PATH) if name.startswith("ottla-journal")]


class Life:
    """Logs, their disk, and what must be found in them after the next power cut."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = Disk()
        self.segment_bytes = self.random.choice([500, 4_000, 1 << 20])
        self.durable: dict[TopicPartition, list[Batch]] = {one: [] for one in PARTITIONS}
        self.epoch = self.appended = self.journaled = self.continued = self.restored = 0

    def live(self) -> None:
        missing = {one for one in PARTITIONS if not self.disk.exists(f"{PATH}/{one}")}
        try:
            broker = Broker(self.disk, self.segment_bytes)
        except LogCorrupt:
            # A truncation that was half undone looks like damage: see `test_power_cuts_in_a_row`.
            raise EOFError from None
        for partition, log in broker.logs.items():
            durable = self.durable[partition]
            assert batches(log)[: len(durable)] == durable
            self.durable[partition] = batches(log)
            self.restored += partition in missing and log.log_end_offset > 0
            self.continued += any("flush journal" in note for note in log.recovery.notes)
        for _ in range(self.random.randint(0, 30)):
            self.act(broker)
        lost_power = self.random.random() < 0.7
        self.disk.crash(self.random if lost_power else None)

    def act(self, broker: Broker) -> None:
        random = self.random
        partition = random.choice(PARTITIONS)
        log = broker.logs[partition]
        kind = random.random()
        if kind < 0.55:
            self.appended += 1
            payload = bytes([97 + self.appended % 20]) * random.choice([5, 300, 3_000, 9_000])
            append(log, random.randint(1, 3), payload=payload, leader_epoch=self.epoch)
        elif kind < 0.80:
            self.journaled += len(broker.flush_together())
            for one, each in broker.logs.items():
                self.durable[one] = batches(each)
        elif kind < 0.84:
            log.flush(checkpoint=random.random() < 0.3)
            self.durable[partition] = batches(log)
        elif kind < 0.87:
            broker.directories.write_checkpoints({})
        elif kind < 0.89:
            broker.journal.roll()
            for one, each in broker.logs.items():
                each.flush()
                self.durable[one] = batches(each)
            broker.journal.removal_of_rolled()()
        elif kind < 0.95:
            # The replica is removed, and assigned again later.
            broker.directories.delete(partition).run()
            broker.open(partition)
            self.durable[partition] = []
        else:
            offset = random.randint(0, log.log_end_offset)
            for deletion in broker.directories.truncate(partition, offset, NOW_MS):
                deletion.run()
            end = log.log_end_offset
            self.durable[partition] = [b for b in self.durable[partition] if b[1] < end]
            self.epoch += 1


def live(seeds: int) -> tuple[int, int, int]:
    """Live that many lives.

    Returns how many tails were journaled, logs continued by them, and folders restored from them.
    """
    journaled = continued = restored = 0
    for seed in range(seeds):
        life = Life(seed)
        with contextlib.suppress(EOFError):
            for _ in range(life.random.randint(2, 8)):
                life.live()
        journaled += life.journaled
        continued += life.continued
        restored += life.restored
    return journaled, continued, restored


def test_every_restart_finds_what_was_flushed_in_a_segment_or_in_the_journal() -> None:
    """Whatever pages, names and files a power cut takes, and whatever was truncated before."""
    journaled, continued, restored = live(150)
    assert journaled > 500
    assert continued > 50
    assert restored > 20


def forget_one_log(monkeypatch: pytest.MonkeyPatch) -> None:
    write = FlushJournal.write

    def write_others(self, tails):
        return [None, *write(self, tails[1:])]

    monkeypatch.setattr(FlushJournal, "write", write_others)


def do_not_flush_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = MemoryFile.fsync

    def fsync_others(self):
        if "journal" not in self.path:
            fsync(self)

    monkeypatch.setattr(MemoryFile, "fsync", fsync_others)


def do_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlushJournal, "entries", lambda *_: [])


def append_records_of_an_older_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    read = log_directory.read_header
    monkeypatch.setattr(
        log_directory,
        "read_header",
        lambda view, position: read(view, position)._replace(leader_epoch=1 << 30),
    )


def count_the_tail_of_a_truncated_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlushState, "on_truncated", lambda *_: None)
    monkeypatch.setattr(FlushState, "lower_recovery_point", lambda *_: None)


@pytest.mark.parametrize(
    "mutate",
    [
        forget_one_log,
        do_not_flush_the_journal,
        do_not_replay,
        append_records_of_an_older_epoch,
        count_the_tail_of_a_truncated_log,
    ],
)
def test_broken_journal_is_found(mutate, monkeypatch) -> None:
    """By the law above, so that it is known to find such mistakes."""
    mutate(monkeypatch)
    with pytest.raises((AssertionError, OttlaError)):
        live(150)


def test_group_costs_one_fsync() -> None:
    """However many logs it has; the segments are not flushed."""
    broker = Broker(Disk())
    broker.begin()
    broker.flush_together()
    flushed: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation == "fsync":
            flushed.append(path)

    for _ in range(3):
        for log in broker.logs.values():
            append(log)
        assert len(broker.flush_together()) == len(PARTITIONS) or not flushed
        broker.disk.fault = note
    assert flushed == [f"{PATH}/ottla-journal-0000000000"] * 2


def test_log_with_other_news_than_records_is_flushed_by_itself() -> None:
    """A new segment and a truncation are not in the journal; a new log and a new epoch are."""
    broker = Broker(Disk(), segment_bytes=300)
    log = broker.logs[PARTITIONS[0]]
    append(log)
    tail = log.flush_state.tail(log)
    assert tail is not None
    assert tail.is_new
    log.flush()
    append(log)
    assert log.flush_state.tail(log) is not None
    append(log, leader_epoch=1)
    assert log.flush_state.tail(log) is not None
    log.flush()
    for _ in range(2):
        append(log, leader_epoch=1)
    assert len(log.segments) > 1
    assert log.flush_state.tail(log) is None
    log.flush()
    append(log, leader_epoch=1)
    assert log.flush_state.tail(log) is not None
    broker.directories.truncate(PARTITIONS[0], log.log_end_offset - 1, NOW_MS)
    append(log, leader_epoch=2)
    assert log.flush_state.tail(log) is None


def test_truncation_while_the_journal_is_written_voids_the_entry() -> None:
    """The records in it were not acknowledged, and others took their offsets."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    append(log)
    tail = log.flush_state.tail(log)
    assert tail is not None
    broker.journal.write([(TOPIC_ID, tail)])
    broker.directories.truncate(PARTITIONS[0], 1, NOW_MS)
    append(log, leader_epoch=1)
    log.flush_state.on_journaled(tail, log.truncations)
    assert log.flush_state.durable_offset == 1
    log.flush()
    kept = batches(log)
    broker.disk.crash(Random(3))
    assert batches(Broker(broker.disk).logs[PARTITIONS[0]]) == kept


def test_clean_stop_leaves_no_journal() -> None:
    """All logs are flushed then."""
    broker = Broker(Disk())
    broker.begin()
    for log in broker.logs.values():
        append(log)
    assert len(broker.flush_together()) == len(PARTITIONS)
    assert files(broker.disk)
    broker.directories.close({}, clean=True)
    assert files(broker.disk) == []


def test_journal_of_a_killed_process_goes_with_its_next_start() -> None:
    """Its writes are in the page cache; the logs are flushed before the files are removed."""
    broker = Broker(Disk())
    broker.begin()
    for log in broker.logs.values():
        append(log)
    broker.flush_together()
    broker.disk.crash()
    again = Broker(broker.disk)
    assert files(again.disk) == []
    assert all(log.flush_state.recovery_point == 2 for log in again.logs.values())


def test_journal_waits_for_a_log_that_is_not_opened_yet() -> None:
    """Its entries stay, whatever is written for others meanwhile."""
    broker = Broker(Disk())
    broker.begin()
    for log in broker.logs.values():
        append(log)
    broker.flush_together()
    broker.disk.crash(Random(1))
    directories = LogDirectories(broker.disk, [PATH], cluster_id="c", node_id=1, flushes_first=True)
    config = LogConfig()
    for partition in PARTITIONS[1:]:
        directories.open(partition, TOPIC_ID, config, now_ms=NOW_MS)
    journal = directories.at(PATH).journal
    assert journal.pending == PARTITIONS[:1]
    assert files(broker.disk)
    directories.close({}, clean=True)
    assert files(broker.disk)
    assert all(log.log_end_offset == 2 for log in Broker(broker.disk).logs.values())


def test_entries_of_a_deleted_topic_are_dropped() -> None:
    """Also where a topic of the same name took its place."""
    broker = Broker(Disk())
    broker.begin()
    for log in broker.logs.values():
        append(log)
    broker.flush_together()
    broker.directories.delete(PARTITIONS[0]).run()
    broker.disk.crash(Random(1))
    directories = LogDirectories(broker.disk, [PATH], cluster_id="c", node_id=1, flushes_first=True)
    assert PARTITIONS[0] not in directories.at(PATH).journal.pending
    other = directories.open(PARTITIONS[1], UUID(int=8), LogConfig(), now_ms=NOW_MS)
    assert other.log_end_offset == 0


def restarted(broker: Broker) -> LogDirectories:
    """The directories after a power cut that keeps nothing that was not flushed."""
    broker.disk.crash(LosesAll(1))
    return LogDirectories(broker.disk, [PATH], cluster_id="c", node_id=1, flushes_first=True)


def with_new_logs() -> Broker:
    """All logs are in the journal alone; only the last one's folder was there before its file."""
    broker = Broker(Disk())
    for log in reversed(broker.logs.values()):
        append(log)
        assert broker.flush_together([log])
    return broker


def test_new_log_is_made_again_from_the_journal() -> None:
    """Only for its own topic: a topic of the same name begins empty."""
    broker = with_new_logs()
    directories = restarted(broker)
    assert directories.found_at_start == {PARTITIONS[-1]: None}
    assert directories.home(PARTITIONS[0]) is directories.at(PATH)
    ends = [
        directories.open(partition, topic_id, LogConfig(), now_ms=NOW_MS).log_end_offset
        for partition, topic_id in zip(PARTITIONS, [TOPIC_ID, UUID(int=8)], strict=False)
    ]
    assert ends == [1, 0]


def test_new_log_is_on_the_disk_before_the_journal_goes() -> None:
    """With the name of its folder: another power cut may follow at once."""
    broker = with_new_logs()
    directories = restarted(broker)
    done: list[tuple[str, str]] = []
    broker.disk.fault = lambda operation, path: done.append((operation, path))
    for partition in PARTITIONS:
        directories.open(partition, TOPIC_ID, LogConfig(), now_ms=NOW_MS)
    names = [path for operation, path in done if operation in ("fsync", "unlink")]
    journal = f"{PATH}/ottla-journal-0000000000"
    last_name = len(names) - 1 - names[::-1].index(PATH)
    assert last_name < names.index(journal)


def test_new_log_that_was_truncated_is_flushed_by_itself() -> None:
    """The disk may have what was truncated."""
    broker = Broker(Disk())
    log = broker.logs[PARTITIONS[0]]
    append(log)
    append(log)
    broker.directories.truncate(PARTITIONS[0], 1, NOW_MS)
    append(log, leader_epoch=1)
    assert log.flush_state.tail(log) is None


def test_new_logs_that_are_no_longer_assigned_are_forgotten() -> None:
    """Else the journal would stay for them."""
    broker = with_new_logs()
    directories = restarted(broker)
    directories.forget_unassigned(lambda partition: partition == PARTITIONS[0])
    assert directories.at(PATH).journal.pending == PARTITIONS[:1]
    assert directories.home(PARTITIONS[1]) is None
    directories.open(PARTITIONS[0], TOPIC_ID, LogConfig(), now_ms=NOW_MS)
    assert files(broker.disk) == []


def test_new_log_that_was_moved_is_not_made_again_where_it_was() -> None:
    """Its folder is in the other directory, whichever is read first."""
    disk = Disk()
    for first, second in ((PATH, "/other"), ("/other", PATH)):
        directories = LogDirectories(
            disk, [first, second], cluster_id="c", node_id=1, flushes_first=True
        )
        source, target = directories.at(first), directories.at(second)
        partition = TopicPartition(f"moved-from-{first[1:]}", 0)
        directories.prefer(partition, source)
        log = directories.open(partition, TOPIC_ID, LogConfig(), now_ms=NOW_MS)
        append(log)
        tail = log.flush_state.tail(log)
        assert tail is not None
        source.journal.write([(TOPIC_ID, tail)])
        future = directories.open_future(partition, TOPIC_ID, LogConfig(), target, 0, NOW_MS)
        append(future)
        target.futures[partition] = future
        future.flush()
        set_aside = directories.move(partition, target)
        target.sync()
        set_aside().run()
        disk.crash(LosesAll(1))
        again = LogDirectories(
            disk, [PATH, "/other"], cluster_id="c", node_id=1, flushes_first=True
        )
        assert again.home(partition) is again.at(second)
        assert again.open(partition, TOPIC_ID, LogConfig(), now_ms=NOW_MS).log_end_offset == 1
        disk.crash()


def test_journal_on_a_full_disk_leaves_it_as_it_was() -> None:
    """The group is flushed log by log; the next one may find room."""
    broker = Broker(Disk())
    broker.begin()
    logs = list(broker.logs.values())
    append(logs[0])
    broker.flush_together()
    for log in logs:
        append(log, payload=b"y" * 500)
    size = broker.journal.size
    broker.disk.capacity_bytes = 1 << 62
    broker.disk.capacity_bytes -= broker.disk.room() - 700
    tails = [(TOPIC_ID, log.flush_state.tail(log)) for log in logs]
    with pytest.raises(DiskFull):
        broker.journal.write(tails)
    assert broker.disk.size(f"{PATH}/{files(broker.disk)[0]}") == size
    broker.disk.capacity_bytes = None
    assert len(broker.flush_together()) == len(PARTITIONS)
    broker.disk.crash(Random(1))
    assert all(len(batches(log)) >= 2 for log in Broker(broker.disk).logs.values())


def test_failed_fsync_of_the_journal_fails_the_directory() -> None:
    """The journal is not used again: the kernel may have dropped what it could not write."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    append(log)
    broker.disk.fault = lambda operation, path: (
        OSError(errno.EIO, os.strerror(errno.EIO), path)
        if operation == "fsync" and "journal" in path
        else None
    )
    with pytest.raises(DirectoryFailed):
        broker.journal.write([(TOPIC_ID, log.flush_state.tail(log))])
    assert not broker.journal.has_room


def reopened(broker: Broker) -> Log:
    """The first log after a power cut that keeps nothing that was not flushed."""
    broker.disk.crash(LosesAll(1))
    return Broker(broker.disk).logs[PARTITIONS[0]]


class LosesAll(Random):
    """A power cut that takes all that it may."""

    def random(self) -> float:
        return 0.0

    def randint(self, a: int, b: int) -> int:
        return a


def test_entries_before_a_truncation_do_not_hide_those_after_it() -> None:
    """Also if the log was flushed in between without a batch of the new epoch."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    append(log, 5)
    assert broker.flush_together([log])
    broker.directories.truncate(PARTITIONS[0], 1, NOW_MS)
    log.flush()
    append(log, 2, leader_epoch=1)
    assert broker.flush_together([log])
    kept = batches(log)
    assert batches(reopened(broker)) == kept


def test_entries_of_a_later_epoch_that_were_truncated_stay_away() -> None:
    """A leader that comes back has records of an older epoch."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    append(log, 2, leader_epoch=2)
    append(log, 2, leader_epoch=2)
    assert broker.flush_together([log])
    broker.directories.truncate(PARTITIONS[0], 1, NOW_MS)
    append(log, 2, leader_epoch=0)
    log.flush()
    append(log, 2, leader_epoch=3)
    assert broker.flush_together([log])
    kept = batches(log)
    assert batches(reopened(broker)) == kept


def test_epochs_in_a_file_that_is_older_than_the_batches_are_forgotten() -> None:
    """An epoch without records was followed by records of an older one."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    log.begin_epoch(2)
    log.flush(checkpoint=True)
    append(log, 2, leader_epoch=0)
    log.flush()
    append(log, 2, leader_epoch=0)
    assert broker.flush_together([log])
    kept = batches(log)
    again = reopened(broker)
    assert batches(again) == kept
    assert again.leader_epochs.entries == [(0, 0)]


def test_records_deleted_up_to_the_middle_of_a_journaled_batch() -> None:
    """The batch comes back whole, and what was deleted stays deleted."""
    broker = Broker(Disk())
    broker.begin()
    log = broker.logs[PARTITIONS[0]]
    append(log, 10)
    append(log, 10)
    assert broker.flush_together([log])
    log.advance_log_start(5, StartCause.DELETE_RECORDS, NOW_MS)
    broker.directories.write_checkpoints({})
    again = reopened(broker)
    assert (again.log_start_offset, again.log_end_offset) == (5, 21)


def test_name_of_a_journal_that_found_no_room_at_first() -> None:
    """It is durable with the first group that succeeds."""
    broker = Broker(Disk())
    broker.begin()
    logs = list(broker.logs.values())
    for log in logs:
        append(log, payload=b"y" * 500)
    broker.disk.capacity_bytes = 1 << 62
    broker.disk.capacity_bytes -= broker.disk.room() - 700
    with pytest.raises(DiskFull):
        broker.journal.write([(TOPIC_ID, log.flush_state.tail(log)) for log in logs])
    broker.disk.capacity_bytes = None
    assert len(broker.flush_together()) == len(logs)
    assert reopened(broker).log_end_offset == 2


def test_clean_stop_before_all_logs_were_recovered_is_not_clean() -> None:
    """The next start recovers the others as after a loss of power, and replays the journal."""
    broker = Broker(Disk())
    broker.begin()
    for log in broker.logs.values():
        append(log)
    broker.flush_together()
    broker.directories.write_checkpoints({})
    broker.disk.crash(LosesAll(1))
    directories = LogDirectories(broker.disk, [PATH], cluster_id="c", node_id=1, flushes_first=True)
    for partition in PARTITIONS[1:]:
        directories.open(partition, TOPIC_ID, LogConfig(), now_ms=NOW_MS)
    directories.close({}, clean=True)
    assert [log.log_end_offset for log in Broker(broker.disk).logs.values()] == [2, 2, 2, 2]


def test_damaged_group_does_not_hide_the_later_ones() -> None:
    """The damage is noted where logs are recovered."""
    broker = Broker(Disk())
    broker.begin()
    first, second = list(broker.logs.values())[:2]
    append(second)
    broker.flush_together([second])
    for _ in range(2):
        append(first)
        broker.flush_together([first])
    name = f"{PATH}/{files(broker.disk)[0]}"
    flip(broker.disk, name, 60)
    broker.disk.open(name).fsync()
    again = reopened(broker)
    assert again.log_end_offset == 3
    assert any("damaged" in note for note in again.recovery.notes)
