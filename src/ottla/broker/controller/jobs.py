"""The active controller's queue of events and requests, handled in the order of arrival."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ottla.base.errors import OttlaError
from ottla.broker.controller.store_access import Deposed
from ottla.coordination.interface.store import SessionExpired, StoreError, StoreUnavailable

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1

T = TypeVar("T")
Job = Callable[[], Awaitable[None]]


class Jobs:
    """Runs one job at a time until it is stopped or `on_deposed` is called.

    After a job fails, the state of the store is uncertain, so `repair` runs before the job is
    repeated.
    """

    def __init__(self, repair: Job, on_deposed: Callable[[], None]) -> None:
        self._repair = repair
        self._on_deposed = on_deposed
        # The queued jobs by name; a name is queued only once.
        self._waiting: dict[str, Job] = {}
        self._asked = 0
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # The unanswered requests. A dict, unlike a set, keeps their order.
        self._open: dict[asyncio.Future[Any], None] = {}

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop the queue; requests without an answer fail with Deposed."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._waiting.clear()
        for asked in list(self._open):
            if not asked.done():
                asked.set_exception(Deposed())

    def once(self, name: str, job: Job) -> None:
        """Queue `job`, unless a job with this name is queued already."""
        self._waiting.setdefault(name, job)
        self._arrived.set()

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Queue `work`, and return its result. Raises what it raises."""
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._open[answered] = None
        answered.add_done_callback(lambda done: self._open.pop(done, None))

        async def job() -> None:
            try:
                result = await work()
            except OttlaError as error:
                if not answered.done():
                    answered.set_exception(error)
                if isinstance(error, StoreError | Deposed):
                    raise
            else:
                if not answered.done():
                    answered.set_result(result)

        self._asked += 1
        self.once(f"asked {self._asked}", job)
        return await answered

    async def _run(self) -> None:
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            name = next(iter(self._waiting))
            job = self._waiting.pop(name)
            try:
                await job()
            except (Deposed, SessionExpired):
                # The ephemeral node `/controller` ends with the session.
                self._on_deposed()
                return
            except StoreUnavailable as error:
                _log.warning("the store does not answer the controller: %s", error.message)
                self._again(name, job)
                await asyncio.sleep(_PAUSE_S)
            except Exception:  # noqa: BLE001  # The supervisor of the controller's jobs.
                _log.exception("the controller failed at: %s", name)
                self._again("repair", self._repair)
                await asyncio.sleep(_PAUSE_S)

    def _again(self, name: str, job: Job) -> None:
        """Queue a repair, then `job` again, unless it was a request, which has failed already."""
        first: dict[str, Job] = {"repair": self._repair}
        if not name.startswith("asked "):
            first[name] = job
        self._waiting = first | self._waiting
        self._arrived.set()
