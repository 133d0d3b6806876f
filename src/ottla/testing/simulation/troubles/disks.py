"""Troubles of disks and clocks: slow, full, failing, wrong."""

import asyncio

from ottla.testing.simulation.decisions import Decision
from ottla.testing.simulation.machine import Machine
from ottla.testing.simulation.troubles.trouble import Trouble

_FREE_BYTES_UNIT = 200
_HOUR_MS = 3_600_000


class DiskTrouble(Trouble):
    """Done to what a machine has beside its processor."""

    async def slow_disk(self, decision: Decision) -> None:
        machine = self.machine(decision)
        if machine.process is not None:
            slowest_s = 0.01 + decision.amount / 100
            self.world.note(machine.host, f"has a slow disk, up to {slowest_s:.2f} s a call")
            machine.process.blocking_s = (0.001, slowest_s)
            await self.last(decision, machine.quicken, machine.host, "disk is fast")

    async def full_disk(self, decision: Decision) -> None:
        machine = self.machine(decision)
        free_bytes = decision.amount * _FREE_BYTES_UNIT
        self.world.note(machine.host, f"has {free_bytes} bytes free for {decision.for_ms} ms")
        self.world.count("full disk")
        machine.disk.fill(free_bytes)
        await self.last(decision, machine.disk.repair, machine.host, "has room")

    async def fsync_error(self, decision: Decision) -> None:
        """A disk that cannot flush for a while.

        Then the broker starts again: half of them with what the failed flush left in the page
        cache, half with what the disk has.
        """
        machine = self.machine(decision)
        if not machine.is_ready or not self.atlas.may_lose(machine):
            return
        self.world.note(machine.host, "cannot flush any more")
        self.world.count("fsync error")
        machine.disk.fail("fsync", ".log")
        loses_power = bool(decision.amount % 2)
        end = Machine.cut_power if loses_power else Machine.kill
        number = self.mending.remember(lambda: end(machine))
        await asyncio.sleep(decision.for_ms / 1000)
        self.mending.forget(number)
        machine.disk.repair()
        await self.down(machine, decision, "loses power" if loses_power else "killed", end)

    async def clock_jump(self, decision: Decision) -> None:
        machine = self.machine(decision)
        by_ms = (decision.amount - 50) * _HOUR_MS // 50
        self.world.note(machine.host, f"its clock jumps by {by_ms / 1000:.0f} s")
        machine.clock.skew_ms += by_ms
