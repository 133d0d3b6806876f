"""Group commit: one job at a time, everything dirty in it, nobody kept waiting for nothing."""

import asyncio

from ottla.broker.partitions.flush import Flusher
from ottla.storage.disk.errors import DirectoryFailed, DiskFull
from ottla.testing.clock import ManualClock


class FakeLog:
    def __init__(self, error=None):
        self.error = error
        self.jobs = []

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
