"""A simulated process: all callbacks that belong to it can be paused or discarded.

A context variable says to which process a callback belongs. Tasks, timers and callbacks inherit
it from the code that created them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

# The least and the greatest duration of a blocking call on a healthy disk.
FAST_S = (0.0001, 0.002)

PROCESS: ContextVar["Process | None"] = ContextVar("simulated_process", default=None)


class Process:
    """One process on one host. `number` is unique in its world, and rises with each new process."""

    def __init__(self, name: str, host: str, number: int, chance: Random) -> None:
        self.name = name
        self.host = host
        self.number = number
        self.is_alive = True
        self.is_paused = False
        # Its own random source, for delays and for the code that runs in it.
        self.chance = chance
        # The least and the greatest duration of a blocking call of this process.
        self.blocking_s = FAST_S
        # Callbacks that became due while it was paused.
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
        """Call `callback` when it is killed, for work that its operating system would do."""
        self._on_death.append(callback)

    def kill(self) -> None:
        """End the process: none of its callbacks runs any more."""
        if self.is_alive:
            self.is_alive = False
            self.held.clear()
            for callback in self._on_death:
                callback()

    def blocking_delay_s(self) -> float:
        """Return the duration of the next blocking call."""
        least, most = self.blocking_s
        return least + (most - least) * self.chance.random() ** 3


def current_process() -> Process:
    """Return the process of the running code; assert that it is not the simulation itself."""
    process = PROCESS.get()
    assert process is not None, "this runs in no simulated process"
    return process
