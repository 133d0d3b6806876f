"""A part of a broker with a life: it is entered when the broker starts and left when it stops."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class BrokerPart(ABC):
    """Complete when its constructor returns; an async context manager from then on.

    Parts are entered in the order in which they are built and left in the opposite one. A part
    that is left with GeneratorExit was abandoned: its loop ended, or its process was killed in the
    simulation. It stops nothing then, so that all is as after a crash.
    """

    __slots__ = ()

    async def start(self) -> None:  # noqa: B027  # Few parts need it.
        """Make ready, before any client connects. Where it fails, `stop` is called."""

    def begin(self) -> None:  # noqa: B027  # As `start`.
        """Start what works beside requests: the broker has its partitions now."""

    async def stop(self) -> None:  # noqa: B027  # As `start`.
        """End everything that `start` and `begin` started."""

    @abstractmethod
    def status(self) -> object:
        """The numbers of this part at this moment, as one frozen dataclass."""

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
