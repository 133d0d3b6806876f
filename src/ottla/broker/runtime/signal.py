"""An event to which parts subscribe, so that the part that emits it need not know them."""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Calls its subscribers in the order in which they subscribed."""

    __slots__ = ("_subscribers",)

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, None]] = []

    def subscribe(self, callback: Callable[P, None]) -> None:
        """Call `callback` at each later `emit`."""
        self._subscribers.append(callback)

    def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every subscriber."""
        for callback in self._subscribers:
            callback(*args, **kwargs)
