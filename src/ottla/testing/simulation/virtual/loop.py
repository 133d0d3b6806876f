"""An event loop with virtual time, which jumps to the next timer instead of waiting.

All parts of a simulated world run on one such loop. The seed decides the order: if callbacks of
several processes are due at the same time, they are interleaved at random. Within one process
callbacks keep the order in which they were scheduled, as asyncio promises.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from struct import Struct
from typing import Any, NoReturn, Protocol, TypeVar
from zlib import crc32

from ottla.testing.simulation.virtual.process import PROCESS, Process

Result = TypeVar("Result")

# Cancelled timers are removed if there are more than this, and more than half are cancelled.
_CANCELLED_MIN = 1_000
_MOMENT = Struct("<dI")


class Deadlock(AssertionError):
    """The loop has no callback and no timer: a task waits for an event that never happens."""


class LoopNetwork(Protocol):
    """The methods of the network that a loop uses; `network.network.Network` has them."""

    def listen(self, factory: Any, *args: Any, **named: Any) -> Any:
        """Accept connections on a bound address."""

    async def connect(self, factory: Any, host: str, port: int) -> Any:
        """Open a connection. Raises ConnectionRefusedError."""

    def bind(self, host: str, port: int) -> Any:
        """Bind an address. Raises OSError if it is in use."""


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of one simulated world. `time()` returns the virtual seconds since its start."""

    def __init__(self, seed: int | str = 0) -> None:
        super().__init__()
        self.seed = seed
        self._clock_resolution = 1e-9
        self._now_s = 0.0
        self._order = Random(f"{seed}/order")
        self._ready: deque[asyncio.Handle] = deque()
        # (when, number, timer): tuples are compared several times as fast as timers.
        self._scheduled: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_total = 0
        self._timer_cancelled_count = 0
        # Set by the network, once it is created.
        self.network: LoopNetwork | None = None
        self.callbacks_total = 0
        # A checksum of all events and their times: runs with equal events have equal digests.
        self.digest = 0

    def time(self) -> float:
        return self._now_s

    def note(self, data: bytes | memoryview) -> None:
        """Add `data` to the digest of this run."""
        self.digest = crc32(data, self.digest)

    def _run_once(self) -> None:
        ready = self._ready
        if not ready and not self._stopping:  # type: ignore[attr-defined]  # asyncio's own.
            self._advance()
        turn = len(ready)
        if turn == 0:
            return
        if turn > 1:
            self._shuffle()
        self.callbacks_total += turn
        self.digest = crc32(_MOMENT.pack(self._now_s, turn), self.digest)
        for _ in range(turn):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            if process is not None:
                if not process.is_alive:
                    continue
                if process.is_paused:
                    process.held.append(handle)
                    continue
            # As `Handle._run`, inlined.
            try:
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  # Reported as asyncio does.
                self._report_error(handle, error)

    def _report_error(self, handle: asyncio.Handle, error: BaseException) -> None:
        message = f"Exception in callback {handle!r}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def _advance(self) -> None:
        """Set the time to that of the next timer, and schedule the callbacks that are due then."""
        timers = self._scheduled
        if self._timer_cancelled_count > max(_CANCELLED_MIN, len(timers) // 2):
            for _, _, handle in timers:
                if handle.cancelled():
                    handle._scheduled = False  # type: ignore[attr-defined]
            timers[:] = [timer for timer in timers if not timer[2].cancelled()]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers:
            when_s, _, handle = heapq.heappop(timers)
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle.cancelled():
                self._timer_cancelled_count -= 1
                continue
            self._now_s = max(self._now_s, when_s)
            self._ready.append(handle)
            break
        else:
            raise Deadlock(f"nothing is ready and no timer is set at {self._now_s:.6f} s")
        while timers and timers[0][0] <= self._now_s:
            handle = heapq.heappop(timers)[2]
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle.cancelled():
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(handle)

    def _shuffle(self) -> None:
        """Interleave the processes at random; each process's callbacks keep their order."""
        labels: list[int] = []
        for handle in self._ready:
            process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            labels.append(0 if process is None else process.number)
        if len(set(labels)) == 1:
            return
        lines: dict[int, deque[asyncio.Handle]] = {}
        for label, handle in zip(labels, self._ready, strict=True):
            lines.setdefault(label, deque()).append(handle)
        self._order.shuffle(labels)
        self._ready.clear()
        self._ready.extend(lines[label].popleft() for label in labels)

    # -- asyncio's interface

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_total += 1
        heapq.heappush(self._scheduled, (when, self._timers_total, timer))
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Result],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        task: asyncio.Task[Result] = super().create_task(coro, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # The killed stay pending.
        process = (context.get(PROCESS) if context is not None else None) or PROCESS.get()
        if process is not None:
            process.tasks[task] = None
            task.add_done_callback(process.tasks.pop)
        return task

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Result], *args: Any
    ) -> asyncio.Future[Result]:
        """Run `func` in one step on the loop, after a simulated delay, as there are no threads."""
        del executor
        future: asyncio.Future[Result] = self.create_future()
        process = PROCESS.get()
        delay_s = 0.0 if process is None else process.blocking_delay_s()
        self.call_later(delay_s, _finish, future, func, args)
        return future

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *args: Any, **named: Any
    ) -> Any:
        return self._network().listen(protocol_factory, *args, **named)

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        **_named: Any,
    ) -> Any:
        assert host is not None
        assert port is not None
        return await self._network().connect(protocol_factory, host, port)

    def bind(self, host: str, port: int) -> Any:
        """Return an address of the simulated network, used in place of a bound socket."""
        return self._network().bind(host, port)

    def _network(self) -> LoopNetwork:
        assert self.network is not None, "this loop has no network yet"
        return self.network

    async def getaddrinfo(self, *_args: Any, **_named: Any) -> NoReturn:
        raise AssertionError("names are not resolved in a simulation: connect by host and port")

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        return


def resume(loop: VirtualLoop, process: Process) -> None:
    """Continue a paused process; callbacks that came during the pause run now, in order."""
    process.is_paused = False
    loop._ready.extend(process.held)
    process.held.clear()


def _finish(future: "asyncio.Future[Result]", func: Callable[..., Result], args: Any) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001  # Carried to the task that awaits it.
        future.set_exception(error)
    else:
        future.set_result(result)


def run_virtual(main: Coroutine[Any, Any, Result], seed: int | str = 0) -> Result:
    """Run `main` on a new virtual loop. All random decisions are drawn from `seed`."""
    loop = VirtualLoop(seed)
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


# 2026-01-01 00:00 UTC: the time at which every simulated world begins.
BEGINNING_MS = 1_767_225_600_000


class MachineClock:
    """Implements `Clock` in virtual time. A change of `skew_ms` makes the time of day jump."""

    def __init__(self, loop: VirtualLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return BEGINNING_MS + self.skew_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)
