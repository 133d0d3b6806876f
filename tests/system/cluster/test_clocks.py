"""Wall clocks that jump: nothing is elected, nothing is lost, for no deadline goes by them."""

import asyncio

import pytest

from ottla.base.clock import SystemClock
from tests.integration.replication.scenes import scene, values

HOUR_MS = 3_600_000


class Jumping(SystemClock):
    """The machine's clocks, the wall clock off by as much as it is told."""

    def __init__(self):
        self.off_ms = 0

    def now_ms(self):
        return super().now_ms() + self.off_ms


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS], ids=["ahead", "behind"])
@pytest.mark.parametrize("who", [1, 2], ids=["leader", "follower"])
def test_a_clock_that_jumps_moves_no_leader_and_loses_nothing(who, off_ms):
    """Sessions, leases and lag are counted on the monotonic clock."""

    async def scenario():
        clocks = {number: Jumping() for number in (1, 2, 3)}
        settings = {"min.insync.replicas": "2"}
        async with scene(settings=settings, clocks=clocks) as stage:
            await stage.create("t", 1, 2, 3)
            before = stage.cluster.state("t")
            for number in range(60):
                if number == 20:
                    clocks[who].off_ms = off_ms
                if number == 40:
                    clocks[who].off_ms = 0
                answer = await stage.write(1, "t", str(number).encode())
                assert answer.error_code == 0
            after = stage.cluster.state("t")
            assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch)
            assert set(after.isr) == {1, 2, 3}
            assert values(await stage.read(1, "t")) == [str(n).encode() for n in range(60)]

    asyncio.run(scenario())
