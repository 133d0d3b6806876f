"""Troubles between hosts: links that are cut or slow, connections that break or stand still."""

import asyncio

from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind


class NetworkTrouble(TroubleKind):
    """Done to links and connections."""

    async def isolate(self, decision: Choice) -> None:
        host = self.machine(decision).host
        others = [machine.host for machine in self.machines if machine.host != host]
        cuts = [pair for other in others for pair in ((host, other), (other, host))]
        if decision.amount % 2:
            await self._cut(decision, cuts, f"is cut off from {', '.join(others)}", host)
        else:
            self.world.note(host, "is cut off from the store, too")
            self.world.store_faults.cut(host)
            mend = self.mending.remember(lambda: self.world.store_faults.heal(host))
            await self._cut(decision, cuts, f"is cut off from {', '.join(others)}", host)
            self.mending.mend(mend)

    async def one_way(self, decision: Choice) -> None:
        source, target = self.pair(decision)
        await self._cut(decision, [(source, target)], f"cannot be heard by {target}", source)

    async def split(self, decision: Choice) -> None:
        one, other = self.pair(decision)
        await self._cut(decision, [(one, other), (other, one)], f"is cut off from {other}", one)

    async def client_cut(self, decision: Choice) -> None:
        hosts = self.world.user_hosts
        host = hosts[decision.subject % len(hosts)]
        broker = self.machines[decision.amount % len(self.machines)].host
        pairs = [(host, broker), (broker, host)][: 1 + decision.amount % 2]
        await self._cut(decision, pairs, f"is cut off from {broker}", host)

    async def swizzle(self, decision: Choice) -> None:
        """Cut links one after the other, and open them in another order."""
        chance = self.world.chance_of(f"swizzle/{decision.at_ms}")
        hosts = [machine.host for machine in self.machines]
        pairs = [(a, b) for a in hosts for b in hosts if a != b]
        chosen = chance.sample(pairs, 1 + decision.amount % len(pairs))
        cuts = [
            self._cut(
                decision._replace(for_ms=int(decision.for_ms * chance.random()) + 1),
                [pair],
                f"cannot be heard by {pair[1]}",
                pair[0],
                after_s=decision.for_ms / 1000 * chance.random(),
            )
            for pair in chosen
        ]
        await asyncio.gather(*cuts)

    async def _cut(
        self,
        decision: Choice,
        pairs: list[tuple[str, str]],
        what: str,
        host: str,
        *,
        after_s: float = 0.0,
    ) -> None:
        await asyncio.sleep(after_s)
        links = [self.world.network.link(*pair) for pair in pairs]
        self.world.note(host, f"{what} for {decision.for_ms} ms")
        self.world.count("cut")
        for link in links:
            link.cut()

        def mend() -> None:
            for link in links:
                link.heal()

        await self.last(decision, mend, host, what.replace("is cut off from", "is back with"))

    async def stall(self, decision: Choice) -> None:
        """One direction of one connection stands still; a new one may overtake it."""
        endpoints = list(self.world.network.endpoints)
        if not endpoints:
            return
        endpoint = endpoints[decision.subject % len(endpoints)]
        if not endpoint.is_stalled:
            endpoint.stall()
            name = endpoint.process.name
            self.world.note(name, f"a connection stands still for {decision.for_ms} ms")
            await self.last(decision, endpoint.release, name, "the connection goes on")

    async def drop(self, decision: Choice) -> None:
        await self._drop_one(decision, both=True)

    async def half_drop(self, decision: Choice) -> None:
        await self._drop_one(decision, both=False)

    async def _drop_one(self, decision: Choice, *, both: bool) -> None:
        endpoints = list(self.world.network.endpoints)
        if endpoints:
            endpoint = endpoints[decision.subject % len(endpoints)]
            self.world.note(endpoint.process.name, "a connection is reset")
            self.world.network.drop(endpoint, both=both)

    async def slow_link(self, decision: Choice) -> None:
        source = self.machine(decision).host
        links = self.world.network.links_from(source)
        factor = 2 + decision.amount
        self.world.note(source, f"sends {factor} times as slowly for {decision.for_ms} ms")
        for link in links:
            link.slow_down(factor)

        def mend() -> None:
            for link in links:
                link.slow_down(1)

        await self.last(decision, mend, source, "sends as before")
