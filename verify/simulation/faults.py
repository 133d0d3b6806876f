"""Carries out the decisions of a run, and ends all faults at its end."""

import asyncio
from collections.abc import Awaitable, Callable

from verify.simulation.checked_world import CheckedWorld
from verify.simulation.decisions import Choice
from verify.simulation.judging.atlas import Atlas
from verify.simulation.troubles.aimed import AimedTrouble
from verify.simulation.troubles.copiers import CopierTrouble
from verify.simulation.troubles.disks import DiskTrouble
from verify.simulation.troubles.network import NetworkTrouble
from verify.simulation.troubles.processes import ProcessTrouble
from verify.simulation.troubles.stores import StoreTrouble
from verify.simulation.troubles.trouble import Mending
from verify.simulation.worlds.profile import AIMED_KINDS, COPIER_KINDS, IDLE_KINDS, KINDS

Action = Callable[[Choice], Awaitable[None]]
_TROUBLES = (
    ProcessTrouble,
    NetworkTrouble,
    StoreTrouble,
    DiskTrouble,
    CopierTrouble,
    AimedTrouble,
)
_ALL_KINDS = KINDS.keys() | COPIER_KINDS.keys() | AIMED_KINDS.keys() | IDLE_KINDS.keys()


class Faults:
    """Faults and their ends go to `World.note`, and make the table of a failing run."""

    def __init__(self, world: CheckedWorld, atlas: Atlas, partitions: int) -> None:
        self._world = world
        self._mending = Mending()
        troubles = [kind(world, atlas, partitions, self._mending) for kind in _TROUBLES]
        self._actions: dict[str, Action] = {
            kind: getattr(trouble, kind)
            for trouble in troubles
            for kind in sorted(_ALL_KINDS)
            if hasattr(trouble, kind)
        }
        assert self._actions.keys() == _ALL_KINDS
        self._tasks: dict[asyncio.Task[None], None] = {}

    def begin(self, decision: Choice) -> None:
        """Do it now; its end comes by itself."""
        task: asyncio.Task[None] = asyncio.ensure_future(self._do(decision))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _do(self, decision: Choice) -> None:
        await self._actions[decision.kind](decision)

    async def heal(self) -> None:
        """Take back all that stands, and start every broker that is down."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*list(self._tasks), return_exceptions=True)
        self._mending.mend_all()
        for machine in self._world.machines.values():
            machine.resume()
            machine.quicken()
            machine.disk.repair()
            if not machine.is_ready:
                machine.kill()
                machine.start()
        if self._world.copying is not None:
            self._world.copying.start_dead()
