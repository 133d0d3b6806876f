"""The base class of a broker's parts, which start and stop with the broker."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(slots=True)
class StopMode:
    """How to stop a broker; set before its parts are stopped.

    The defaults, for a broker whose start fails, are those of a crash.
    """

    # Whether to flush all appended records.
    clean: bool = False
    # Whether to move leadership to other brokers first.
    hands_over: bool = False


class BrokerPart(ABC):
    """A part of a broker: an async context manager that is complete after its constructor.

    Parts are entered in the order in which they are created, and left in reverse. A GeneratorExit
    means that the part was abandoned: its loop ended, or the simulation killed its process. Then
    nothing is stopped, so that the state is the same as after a crash.
    """

    __slots__ = ()

    async def start(self) -> None:  # noqa: B027  # Few parts need it.
        """Prepare the part before any client connects. If this fails, `stop` is called."""

    def begin(self) -> None:  # noqa: B027  # As `start`.
        """Start background work; called once the broker has its partitions."""

    async def stop(self) -> None:  # noqa: B027  # As `start`.
        """End everything that `start` and `begin` started."""

    @abstractmethod
    def status(self) -> object:
        """Return the current figures of this part as a frozen dataclass."""

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except GeneratorExit:
            raise
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not GeneratorExit:
            await self.stop()
