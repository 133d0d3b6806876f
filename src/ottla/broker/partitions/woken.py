"""Requests that wait, and look at most once per turn of the loop whether they still must."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class Woken(ABC):
    """A `watching.Waiter`: however often it is woken in a turn, it looks once, after the turn."""

    __slots__ = ("_broker", "_look_scheduled")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._look_scheduled = False

    def wake(self) -> None:
        """What it waits for may be there: look once, after all appends of this turn."""
        if not self._look_scheduled:
            self._look_scheduled = True
            self._broker.loop.call_soon(self._look_now)

    def _look_now(self) -> None:
        self._look_scheduled = False
        self._look()

    @abstractmethod
    def _look(self) -> None:
        """It was woken, perhaps before it was answered: see whether it must still wait."""
