"""Faults at one instant: a transaction is decided, and not all markers are written.

By chance a coordinator hardly ever dies within the milliseconds between the two.
"""

import asyncio
from collections.abc import Callable

from ottla.testing.simulation.machine.machine import PORT, Machine
from ottla.testing.simulation.network.transport import TransportEndpoint
from ottla.testing.simulation.virtual.loop import resume
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION, Transaction, TransactionState
from verify.simulation.copying import TARGET
from verify.simulation.decisions import Choice
from verify.simulation.troubles.trouble import TroubleKind

_LOOK_EVERY_S = 0.0002
_PATIENCE_S = 4.0
# How much later than the instant it may be done, at most.
_LATE_S = 0.005
# So long after a decision the markers are under way.
_UNDER_WAY_S = 0.03
# Longer than any session.
_LONG_S = 8.0


class AimedTrouble(TroubleKind):
    """Done to coordinators of transactions, and to the programs that have one open."""

    async def kill_decided(self, decision: Choice) -> None:
        """The next coordinator has to send the markers."""
        machine = await self._decided(decision)
        if machine is not None:
            await self.down(machine, decision, "killed, it has decided", Machine.kill)

    async def pause_decided(self, decision: Choice) -> None:
        """Another takes its place, and then it goes on."""
        machine = await self._decided(decision)
        if machine is None or machine.process is None or machine.process.is_paused:
            return
        self.world.note(machine.host, "stands still, it has decided")
        self.world.count("coordinator paused")
        machine.pause()
        longer = decision._replace(for_ms=decision.for_ms + int(_LONG_S * 1000))
        await self.last(longer, machine.resume, machine.host, "goes on")

    async def late_marker(self, decision: Choice) -> None:
        """What it sent to other brokers arrives in the producer's next transaction.

        Others, or it itself, have sent them since: its connections break, or it dies. Always so
        where producers keep their epochs: its own late markers could not be recognised.
        """
        # Markers have to go to another broker, and that has to be there when they come.
        machine = await self._decided(decision, must_tell_others=True)
        if machine is None:
            return
        decided = [name for name, known in _transactions(machine).items() if known.is_prepared]
        held = self._to_brokers(machine)
        for endpoint in held:
            endpoint.stall()
        self.world.note(machine.host, "is heard late, it has decided")
        self.world.count("late markers")

        def release() -> None:
            for endpoint in held:
                endpoint.release()

        number = self.mending.remember(release)
        await asyncio.sleep(_UNDER_WAY_S)
        copying = self.world.copying
        assert copying is not None
        keeps_epochs = copying.transaction_version < EPOCH_PER_TRANSACTION
        dies = (keeps_epochs or decision.amount % 2 == 1) and machine.is_running
        if dies:
            machine.kill()
        else:
            for endpoint in held:
                self.world.network.drop(endpoint, both=False)
        # A later transaction than the next one would know by its epoch.
        await self._until(lambda: any(map(self._is_open, decided)), decision)
        self.mending.mend(number)
        if dies:
            await asyncio.sleep(decision.for_ms / 1000)
            self.start(machine)

    async def twin_open(self, decision: Choice) -> None:
        """Another copier begins under the id of one that is in a transaction.

        Half of those stand still meanwhile, the others go on beside it.
        """
        copying = self.world.copying
        assert copying is not None
        slot = decision.subject % len(copying.slots)
        if not await self._until(lambda: self._is_open(f"copier-{slot + 1}"), decision):
            return
        process = copying.slots[slot][-1]
        if not process.is_alive or process.is_paused:
            return
        self.world.note(process.name, "is in a transaction, and another takes over")
        self.world.count("copier doubled")
        copying.start_copier(slot)
        if decision.amount % 2:
            return
        process.is_paused = True
        longer = decision._replace(for_ms=decision.for_ms * 2)
        loop = self.world.loop
        await self.last(longer, lambda: resume(loop, process), process.name, "goes on")

    # -- the instant

    async def _decided(self, decision: Choice, *, must_tell_others: bool = False) -> Machine | None:
        """Wait for a coordinator that has decided and not sent all markers; None: there is none."""
        at_once = must_tell_others
        found: list[Machine] = []

        def look() -> bool:
            found[:] = [
                machine
                for machine in self.machines
                if any(known.is_prepared for known in _transactions(machine).values())
                and not (must_tell_others and self._tells_itself_only(machine))
            ]
            return bool(found)

        if not await self._until(look, decision, at_once=at_once):
            return None
        return found[decision.subject % len(found)]

    async def _until(
        self, condition: Callable[[], bool], decision: Choice, *, at_once: bool = False
    ) -> bool:
        limit_s = self.world.loop.time() + _PATIENCE_S
        while not condition():
            if self.world.loop.time() > limit_s:
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        if not at_once:
            await asyncio.sleep(_LATE_S * decision.amount / 100)
        return True

    def _is_open(self, transactional_id: str) -> bool:
        return any(
            known.state is TransactionState.ONGOING and bool(known.partitions)
            for machine in self.machines
            for name, known in _transactions(machine).items()
            if name == transactional_id
        )

    def _tells_itself_only(self, machine: Machine) -> bool:
        """Whether it leads all it has decided of, or a broker is down."""
        leaders = {
            found.host
            for number in range(self._partitions)
            if (found := self.world.leader_of(number, TARGET)) is not None
        }
        return leaders == {machine.host} or not all(each.is_ready for each in self.machines)

    def _to_brokers(self, machine: Machine) -> list[TransportEndpoint]:
        """The connections that a broker has opened to others."""
        others = {other.host for other in self.machines if other is not machine}
        return [
            endpoint
            for endpoint in self.world.network.endpoints_of(machine.host)
            if endpoint.get_extra_info("peername") in {(other, PORT) for other in others}
        ]


def _transactions(machine: Machine) -> dict[str, Transaction]:
    """What a broker's coordinators know, by transactional id."""
    if not machine.is_ready or machine.broker is None:
        return {}
    return {
        name: known
        for shard in machine.broker.parts.transactions.coordinator.shards()
        if shard.coordinator is not None
        for name, known in shard.coordinator.transactions.items()
    }
