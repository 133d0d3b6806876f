"""Runs one blocking call in a thread that does not outlive the process."""

import asyncio
import contextlib
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_daemon(call: Callable[[], T]) -> T:
    """Return the result of a call that runs in a thread of its own.

    Unlike a thread of the loop's pool, it does not keep the process alive: an issuer that does not
    answer would otherwise delay the broker's shutdown by its timeout.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            found = call()
        except Exception as error:  # noqa: BLE001  # Raised where the result is awaited.
            failure = error
            deliver(lambda: result.set_exception(failure))
        else:
            deliver(lambda: result.set_result(found))

    def deliver(give: Callable[[], None]) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if result.done() else give())

    Thread(target=run, name="ottla-issuer", daemon=True).start()
    return await result
