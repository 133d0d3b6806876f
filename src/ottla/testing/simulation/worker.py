"""Blocking jobs of a simulated broker: done in one step, after the time they would have taken."""

from collections.abc import Callable

from ottla.testing.simulation.loop import VirtualLoop
from ottla.testing.simulation.process import Process


class SimulatedWorker:
    """Implements `Worker`. One job at a time; the process's death loses those not done."""

    def __init__(self, loop: VirtualLoop, process: Process) -> None:
        self._loop = loop
        self._process = process
        self._free_at_s = 0.0

    def start(self, job: Callable[[], None]) -> None:
        begin_s = max(self._loop.time(), self._free_at_s)
        self._free_at_s = begin_s + self._process.blocking_delay_s()
        self._loop.call_at(self._free_at_s, job, context=self._process.context)

    def close(self) -> None:
        return
