"""Background tasks, one timer and one metadata refresh at a time, of a producer or consumer."""

import asyncio
from collections.abc import Callable, Coroutine

from ottla.base.errors import OttlaError
from ottla.client.connection.cluster import Cluster


class Background:
    """Runs tasks, and calls `pump` when the timer or a metadata refresh has ended."""

    def __init__(self, cluster: Cluster, pump: Callable[[], None]) -> None:
        self._cluster = cluster
        self._pump = pump
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        # In the loop's time. uvloop's handle of an expired timer does not give its time.
        self._timer_at_s = 0.0
        self._refreshing = False
        self.closed = False

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` in the background."""
        if self.closed:
            work.close()
            return
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def until(self, when_s: float) -> None:
        """Call `pump` at the loop's time `when_s` at the latest."""
        if self._timer is not None and self._timer_at_s <= when_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when_s, self._on_timer)
        self._timer_at_s = when_s

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    def refresh(self, *, pause: bool = False) -> None:
        """Refresh the metadata, then call `pump`; after a `pause` if there is nothing else to do.

        After an error there is always a pause.
        """
        if not self._refreshing:
            self._refreshing = True
            self.run(self._refresh_and_pump(pause=pause))

    async def _refresh_and_pump(self, *, pause: bool) -> None:
        try:
            await self._cluster.refresh()
        except OttlaError:
            await self._cluster.pause(1)
        else:
            if pause:
                await self._cluster.pause(0)
        finally:
            self._refreshing = False
        self._pump()

    async def close(self) -> None:
        """Cancel the tasks and the timer, and start no more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
