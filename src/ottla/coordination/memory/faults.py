"""Faults between a simulated store and its clients: drawn from a seed, or on demand.

Everything runs on the loop's time, so that under a virtual loop a run is a function of its seed.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.coordination.interface.store import StoreUnavailable

T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    """One client's connection to the store: first in, first out, in both directions."""

    cut: bool = False
    paused: bool = False
    # Answers to lose next, oldest first; True if the request is to be applied.
    losses: list[bool] = field(default_factory=list)
    # Notifications that became due while the client was unreachable.
    news: list[Callable[[], None]] = field(default_factory=list)
    request_due_s: float = 0.0
    answer_due_s: float = 0.0


class StoreFaults:
    """The faults of the network and of the store. Ranges are (least, most) milliseconds.

    `lost_answer_rate` is the share of changes that end in StoreUnavailable; half of these changes
    are carried out.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        latency_ms: tuple[float, float] = (0.2, 2.0),
        watch_delay_ms: tuple[float, float] = (0.2, 5.0),
        lost_answer_rate: float = 0.0,
        patience_ms: float = 5_000.0,
    ) -> None:
        self.latency_ms = latency_ms
        self.watch_delay_ms = watch_delay_ms
        self.lost_answer_rate = lost_answer_rate
        self.patience_ms = patience_ms
        self.out = False
        self._rng = rng
        self._lines: dict[str, _Line] = {}
        self._moved = asyncio.Event()
        self._on_return: list[Callable[[], None]] = []

    def outage(self) -> None:
        """Make the store unreachable for all clients. No session ends meanwhile."""
        self.out = True

    def restore(self) -> None:
        """End the outage; every session gets its full lease again, as in ZooKeeper."""
        self.out = False
        for callback in self._on_return:
            callback()
        self._wake()

    def cut(self, client: str) -> None:
        """Block all messages between the store and one client, in both directions."""
        self._line(client).cut = True

    def heal(self, client: str) -> None:
        self._line(client).cut = False
        self._wake()

    def pause(self, client: str) -> None:
        """Stop the client's process: it sends and receives nothing until `resume`."""
        self._line(client).paused = True

    def resume(self, client: str) -> None:
        self._line(client).paused = False
        self._wake()

    def lose_next_answer(self, client: str, *, applied: bool) -> None:
        """Make the client's next change raise StoreUnavailable, applied or not."""
        self._line(client).losses.append(applied)

    def reachable(self, client: str) -> bool:
        """Whether messages pass between client and store now."""
        line = self._line(client)
        return not (self.out or line.cut or line.paused)

    async def exchange(self, client: str, action: Callable[[], T], *, changes: bool) -> T:
        """Send a request to the store, apply it, and return the answer.

        Raises StoreUnavailable if the request or the answer is lost.
        """
        line = self._line(client)
        await self._until_reachable(client, "is not reached")
        line.request_due_s = self._arrival_s(line.request_due_s)
        await self._sleep_until(line.request_due_s)
        lost, applied = self._draw_loss(line) if changes else (False, True)
        if self.out or line.cut or not applied:
            raise await self._silence("the request was lost")
        answer: T | None = None
        error: Exception | None = None
        try:
            answer = action()
        except Exception as raised:  # noqa: BLE001 The answer travels, errors too.
            error = raised
        line.answer_due_s = self._arrival_s(line.answer_due_s)
        await self._sleep_until(line.answer_due_s)
        if lost or self.out or line.cut:
            raise await self._silence("the answer was lost")
        await self.while_paused(client)
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]  # None only where T is.

    def notify(self, client: str, news: Callable[[], None]) -> None:
        """Call `news` once a notification has reached the client, after a delay."""
        delay_s = self._draw_s(self.watch_delay_ms)
        asyncio.get_running_loop().call_later(delay_s, self._deliver, client, news)

    async def while_paused(self, client: str) -> None:
        line = self._line(client)
        while line.paused:
            await self._moved.wait()

    def on_return(self, callback: Callable[[], None]) -> None:
        """Call `callback` at the end of each outage, before any client notices it."""
        self._on_return.append(callback)

    def _line(self, client: str) -> _Line:
        return self._lines.setdefault(client, _Line())

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
        for client, line in self._lines.items():
            if line.news and self.reachable(client):
                waiting, line.news = line.news, []
                for news in waiting:
                    asyncio.get_running_loop().call_soon(self._deliver, client, news)

    def _deliver(self, client: str, news: Callable[[], None]) -> None:
        if self.reachable(client):
            news()
        else:
            self._line(client).news.append(news)

    async def _until_reachable(self, client: str, why: str) -> None:
        await self.while_paused(client)
        try:
            async with asyncio.timeout(self.patience_ms / 1000):
                while not self.reachable(client):
                    await self._moved.wait()
        except TimeoutError:
            raise StoreUnavailable(f"the store {why}; ask again later") from None

    async def _silence(self, why: str) -> StoreUnavailable:
        """Wait, then return the error that a client gets for a lost request or answer."""
        await asyncio.sleep(self._draw_s(self.latency_ms))
        return StoreUnavailable(f"{why}; read what became of the change")

    def _arrival_s(self, after_s: float) -> float:
        """Return when a message sent now arrives: not before a message sent earlier."""
        due_s = asyncio.get_running_loop().time() + self._draw_s(self.latency_ms)
        # A microsecond apart, because a loop may run callbacks of one instant in any order.
        return max(due_s, after_s + 1e-6)

    async def _sleep_until(self, due_s: float) -> None:
        """Sleep by the loop's clock: `asyncio.sleep` would read the clock again, later."""
        loop = asyncio.get_running_loop()
        due = asyncio.Event()
        timer = loop.call_at(due_s, due.set)
        try:
            await due.wait()
        finally:
            timer.cancel()

    def _draw_loss(self, line: _Line) -> tuple[bool, bool]:
        """Return whether the next answer is lost, and whether its request is carried out."""
        if line.losses:
            return True, line.losses.pop(0)
        if self.lost_answer_rate and self._rng.random() < self.lost_answer_rate:
            return True, self._rng.random() < 0.5
        return False, True

    def _draw_s(self, range_ms: tuple[float, float]) -> float:
        return self._rng.uniform(*range_ms) / 1000
