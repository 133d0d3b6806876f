"""How much may be lost at once, so that nothing a run does is more than the cluster promises.

With group commit a record is acknowledged when the least number of in-sync replicas has it on
disk: any power may fail. Where it is acknowledged from memory, one machine fewer than that may
lose its memory until it has caught up again.
"""

from ottla.testing.simulation.machine import Machine
from ottla.testing.simulation.profile import Profile
from ottla.testing.simulation.replicas import state_of
from ottla.testing.simulation.world import World


class Atlas:
    """Which machines may lack something they once had."""

    def __init__(self, profile: Profile) -> None:
        self._group_commit = profile.flush_policy == "group"
        self._losses_max = profile.min_in_sync - 1
        self._lossy: dict[int, None] = {}

    def may_lose(self, machine: Machine) -> bool:
        """Whether this machine may lose what it has not flushed; counted if so."""
        if self._group_commit:
            return True
        if machine.broker_id not in self._lossy and len(self._lossy) >= self._losses_max:
            return False
        self._lossy[machine.broker_id] = None
        return True

    def look(self, world: World, topics: dict[str, int]) -> None:
        """Forget those that are in every in-sync set again that they belong to."""
        for broker_id in list(self._lossy):
            states = (
                state_of(world, topic, number)
                for topic, count in topics.items()
                for number in range(count)
            )
            if world.machines[broker_id].is_ready and all(
                state is None or broker_id in state.isr or broker_id not in state.replicas
                for state in states
            ):
                del self._lossy[broker_id]
