"""Troubles of transactions: copiers killed, stopped or doubled, and coordinators killed."""

import asyncio

from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.virtual.loop import resume
from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind


class CopierTrouble(TroubleKind):
    """Done to programs with transactions, and to the brokers that coordinate these."""

    async def kill_copier(self, decision: Choice) -> None:
        copying = self.world.copying
        assert copying is not None
        slot = decision.subject % len(copying.slots)
        name = copying.slots[slot][-1].name
        self.world.note(name, "killed")
        self.world.count("copier killed")
        copying.kill_copier(slot)
        await asyncio.sleep(decision.for_ms / 1000)
        copying.start_copier(slot)

    async def pause_copier(self, decision: Choice) -> None:
        copying = self.world.copying
        assert copying is not None
        process = copying.slots[decision.subject % len(copying.slots)][-1]
        if not process.is_alive or process.is_paused:
            return
        self.world.note(process.name, f"stands still for {decision.for_ms} ms")
        self.world.count("copier paused")
        process.is_paused = True
        loop = self.world.loop
        await self.last(decision, lambda: resume(loop, process), process.name, "goes on")

    async def twin_copier(self, decision: Choice) -> None:
        """Another process of the same transactional id begins, while the first one goes on."""
        copying = self.world.copying
        assert copying is not None
        slot = decision.subject % len(copying.slots)
        copying.start_copier(slot)
        self.world.note(copying.slots[slot][-1].name, "takes over")
        self.world.count("copier doubled")

    async def kill_coordinator(self, decision: Choice) -> None:
        machine = self.world.coordinator_of_transactions(decision.subject)
        await self.down(
            machine or self.machine(decision), decision, "killed, coordinating", Machine.kill
        )
