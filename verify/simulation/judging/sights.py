"""Rare situations that a run reached, counted so that a batch of seeds can show them.

A law that was never in danger has not been tested.
"""

from ottla.metadata.decisions import Decision, DecisionKind
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World


class Sights:
    """Counts, in the world, what brokers decided and found since the last look."""

    def __init__(self, world: World) -> None:
        self._world = world
        # The last decision seen, by process and partition.
        self._seen: dict[tuple[str, int, str], Decision] = {}
        # Logs that were looked at after they were opened.
        self._opened: dict[tuple[str, int, str], None] = {}

    def look(self) -> None:
        """Count what is new."""
        for machine in self._world.machines.values():
            if machine.is_ready and machine.broker is not None:
                self._look_at(machine)

    def _look_at(self, machine: Machine) -> None:
        broker = machine.broker
        assert broker is not None
        for partition in broker.partitions:
            key = (machine.host, machine.starts, str(partition.topic_partition))
            if key not in self._opened:
                self._opened[key] = None
                if partition.log.recovery.truncated_bytes:
                    self._world.count("torn tail cut")
                if any("by the flush journal" in note for note in partition.log.recovery.notes):
                    self._world.count("continued by the flush journal")
            decisions = broker.parts.controller.decisions.of(partition.topic_partition)
            if not decisions:
                continue
            last = self._seen.get(key)
            self._seen[key] = decisions[-1]
            for decision in reversed(decisions):
                if decision is last:
                    break
                self._count(decision)

    def _count(self, decision: Decision) -> None:
        if decision.kind is not DecisionKind.ELECTED:
            self._world.count(str(decision.kind))
        elif " in the ELR " in decision.evidence:
            self._world.count("elected from ELR")
