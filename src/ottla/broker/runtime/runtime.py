"""The clock, timers, tasks and threads of one broker, for parts that wait or work in parallel."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.broker.runtime.loop_watch import LoopWatch
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.tasks import Tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """Counts the supervised tasks and the pending deadlines; most deadlines are of requests."""

    tasks: int
    deadlines: int
    # How many times the event loop computed for 20 ms or longer, and how many times it waited as
    # long, with the longest of each; 0 if the broker does not own its process.
    loop_stalls: int
    loop_longest_stall_ms: int
    loop_waits: int
    loop_longest_wait_ms: int


@dataclass(frozen=True, slots=True)
class Runtime(BrokerPart):
    """The clock, the broker's event loop, deadlines on a single timer, and supervised tasks."""

    clock: Clock
    loop: asyncio.AbstractEventLoop
    purgatory: Purgatory
    tasks: Tasks
    watch: LoopWatch

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` in the background until it ends or the broker stops."""
        self.tasks.spawn(work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a blocking call in a thread of the loop's pool, and return its result."""
        return await self.loop.run_in_executor(None, work)

    async def stop(self) -> None:
        """Cancel all deadlines; the parts that set them have already stopped."""
        self.purgatory.close()
        self.watch.stop()

    def status(self) -> RuntimeStatus:
        return RuntimeStatus(
            tasks=len(self.tasks),
            deadlines=len(self.purgatory),
            loop_stalls=self.watch.stalls,
            loop_longest_stall_ms=self.watch.longest_ms,
            loop_waits=self.watch.waits,
            loop_longest_wait_ms=self.watch.longest_wait_ms,
        )


def new_runtime(clock: Clock, loop: asyncio.AbstractEventLoop) -> Runtime:
    """Create a runtime without deadlines and tasks."""
    return Runtime(clock, loop, Purgatory(clock, loop), Tasks(), LoopWatch(loop))
