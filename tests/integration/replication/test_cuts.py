"""A follower's log is cut when its disk promises no more of it, and the loop does not wait."""

import asyncio
import threading

from ottla.base.errors import ErrorCode
from ottla.replica.follower import NO_FETCH

from .scenes import get_ahead, play

CHECKPOINT = "/data/recovery-point-offset-checkpoint"


class SlowCheckpoints:
    """Set as a disk's `fault`: holds up who makes recovery points durable, but not the loop."""

    def __init__(self):
        self.loop = threading.get_ident()
        self.reached = threading.Event()
        self.go_on = threading.Event()
        # How often the loop itself did it.
        self.by_the_loop = 0

    def __call__(self, operation, path):
        if operation != "fsync" or not path.startswith(CHECKPOINT):
            return
        if threading.get_ident() == self.loop:
            self.by_the_loop += 1
            return
        self.reached.set()
        assert self.go_on.wait(120)


async def part(scene):
    """Broker 1 has six records, all promised; 2 leads with three of them and two of its own.

    1 follows 2 on a disk that is slow from now on; returned when it is to cut its log.
    """
    await get_ahead(scene)
    await scene.cluster.brokers[1].parts.replication.upkeep.write_checkpoints()
    await scene.cluster.kill(1)
    await scene.cluster.restart(2)
    await scene.cluster.until(lambda: scene.partition(2, "a").leader is not None)
    for number in range(2):
        assert (await scene.write(2, "a", b"new%d" % number)).error_code == ErrorCode.NONE
    disk = scene.cluster._disks[1]
    assert b"a 0 6" in disk.read_bytes(CHECKPOINT)
    disk.in_memory = False
    await scene.cluster.restart(1)
    slow = disk.fault = SlowCheckpoints()
    await scene.cluster.until(slow.reached.is_set)
    return slow, disk


def test_the_loop_does_not_wait_for_the_checkpoint_before_a_cut():
    """Nothing is cut, and nothing else is asked for, until the promise is taken back."""

    async def scenario(scene):
        slow, disk = await part(scene)
        partition = scene.partition(1, "a")
        nonce = partition.follower.nonce
        assert nonce != NO_FETCH
        assert (partition.log_end_offset, partition.log.flush_state.recovery_point) == (6, 6)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (partition.follower.nonce, partition.log_end_offset) == (nonce, 6)
        slow.go_on.set()
        await scene.cluster.until(lambda: scene.ends("a") == {1: 5, 2: 5})
        assert slow.by_the_loop == 0
        assert b"a 0 3" in disk.read_bytes(CHECKPOINT)
        assert scene.log(1, "a") == scene.log(2, "a")

    play(scenario)


def test_a_cut_that_waits_is_forgotten_with_its_term():
    """The follower is elected meanwhile: its log stays, and is promised again."""

    async def scenario(scene):
        slow, disk = await part(scene)
        await scene.cluster.kill(2)
        partition = scene.partition(1, "a")
        await scene.cluster.until(lambda: partition.leader is not None)
        slow.go_on.set()
        await scene.cluster.until(lambda: b"a 0 3" in disk.read_bytes(CHECKPOINT))
        assert (await scene.write(1, "a", b"6")).error_code == ErrorCode.NONE
        assert partition.log_end_offset == 7
        await scene.cluster.brokers[1].parts.replication.upkeep.write_checkpoints()
        assert b"a 0 7" in disk.read_bytes(CHECKPOINT)

    play(scenario)


def test_a_cut_whose_checkpoint_cannot_be_written_is_tried_again():
    """No room for it: the log is as it was, and asked about anew until there is some."""

    async def scenario(scene):
        slow, disk = await part(scene)
        disk.capacity_bytes = 0
        slow.go_on.set()
        partition = scene.partition(1, "a")
        await scene.cluster.until(lambda: partition.follower.nonce == NO_FETCH)
        assert partition.log_end_offset == 6
        disk.capacity_bytes = None
        await scene.cluster.until(lambda: scene.ends("a") == {1: 5, 2: 5})
        assert slow.by_the_loop == 0
        assert b"a 0 3" in disk.read_bytes(CHECKPOINT)

    play(scenario)
