"""The interfaces through which a partition notifies waiting fetches and fetch sessions."""

from abc import ABC, abstractmethod
from typing import Protocol

from ottla.broker.runtime.runtime import Runtime


class Waiter(Protocol):
    """A fetch that waits for more records."""

    def wake(self) -> None:
        """Check, once per turn of the loop, whether there are enough records."""
        ...


class Watcher(Protocol):
    """A follower's fetch session, which a partition notifies of changes."""

    def on_appended(self) -> None:
        """Note appended records, or a new log start offset to send to the follower at once."""
        ...

    def on_committed(self) -> None:
        """Note that the high watermark or the log start offset has changed."""
        ...

    def on_role(self) -> None:
        """Note a change of role, which invalidates the pending answer to the follower."""
        ...


class Woken(ABC):
    """A `Waiter` that checks once after each turn of the loop in which it was woken."""

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
        """Check whether the request can be answered; it may have been answered already."""
