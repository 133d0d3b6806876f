"""Laws that hold in every broker at every moment; looked at many times a second.

What clients are told is judged apart, by the checker of histories.
"""

from typing import TYPE_CHECKING

from ottla.testing.simulation.machine import Machine

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World


class Invariants:
    """Remembers what must not go back. `look` tells the world of each law broken."""

    def __init__(self, world: "World") -> None:
        self._world = world
        # The highest high watermark of each incarnation's partitions.
        self._high_watermarks: dict[tuple[str, int, str], int] = {}
        # Who led each partition in each leader epoch.
        self._leaders: dict[tuple[str, int], int] = {}
        self.looks_total = 0

    def look(self) -> None:
        """Check all brokers that serve."""
        self.looks_total += 1
        for machine in self._world.machines.values():
            if machine.is_ready and machine.broker is not None:
                self._look_at(machine)

    def _look_at(self, machine: Machine) -> None:
        broker = machine.broker
        assert broker is not None
        for partition in broker.partitions:
            log = partition.log
            name = str(partition.topic_partition)
            where = f"{machine.host} {name}"
            begin, end = partition.log_start_offset, partition.log_end_offset
            high_watermark = partition.high_watermark
            if partition.failure is not None:
                continue
            if not begin <= high_watermark <= end:
                self._world.fail(f"{where}: {begin} <= {high_watermark} <= {end} does not hold")
            if broker.group_commit and high_watermark > log.recovery_point:
                what = f"high watermark {high_watermark} above flushed {log.recovery_point}"
                self._world.fail(f"{where}: {what}")
            key = (machine.host, machine.starts, name)
            if high_watermark < self._high_watermarks.get(key, 0):
                before = self._high_watermarks[key]
                self._world.fail(f"{where}: high watermark went from {before} to {high_watermark}")
            self._high_watermarks[key] = high_watermark
