"""Troubles of disks and clocks: slow, full, failing, wrong."""

import asyncio
import errno
import os

from ottla.record.header import HEADER_SIZE, MAGIC, read_header
from ottla.testing.simulation.machine.machine import Machine
from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind

_FREE_BYTES_UNIT = 200
_RANGE_BYTES = 1_000
_RANGE_STEP_BYTES = 20
_HOUR_MS = 3_600_000


class DiskTrouble(TroubleKind):
    """Done to what a machine has beside its processor."""

    async def slow_disk(self, decision: Choice) -> None:
        machine = self.machine(decision)
        if machine.process is not None:
            slowest_s = 0.01 + decision.amount / 100
            self.world.note(machine.host, f"has a slow disk, up to {slowest_s:.2f} s a call")
            machine.process.blocking_s = (0.001, slowest_s)
            await self.last(decision, machine.quicken, machine.host, "disk is fast")

    async def full_disk(self, decision: Choice) -> None:
        machine = self.machine(decision)
        free_bytes = decision.amount * _FREE_BYTES_UNIT
        self.world.note(machine.host, f"has {free_bytes} bytes free for {decision.for_ms} ms")
        self.world.count("full disk")
        machine.disk.fill(free_bytes)
        await self.last(decision, machine.disk.repair, machine.host, "has room")

    async def fsync_error(self, decision: Choice) -> None:
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

    async def read_error(self, decision: Choice) -> None:
        """Some bytes of closed segments cannot be read; in the end the broker starts again."""
        machine = self.machine(decision)
        if not machine.is_ready:
            return
        begin = decision.amount * _RANGE_STEP_BYTES
        self.world.note(machine.host, f"cannot read byte {begin} of closed segments and some more")

        def read(path: str, position: int, found: bytes) -> bytes:
            if position < begin + _RANGE_BYTES and begin < position + len(found):
                self.world.count("read error")
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return found

        machine.disk.trouble_reads(read)
        number = self.mending.remember(machine.kill)
        await asyncio.sleep(decision.for_ms / 1000)
        self.mending.forget(number)
        machine.disk.repair()
        await self.down(machine, decision, "killed, its disk mended", Machine.kill)

    async def bit_flip(self, decision: Choice) -> None:
        """Every so many reads of records in closed segments have one bit turned round."""
        machine = self.machine(decision)
        if not machine.is_ready:
            return
        chance = self.world.chance_of(f"flip/{decision.at_ms}")
        self.world.note(machine.host, f"reads wrong bits for {decision.for_ms} ms")

        def read(_path: str, _position: int, found: bytes) -> bytes:
            if len(found) <= HEADER_SIZE or chance.randrange(100) > decision.amount:
                return found
            first = read_header(found)
            if first.magic != MAGIC or first.size > len(found) or first.size <= HEADER_SIZE:
                return found
            self.world.count("bit flip")
            # Places and epochs stand before what the checksum covers: no check could see it there.
            place = chance.randrange(HEADER_SIZE, first.size)
            flipped = bytearray(found)
            flipped[place] ^= 1 << chance.randrange(8)
            return bytes(flipped)

        machine.disk.trouble_reads(read)
        await self.last(decision, machine.disk.repair, machine.host, "reads what is there")

    async def clock_jump(self, decision: Choice) -> None:
        machine = self.machine(decision)
        by_ms = (decision.amount - 50) * _HOUR_MS // 50
        self.world.note(machine.host, f"its clock jumps by {by_ms / 1000:.0f} s")
        machine.clock.skew_ms += by_ms
