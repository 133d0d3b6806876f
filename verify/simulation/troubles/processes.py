"""Troubles of processes and machines: killed, without power, stopped, standing still."""

import asyncio

from ottla.testing.simulation.machine.machine import Machine
from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind

# How long a disk takes that is behind, at least and at most.
_BEHIND_S = (0.1, 0.4)


class ProcessTrouble(TroubleKind):
    """Done to brokers' processes, and to the power of their machines."""

    async def kill(self, decision: Choice) -> None:
        await self.down(self.machine(decision), decision, "killed", Machine.kill)

    async def kill_leader(self, decision: Choice) -> None:
        await self.down(self.leader(decision), decision, "killed, leading", Machine.kill)

    async def kill_controller(self, decision: Choice) -> None:
        machine = self.world.controller() or self.machine(decision)
        await self.down(machine, decision, "killed, controlling", Machine.kill)

    async def power(self, decision: Choice) -> None:
        """A power cut; half of them while the disk is behind, so that there is much to lose."""
        machine = self.machine(decision)
        if decision.amount % 2 == 0 and machine.is_ready and machine.process is not None:
            machine.process.blocking_s = _BEHIND_S
            await asyncio.sleep(_BEHIND_S[1])
        # Asked in the moment of the cut: who is looked at before it has all it had.
        if not self.atlas.may_lose(machine):
            machine.quicken()
            return
        if machine.has_unflushed():
            self.world.count("unflushed lost")
        await self.down(machine, decision, "loses power", Machine.cut_power)

    async def blackout(self, decision: Choice) -> None:
        downs = [
            self.down(machine, decision, "loses power", Machine.cut_power)
            for machine in self.machines
            if self.atlas.may_lose(machine)
        ]
        await asyncio.gather(*downs)

    async def restart(self, decision: Choice) -> None:
        machine = self.machine(decision)
        if not machine.is_ready:
            return
        self.world.note(machine.host, "is told to stop")
        self.world.count("clean stop")
        await machine.stop()
        await asyncio.sleep(decision.for_ms / 4_000)
        self.start(machine)

    async def pause(self, decision: Choice) -> None:
        machine = self.machine(decision)
        if machine.is_running and machine.process is not None and not machine.process.is_paused:
            self.world.note(machine.host, f"stands still for {decision.for_ms} ms")
            self.world.count("pause")
            machine.pause()
            await self.last(decision, machine.resume, machine.host, "goes on")

    async def pause_followers(self, decision: Choice) -> None:
        """All followers of a partition stand still, for less than they may lag or be silent."""
        leader = self.leader(decision)
        limit_ms = min(
            int(leader.settings["replica.lag.time.max.ms"]),
            int(leader.settings["broker.session.timeout.ms"]) * 3 // 4,
        )
        for_ms = limit_ms * (30 + decision.amount // 2) // 100
        followers = [machine for machine in self.machines if machine is not leader]
        pauses = [
            self.pause(decision._replace(subject=self.machines.index(each), for_ms=for_ms))
            for each in followers
        ]
        await asyncio.gather(*pauses)

    async def hiccup(self, decision: Choice) -> None:
        await self.pause(decision._replace(for_ms=1 + decision.amount * 2))
