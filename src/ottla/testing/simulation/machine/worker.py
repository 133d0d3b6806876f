"""Blocking jobs of a simulated broker: done in one step, after the time they would have taken."""

import asyncio
from collections import deque
from collections.abc import Callable

from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.testing.simulation.virtual.process import Process


class SimulatedWorker:
    """Implements `Worker`. One job at a time; the process's death loses those not done."""

    def __init__(self, loop: VirtualLoop, process: Process) -> None:
        self._loop = loop
        self._process = process
        self._free_at_s = 0.0
        # The jobs that are not done, oldest first, with their timers.
        self._jobs: deque[tuple[Callable[[], None], asyncio.TimerHandle]] = deque()

    def start(self, job: Callable[[], None]) -> None:
        begin_s = max(self._loop.time(), self._free_at_s)
        self._free_at_s = begin_s + self._process.blocking_delay_s()
        timer = self._loop.call_at(self._free_at_s, self._do, context=self._process.context)
        self._jobs.append((job, timer))

    def close(self) -> None:
        while self._jobs:
            job, timer = self._jobs.popleft()
            timer.cancel()
            job()

    def _do(self) -> None:
        job, _ = self._jobs.popleft()
        job()
