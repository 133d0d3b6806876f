"""Background work of a broker: supervised tasks and periodic chores."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from ottla.storage.disk.errors import StorageError

_log = logging.getLogger(__name__)


class Tasks:
    """The background tasks of a broker. A failing task is logged; the others keep running."""

    def __init__(self) -> None:
        # In the order in which they were started.
        self._running: dict[asyncio.Task[None], None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` to its end, or until the broker stops."""
        task = asyncio.get_running_loop().create_task(_supervise(work))
        self._running[task] = None
        task.add_done_callback(self._running.pop)

    async def cancel(self) -> None:
        """Cancel all running tasks."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _supervise(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001  # The supervisor of tasks.
        _log.exception("a task of the broker failed unexpectedly")


_SHORTEST_INTERVAL_MS = 10
_LONGEST_SLEEP_S = 86_400

Chore = Callable[[], Awaitable[None]]


class Chores:
    """The chores of one part. A failure is logged, and the chore runs again after its interval."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, interval_ms: int, chore: Chore) -> None:
        """Repeat `chore` after each interval."""
        # Kafka's Long.MAX_VALUE for an unlimited interval is longer than a timer can run. An
        # interval of 0, which Kafka allows for checkpoints, would leave no time for other work.
        pause_s = min(max(interval_ms, _SHORTEST_INTERVAL_MS) / 1000, _LONGEST_SLEEP_S)

        async def repeat() -> None:
            while True:
                await asyncio.sleep(pause_s)
                try:
                    await chore()
                except StorageError as error:
                    _log.error("%s: %s", chore.__name__, error.message)
                except Exception:  # noqa: BLE001  # The supervisor of chores: the next run may succeed.
                    _log.exception("%s failed", chore.__name__)

        self.run(repeat())

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run `work`, which must not fail, until the part stops."""
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def stop(self) -> None:
        """Cancel all chores, including running ones."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
