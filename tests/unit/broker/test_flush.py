"""Group commit: one job at a time, everything dirty in it, nobody kept waiting for nothing."""

import asyncio
from random import Random

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.flush import Flusher
from ottla.storage.directory.placement import Wanted
from ottla.storage.disk.errors import DirectoryFailed, DiskFull
from ottla.storage.segment.config import LogConfig
from ottla.testing.clock import ManualClock
from tests.unit.storage.logs import append
from tests.unit.storage.test_flush_journal import TOPIC_ID, Broker, Disk, files


class FakeLog:
    sync_parent = False

    def __init__(self, error=None):
        self.error = error
        self.jobs = []
        self.journal = None

    def prepare_flush(self, *, checkpoint=False):
        self.jobs.append(checkpoint)
        return self

    def run(self):
        if self.error is not None:
            raise self.error

    def on_flushed(self, job, now_ms):
        assert job is self


class FakePartition:
    def __init__(self, error=None):
        self.log = FakeLog(error)
        self.flushed = 0
        self.failures = []

    def on_flushed(self):
        self.flushed += 1

    def on_flush_failed(self, error):
        self.failures.append(error)

    def flush_soon(self):
        raise AssertionError("not within this test")


def run(scenario, **options):
    async def main():
        flusher = Flusher(asyncio.get_running_loop(), ManualClock(), **options)
        try:
            await asyncio.wait_for(scenario(flusher), 60)
        finally:
            flusher.close()

    asyncio.run(main())


def test_all_appends_of_a_turn_share_one_job():
    """However often a partition is marked, it is flushed once."""

    async def scenario(flusher):
        first, second = FakePartition(), FakePartition()
        for _ in range(10):
            flusher.mark_dirty(first)
            flusher.mark_dirty(second)
        await flusher.settle()
        assert (first.flushed, second.flushed, flusher.jobs_total) == (1, 1, 1)

    run(scenario)
    run(scenario, inline=True)


def test_a_group_has_at_most_500_logs_flushed_in_their_own_files():
    """Thousands of logs, as after a start, are flushed group by group, the first ones first."""

    async def scenario(flusher):
        partitions = [FakePartition() for _ in range(1_200)]
        groups = []
        for partition in partitions:
            partition.on_flushed = lambda: groups.append(flusher.jobs_total)
            flusher.mark_dirty(partition)
        await flusher.settle()
        assert groups == [1] * 500 + [2] * 500 + [3] * 200

    run(scenario)
    run(scenario, inline=True)


def test_a_group_has_at_most_2000_logs_in_the_journal():
    """Those of a larger group come with the next one, and cost one more flush of the journal."""
    logs = [TopicPartition("t", number) for number in range(2_500)]

    async def scenario(flusher):
        broker = Broker(Disk())
        wanted = [Wanted(partition, TOPIC_ID, LogConfig()) for partition in logs]
        groups = []
        for log in broker.directories.open_all(wanted, now_ms=0).values():
            append(log)
            partition = FakePartition()
            partition.log, partition.topic_id = log, TOPIC_ID
            partition.on_flushed = lambda: groups.append(flusher.jobs_total)
            flusher.mark_dirty(partition)
        await flusher.settle()
        assert groups == [1] * 2_000 + [2] * 500
        assert len(files(broker.disk)) == 1

    run(scenario, journal_from=20)


def test_what_is_marked_during_a_job_is_in_the_next():
    """The group that gathered meanwhile follows at once for those who wait."""

    async def scenario(flusher):
        partition = FakePartition()
        flusher.mark_dirty(partition)
        flusher.hurry()
        await asyncio.sleep(0)
        flusher.mark_dirty(partition)
        await flusher.settle()
        assert (partition.flushed, flusher.jobs_total) == (2, 2)

    run(scenario)


def test_nothing_dirty_is_settled():
    """Waiting for nothing ends at once, and hurrying does nothing."""

    async def scenario(flusher):
        flusher.hurry()
        await flusher.settle()
        assert flusher.jobs_total == 0

    run(scenario)


def test_a_checkpoint_is_asked_for_once():
    """The job after it is an ordinary one again."""

    async def scenario(flusher):
        partition = FakePartition()
        flusher.mark_for_checkpoint(partition)
        await flusher.settle()
        flusher.mark_dirty(partition)
        await flusher.settle()
        assert partition.log.jobs == [True, False]

    run(scenario)


def test_a_failure_concerns_its_own_partition():
    """The others of the group are flushed."""

    async def scenario(flusher):
        error = DirectoryFailed("the disk is gone")
        good, bad = FakePartition(), FakePartition(error)
        flusher.mark_dirty(bad)
        flusher.mark_dirty(good)
        await flusher.settle()
        assert (good.flushed, bad.flushed, bad.failures) == (1, 0, [error])

    run(scenario)


def test_a_full_disk_is_tried_again_later():
    """Unlike a failed one: `flush_soon` is called when some time has passed."""

    async def scenario(flusher):
        called = asyncio.Event()
        partition = FakePartition(DiskFull("no room"))
        partition.flush_soon = called.set
        flusher.mark_dirty(partition)
        await flusher.settle()
        await called.wait()

    run(scenario)


def test_a_forgotten_partition_is_not_flushed():
    """It was deleted between its append and the job."""

    async def scenario(flusher):
        partition = FakePartition()
        flusher.mark_dirty(partition)
        flusher.forget(partition)
        await flusher.settle()
        assert partition.flushed == 0

    run(scenario)


class Replica:
    """A partition with a log on a disk."""

    topic_id = TOPIC_ID

    def __init__(self, log):
        self.log = log
        self.durable = []

    def on_flushed(self):
        self.durable.append(self.log.flush_state.durable_offset)

    def on_flush_failed(self, error):
        raise AssertionError(error)

    def flush_soon(self):
        raise AssertionError("not within this test")


def replicas_on(disk):
    """Four replicas whose logs were flushed once."""
    broker = Broker(disk)
    broker.begin()
    return broker, [Replica(log) for log in broker.logs.values()]


async def append_and_flush(flusher, replicas):
    for replica in replicas:
        append(replica.log)
        flusher.mark_dirty(replica)
    await flusher.settle()


def test_group_of_many_logs_goes_to_the_journal():
    """The records are durable, and no log was flushed by itself."""

    async def scenario(flusher):
        _, replicas = replicas_on(Disk())
        await append_and_flush(flusher, replicas)
        assert [replica.durable for replica in replicas] == [[2]] * 4
        assert {replica.log.flush_state.recovery_point for replica in replicas} == {1}
        await append_and_flush(flusher, replicas[:2])
        assert [one.log.flush_state.recovery_point for one in replicas] == [3, 3, 1, 1]

    run(scenario, journal_from=3)


def test_log_is_flushed_while_its_checkpoint_is_written():
    """The checkpoint runs in the background; an acknowledgement does not wait for it."""

    async def scenario(flusher):
        _, replicas = replicas_on(Disk())
        append(replicas[0].log)
        flusher.mark_for_checkpoint(replicas[0])
        append(replicas[0].log)
        flusher.mark_dirty(replicas[0])
        await flusher.settle()
        assert replicas[0].log.flush_state.durable_offset == 3

    run(scenario, journal_from=3)


def test_full_journal_file_goes_once_its_logs_are_flushed(monkeypatch):
    """They are flushed in the background, and the next file has taken its place."""
    monkeypatch.setattr("ottla.broker.partitions.flush.FILE_BYTES", 1_500)
    monkeypatch.setattr("ottla.storage.log.flush_journal.FILE_BYTES", 1_500)
    disk = Disk()

    async def scenario(flusher):
        _, replicas = replicas_on(disk)
        seen = set()
        for _ in range(40):
            await append_and_flush(flusher, replicas)
            names = files(disk)
            assert len(names) <= 3
            seen.update(names)
        assert len(seen) > 5
        assert all(replica.durable[-1] == 41 for replica in replicas)

    run(scenario, journal_from=3)
    disk.crash(Random(1))
    assert all(log.log_end_offset == 41 for log in Broker(disk).logs.values())


def test_log_that_failed_keeps_the_journal(monkeypatch):
    """Its records are durable there only; a deleted log needs nothing any more."""
    monkeypatch.setattr("ottla.broker.partitions.flush.FILE_BYTES", 1_500)
    monkeypatch.setattr("ottla.storage.log.flush_journal.FILE_BYTES", 1_500)
    disk = Disk()

    async def scenario(flusher):
        _, replicas = replicas_on(disk)
        await append_and_flush(flusher, replicas)
        replicas[0].log.offline = "it failed"
        for _ in range(20):
            await append_and_flush(flusher, replicas[1:])
        assert "ottla-journal-0000000000" in files(disk)

    run(scenario, journal_from=3)
    disk.crash(Random(1))
    assert all(log.log_end_offset >= 2 for log in Broker(disk).logs.values())


def test_a_partition_that_is_held_is_flushed_after_that():
    """Neither a group nor a checkpoint begins, and those that run are waited for."""

    class Released(FakePartition):
        def flush_soon(self):
            flushers[0].mark_dirty(self)

    flushers = []

    async def scenario(flusher):
        flushers.append(flusher)
        held, other = Released(), FakePartition()
        flusher.mark_dirty(held)
        flusher.hurry()
        await asyncio.sleep(0)
        await flusher.hold(held)
        assert held.flushed == 1
        for each in (held, other):
            flusher.mark_dirty(each)
            flusher.mark_for_checkpoint(each)
        flusher.hurry()
        while other.flushed < 2:  # noqa: ASYNC110  # A group and a checkpoint, in threads.
            await asyncio.sleep(0)
        assert held.flushed == 1
        assert flusher.unfinished == [held]
        flusher.release(held)
        await flusher.settle()
        assert held.flushed == 3
        assert held.log.jobs.count(True) == 1

    run(scenario)
