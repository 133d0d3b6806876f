"""A simulated process: everything that runs in its name can be stopped, or never run again.

Which process a callback belongs to is a context variable: tasks, timers and callbacks inherit
it from the code that made them, as they would belong to the process they are made in.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

# How long a call takes that waits for a disk which is well, at least and at most.
FAST_S = (0.0001, 0.002)

PROCESS: ContextVar["Process | None"] = ContextVar("simulated_process", default=None)


class Process:
    """One process on one host. `number` is unique in its world, and grows with each process."""

    def __init__(self, name: str, host: str, number: int, chance: Random) -> None:
        self.name = name
        self.host = host
        self.number = number
        self.is_alive = True
        self.is_paused = False
        # Its own source of chance, for delays and for whatever runs in it.
        self.chance = chance
        # How long a blocking call of this process takes, at least and at most.
        self.blocking_s = FAST_S
        # What came up while it was stopped.
        self.held: deque[asyncio.Handle] = deque()
        # Kept so that a dead process's tasks are not collected, which would run their `finally`.
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)
        self._on_death: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    def spawn(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]
    ) -> asyncio.Task[Any]:
        """Run `work` in this process."""
        return loop.create_task(work, context=self.context.copy())

    def on_death(self, callback: Callable[[], None]) -> None:
        """Call `callback` when it is killed; what an operating system does for the dead."""
        self._on_death.append(callback)

    def kill(self) -> None:
        """Run nothing of it any more."""
        if self.is_alive:
            self.is_alive = False
            self.held.clear()
            for callback in self._on_death:
                callback()

    def blocking_delay_s(self) -> float:
        """How long the next blocking call takes."""
        least, most = self.blocking_s
        return least + (most - least) * self.chance.random() ** 3


def current_process() -> Process:
    """The process of the code that runs. An assertion where it is the simulation itself."""
    process = PROCESS.get()
    assert process is not None, "this runs in no simulated process"
    return process
