"""Waiting requests, which check at most once per turn of the loop whether they must still wait."""

from abc import ABC, abstractmethod

from ottla.broker.runtime.runtime import Runtime


class Woken(ABC):
    """A `watcher.Waiter` that checks once after the turn, however often it is woken in it."""

    __slots__ = ("_look_scheduled", "_runtime")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._look_scheduled = False

    def wake(self) -> None:
        """Check once, after all appends of this turn, whether the wait is over."""
        if not self._look_scheduled:
            self._look_scheduled = True
            self._runtime.loop.call_soon(self._look_now)

    def _look_now(self) -> None:
        self._look_scheduled = False
        self._look()

    @abstractmethod
    def _look(self) -> None:
        """Check whether a woken request must still wait; it may be answered already."""
