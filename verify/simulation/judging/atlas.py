"""Which machines may lose data now, so that a run never does more than the cluster tolerates.

With group commit a record is acknowledged when the least number of in-sync replicas has it on
disk: any power may fail. Where it is acknowledged from memory, one machine fewer than that may
lose its memory until it has caught up again.
"""

from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World
from verify.simulation.judging.replicas import replicas_of, state_of
from verify.simulation.worlds.profile import Profile


class Atlas:
    """The machines that may lack records they once had."""

    def __init__(self, profile: Profile) -> None:
        self._group_commit = profile.flush_policy == "group"
        self._losses_max = profile.min_in_sync - 1
        self._lossy: dict[int, None] = {}

    def may_lose(self, machine: Machine) -> bool:
        """Whether this machine may lose what it has not flushed, now; counted if so."""
        if self._group_commit:
            return True
        if machine.broker_id not in self._lossy and len(self._lossy) >= self._losses_max:
            return False
        self._lossy[machine.broker_id] = None
        return True

    def look(self, world: World, topics: dict[str, int]) -> None:
        """Forget machines that hold all committed records of their partitions again."""
        for broker_id in list(self._lossy):
            if world.machines[broker_id].is_ready and all(
                _holds_all(world, broker_id, topic, number)
                for topic, count in topics.items()
                for number in range(count)
            ):
                del self._lossy[broker_id]


def _holds_all(world: World, broker_id: int, topic: str, number: int) -> bool:
    """Whether a broker is in the ISRs of the store and its logs are complete."""
    state = state_of(world, topic, number)
    if state is None or broker_id not in state.replicas:
        return True
    copies = dict(replicas_of(world, topic, number))
    leader, copy = copies.get(state.leader), copies.get(broker_id)
    return (
        broker_id in state.isr
        and copy is not None
        and leader is not None
        and leader.leader is not None
        and leader.leader_epoch == state.leader_epoch
        and copy.log_end_offset >= leader.high_watermark
    )
