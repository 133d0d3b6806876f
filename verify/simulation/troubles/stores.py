"""Troubles of the store: away, out of one broker's reach, answers that are lost."""

from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind


class StoreTrouble(TroubleKind):
    """Done to the store and the ways to it."""

    async def store_outage(self, decision: Choice) -> None:
        faults = self.world.store_faults
        if not faults.out:
            self.world.note("store", f"is away for {decision.for_ms} ms")
            self.world.count("store outage")
            faults.outage()
            await self.last(decision, faults.restore, "store", "is back")

    async def store_cut(self, decision: Choice) -> None:
        host = self.machine(decision).host
        self.world.note(host, f"is cut off from the store for {decision.for_ms} ms")
        self.world.store_faults.cut(host)
        await self.last(
            decision, lambda: self.world.store_faults.heal(host), host, "has the store again"
        )

    async def store_answer(self, decision: Choice) -> None:
        machine = self.machine(decision)
        if not machine.is_ready:
            return
        host = machine.host
        applied = bool(decision.amount % 2)
        self.world.note(host, f"will miss an answer of the store (done: {applied})")
        self.world.store_faults.lose_next_answer(host, applied=applied)
