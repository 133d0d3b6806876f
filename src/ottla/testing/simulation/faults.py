"""What can be done to a simulated cluster, one function per kind of decision.

Each takes back what it did when its time is over, or the run heals everything; doing and taking
back are told to `World.note`, and make the table of a failing run.
"""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.testing.simulation.atlas import Atlas
from ottla.testing.simulation.decisions import Decision
from ottla.testing.simulation.machine import Machine
from ottla.testing.simulation.world import World

_FREE_BYTES_UNIT = 200
_HOUR_MS = 3_600_000
# How long a disk takes that is behind, at least and at most.
_BEHIND_S = (0.1, 0.4)


class Faults:
    """Carries decisions out. What it breaks it knows how to mend: see `heal`."""

    def __init__(self, world: World, atlas: Atlas, partitions: int) -> None:
        self._world = world
        self._atlas = atlas
        self._partitions = partitions
        self._tasks: dict[asyncio.Task[None], None] = {}
        # How to take back what stands, in the order it was done.
        self._mending: dict[int, Callable[[], None]] = {}
        self._numbers = 0

    def begin(self, decision: Decision) -> None:
        """Do it now; its end comes by itself."""
        action: Callable[[Decision], Awaitable[None]] = getattr(self, f"_{decision.kind}")
        task = asyncio.ensure_future(action(decision))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def heal(self) -> None:
        """Take back all that stands, and start every broker that is down."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*list(self._tasks), return_exceptions=True)
        while self._mending:
            self._mending.pop(next(iter(self._mending)))()
        for machine in self._machines:
            machine.resume()
            self._quicken(machine)
            self._reboot_if_needed(machine)
            machine.disk.repair()
            if not machine.is_ready:
                machine.kill()
                machine.start()

    # -- whom

    @property
    def _machines(self) -> list[Machine]:
        return list(self._world.machines.values())

    def _machine(self, decision: Decision) -> Machine:
        return self._machines[decision.subject % len(self._machines)]

    def _leader(self, decision: Decision) -> Machine:
        number = decision.subject % self._partitions
        return self._world.leader_of(number) or self._machine(decision)

    def _pair(self, decision: Decision) -> tuple[str, str]:
        machines = self._machines
        first = decision.subject % len(machines)
        step = 1 + decision.amount % (len(machines) - 1)
        return machines[first].host, machines[(first + step) % len(machines)].host

    # -- processes

    async def _kill(self, decision: Decision) -> None:
        await self._down(self._machine(decision), decision, "killed", Machine.kill)

    async def _kill_leader(self, decision: Decision) -> None:
        await self._down(self._leader(decision), decision, "killed, leading", Machine.kill)

    async def _kill_controller(self, decision: Decision) -> None:
        machine = self._world.controller() or self._machine(decision)
        await self._down(machine, decision, "killed, controlling", Machine.kill)

    async def _power(self, decision: Decision) -> None:
        """A power cut; half of them while the disk is behind, so that there is much to lose."""
        machine = self._machine(decision)
        if not self._atlas.may_lose(machine):
            return
        if decision.amount % 2 == 0 and machine.is_ready and machine.process is not None:
            machine.process.blocking_s = _BEHIND_S
            await asyncio.sleep(_BEHIND_S[1])
        if machine.has_unflushed():
            self._world.count("unflushed lost")
        await self._down(machine, decision, "loses power", Machine.cut_power)

    async def _blackout(self, decision: Decision) -> None:
        downs = [
            self._down(machine, decision, "loses power", Machine.cut_power)
            for machine in self._machines
            if self._atlas.may_lose(machine)
        ]
        await asyncio.gather(*downs)

    async def _restart(self, decision: Decision) -> None:
        machine = self._machine(decision)
        if not machine.is_ready:
            return
        self._world.note(machine.host, "is told to stop")
        self._world.count("clean stop")
        await machine.stop()
        await asyncio.sleep(decision.for_ms / 4_000)
        self._start(machine)

    async def _down(
        self,
        machine: Machine,
        decision: Decision,
        how: str,
        end: Callable[[Machine], None],
    ) -> None:
        if not machine.is_running:
            return
        self._world.note(machine.host, how)
        self._world.count(how.partition(",")[0])
        end(machine)
        await asyncio.sleep(decision.for_ms / 1000)
        self._start(machine)

    def _start(self, machine: Machine) -> None:
        if not machine.is_running:
            self._reboot_if_needed(machine)
            self._world.note(machine.host, "starts")
            machine.start()

    def _reboot_if_needed(self, machine: Machine) -> None:
        if self._atlas.needs_reboot(machine):
            self._world.note(machine.host, "loses power, to be mended")
            machine.cut_power()

    async def _pause(self, decision: Decision) -> None:
        machine = self._machine(decision)
        if machine.is_running and machine.process is not None and not machine.process.is_paused:
            self._world.note(machine.host, f"stands still for {decision.for_ms} ms")
            self._world.count("pause")
            machine.pause()
            await self._for(decision, machine.resume, machine.host, "goes on")

    async def _hiccup(self, decision: Decision) -> None:
        await self._pause(decision._replace(for_ms=1 + decision.amount * 2))

    # -- network

    async def _isolate(self, decision: Decision) -> None:
        host = self._machine(decision).host
        others = [machine.host for machine in self._machines if machine.host != host]
        cuts = [pair for other in others for pair in ((host, other), (other, host))]
        if decision.amount % 2:
            await self._cut(decision, cuts, f"is cut off from {', '.join(others)}", host)
        else:
            self._world.note(host, "is cut off from the store, too")
            self._world.store_faults.cut(host)
            mend = self._number(lambda: self._world.store_faults.heal(host))
            await self._cut(decision, cuts, f"is cut off from {', '.join(others)}", host)
            self._mend(mend)

    async def _one_way(self, decision: Decision) -> None:
        source, target = self._pair(decision)
        await self._cut(decision, [(source, target)], f"cannot be heard by {target}", source)

    async def _split(self, decision: Decision) -> None:
        one, other = self._pair(decision)
        await self._cut(decision, [(one, other), (other, one)], f"is cut off from {other}", one)

    async def _client_cut(self, decision: Decision) -> None:
        hosts = self._world.user_hosts
        host = hosts[decision.subject % len(hosts)]
        broker = self._machines[decision.amount % len(self._machines)].host
        pairs = [(host, broker), (broker, host)][: 1 + decision.amount % 2]
        await self._cut(decision, pairs, f"is cut off from {broker}", host)

    async def _swizzle(self, decision: Decision) -> None:
        """Cut links one after the other, and open them in another order."""
        chance = self._world.chance_of(f"swizzle/{decision.at_ms}")
        hosts = [machine.host for machine in self._machines]
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
        decision: Decision,
        pairs: list[tuple[str, str]],
        what: str,
        host: str,
        *,
        after_s: float = 0.0,
    ) -> None:
        await asyncio.sleep(after_s)
        links = [self._world.network.link(*pair) for pair in pairs]
        self._world.note(host, f"{what} for {decision.for_ms} ms")
        self._world.count("cut")
        for link in links:
            link.cut()

        def mend() -> None:
            for link in links:
                link.heal()

        await self._for(decision, mend, host, what.replace("is cut off from", "is back with"))

    async def _stall(self, decision: Decision) -> None:
        """One direction of one connection stands still; a new one may overtake it."""
        endpoints = list(self._world.network.endpoints)
        if not endpoints:
            return
        endpoint = endpoints[decision.subject % len(endpoints)]
        if not endpoint.is_stalled:
            endpoint.is_stalled = True
            name = endpoint.process.name
            self._world.note(name, f"a connection stands still for {decision.for_ms} ms")
            await self._for(decision, endpoint.release, name, "the connection goes on")

    async def _drop(self, decision: Decision) -> None:
        await self._drop_one(decision, both=True)

    async def _half_drop(self, decision: Decision) -> None:
        await self._drop_one(decision, both=False)

    async def _drop_one(self, decision: Decision, *, both: bool) -> None:
        endpoints = list(self._world.network.endpoints)
        if endpoints:
            endpoint = endpoints[decision.subject % len(endpoints)]
            self._world.note(endpoint.process.name, "a connection is reset")
            self._world.network.drop(endpoint, both=both)

    async def _slow_link(self, decision: Decision) -> None:
        source = self._machine(decision).host
        links = self._world.network.links_from(source)
        factor = 2 + decision.amount
        self._world.note(source, f"sends {factor} times as slowly for {decision.for_ms} ms")
        for link in links:
            link.slow_down(factor)

        def mend() -> None:
            for link in links:
                link.slow_down(1)

        await self._for(decision, mend, source, "sends as before")

    # -- store

    async def _store_outage(self, decision: Decision) -> None:
        faults = self._world.store_faults
        if not faults.out:
            self._world.note("store", f"is away for {decision.for_ms} ms")
            self._world.count("store outage")
            faults.outage()
            await self._for(decision, faults.restore, "store", "is back")

    async def _store_cut(self, decision: Decision) -> None:
        host = self._machine(decision).host
        self._world.note(host, f"is cut off from the store for {decision.for_ms} ms")
        self._world.store_faults.cut(host)
        await self._for(
            decision, lambda: self._world.store_faults.heal(host), host, "has the store again"
        )

    async def _store_answer(self, decision: Decision) -> None:
        machine = self._machine(decision)
        if not machine.is_ready:
            return
        host = machine.host
        applied = bool(decision.amount % 2)
        self._world.note(host, f"will miss an answer of the store (done: {applied})")
        self._world.store_faults.lose_next_answer(host, applied=applied)

    # -- disks and clocks

    async def _slow_disk(self, decision: Decision) -> None:
        machine = self._machine(decision)
        if machine.process is not None:
            slowest_s = 0.01 + decision.amount / 100
            self._world.note(machine.host, f"has a slow disk, up to {slowest_s:.2f} s a call")
            machine.process.blocking_s = (0.001, slowest_s)
            await self._for(decision, lambda: self._quicken(machine), machine.host, "disk is fast")

    def _quicken(self, machine: Machine) -> None:
        if machine.process is not None:
            machine.process.blocking_s = (0.0001, 0.002)

    async def _full_disk(self, decision: Decision) -> None:
        machine = self._machine(decision)
        free_bytes = decision.amount * _FREE_BYTES_UNIT
        self._world.note(machine.host, f"has {free_bytes} bytes free for {decision.for_ms} ms")
        self._world.count("full disk")
        machine.disk.fill(free_bytes)
        await self._for(decision, machine.disk.repair, machine.host, "has room")

    async def _fsync_error(self, decision: Decision) -> None:
        """A disk that cannot flush; its machine is switched off and on to mend it."""
        machine = self._machine(decision)
        if not machine.is_ready or not self._atlas.may_lose(machine):
            return
        self._world.note(machine.host, "cannot flush any more")
        self._world.count("fsync error")
        machine.disk.fail("fsync", ".log")
        self._atlas.damaged(machine)
        await asyncio.sleep(decision.for_ms / 1000)
        machine.disk.repair()
        await self._down(machine, decision, "loses power", Machine.cut_power)

    async def _clock_jump(self, decision: Decision) -> None:
        machine = self._machine(decision)
        by_ms = (decision.amount - 50) * _HOUR_MS // 50
        self._world.note(machine.host, f"its clock jumps by {by_ms / 1000:.0f} s")
        machine.clock.skew_ms += by_ms

    # -- ends

    async def _for(
        self, decision: Decision, mend: Callable[[], None], where: str, what: str
    ) -> None:
        number = self._number(mend)
        await asyncio.sleep(decision.for_ms / 1000)
        self._world.note(where, what)
        self._mend(number)

    def _number(self, mend: Callable[[], None]) -> int:
        self._numbers += 1
        self._mending[self._numbers] = mend
        return self._numbers

    def _mend(self, number: int) -> None:
        mend = self._mending.pop(number, None)
        if mend is not None:
            mend()
