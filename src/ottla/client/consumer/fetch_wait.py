"""Wakes a fetcher when it may send its next request: after answers, back-off or a refresh."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from ottla.base.errors import OttlaError
from ottla.client.connection.attempts import Backoff
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.partition_state import PartitionState


class Waiting:
    """Runs tasks, one timer and one metadata refresh at a time; calls `pump` when they end."""

    def __init__(self, cluster: Cluster, backoff: Backoff, pump: Callable[[], None]) -> None:
        self._cluster = cluster
        self._backoff = backoff
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

    def delay(self, states: Iterable[PartitionState]) -> None:
        """Do not fetch these partitions for a while, longer after each failure."""
        now_s = asyncio.get_running_loop().time()
        for state in states:
            delay_s = self._backoff.delay_s(state.attempts, self._cluster.chance)
            state.attempts += 1
            state.not_before_s = now_s + delay_s
            self.until(state.not_before_s)

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

    def refresh(self) -> None:
        """Refresh the metadata, then call `pump`."""
        if not self._refreshing:
            self._refreshing = True
            self.run(self._refresh_and_pump())

    async def _refresh_and_pump(self) -> None:
        try:
            await self._cluster.refresh()
        except OttlaError:
            await self._cluster.pause(1)
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
