"""Background coroutines: kept, supervised, and cancelled when the broker stops."""

import asyncio
import logging
from collections.abc import Coroutine

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
