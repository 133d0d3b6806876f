"""What all faults need: the target of a decision, and how to undo what was done."""

import asyncio
from collections.abc import Callable

from ottla.testing.simulation.machine.machine import Machine
from verify.simulation.checked_world import CheckedWorld
from verify.simulation.decisions import Choice
from verify.simulation.judging.atlas import Atlas


class Mending:
    """How to undo the faults that last, in the order in which they began."""

    def __init__(self) -> None:
        self._open: dict[int, Callable[[], None]] = {}
        self._numbers = 0

    def remember(self, mend: Callable[[], None]) -> int:
        """Note that `mend` undoes what was just done; returns its number."""
        self._numbers += 1
        self._open[self._numbers] = mend
        return self._numbers

    def mend(self, number: int) -> None:
        """Undo one, unless that was done."""
        mend = self._open.pop(number, None)
        if mend is not None:
            mend()

    def forget(self, number: int) -> None:
        """It is undone by other means."""
        del self._open[number]

    def mend_all(self) -> None:
        """Undo all that lasts."""
        while self._open:
            self.mend(next(iter(self._open)))


class TroubleKind:
    """One kind of things that troubles are done to. A method named for a decision's kind does it.

    Each takes back what it did when its time is over, or the run heals everything.
    """

    def __init__(
        self, world: CheckedWorld, atlas: Atlas, partitions: int, mending: Mending
    ) -> None:
        self.world = world
        self.atlas = atlas
        self.mending = mending
        self._partitions = partitions

    @property
    def machines(self) -> list[Machine]:
        return list(self.world.machines.values())

    def machine(self, decision: Choice) -> Machine:
        """The machine that a decision concerns."""
        return self.machines[decision.subject % len(self.machines)]

    def leader(self, decision: Choice) -> Machine:
        """The machine that leads the partition that a decision concerns."""
        number = decision.subject % self._partitions
        return self.world.leader_of(number) or self.machine(decision)

    def pair(self, decision: Choice) -> tuple[str, str]:
        """Two hosts of brokers."""
        machines = self.machines
        first = decision.subject % len(machines)
        step = 1 + decision.amount % (len(machines) - 1)
        return machines[first].host, machines[(first + step) % len(machines)].host

    def start(self, machine: Machine) -> None:
        """Start a broker that is down."""
        if not machine.is_running:
            self.world.note(machine.host, "starts")
            machine.start()

    async def down(
        self,
        machine: Machine,
        decision: Choice,
        how: str,
        end: Callable[[Machine], None],
    ) -> None:
        """End a broker that runs, and start it again."""
        if not machine.is_running:
            return
        self.world.note(machine.host, how)
        self.world.count(how.partition(",")[0])
        end(machine)
        await asyncio.sleep(decision.for_ms / 1000)
        self.start(machine)

    async def last(self, decision: Choice, mend: Callable[[], None], where: str, what: str) -> None:
        """Let what was done last as long as the decision says, and take it back by `mend`."""
        number = self.mending.remember(mend)
        await asyncio.sleep(decision.for_ms / 1000)
        self.world.note(where, what)
        self.mending.mend(number)
