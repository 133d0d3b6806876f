"""Closes the parts that were started, in the opposite order."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType

Close = Callable[[], Awaitable[None] | None]


class Closing:
    """An exit stack of calls without arguments; an error in one leaves the others to be called.

    A coroutine that is abandoned while it closes (its loop ended, its process was killed in the
    simulation) closes nothing more: what was not closed is as after a crash.
    """

    def __init__(self) -> None:
        self._stack = AsyncExitStack()

    def push(self, close: Close) -> None:
        """Call `close`, which may be a coroutine function, before all that was pushed earlier."""

        async def at_the_end(
            kind: type[BaseException] | None,
            _error: BaseException | None,
            _traceback: TracebackType | None,
        ) -> None:
            if kind is GeneratorExit:
                return
            closed = close()
            if inspect.isawaitable(closed):
                await closed

        self._stack.push_async_exit(at_the_end)

    async def close(self) -> None:
        """Close all. Raises the last error that a call raised."""
        await self._stack.aclose()
