"""A thread whose event loop runs asynchronous clients; their methods as plain calls."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientClosed, ClientError

Result = TypeVar("Result")

try:
    import uvloop
except ImportError:
    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_event_loop = uvloop.new_event_loop


class LoopThread:
    """A loop in a daemon thread, for one client."""

    def __init__(self, name: str) -> None:
        self.loop = _new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` on the loop, wait for it, and return its result or raise its error."""
        if not self._thread.is_alive() or self.loop.is_closed():
            work.close()
            raise ClientClosed("the client is closed; make a new one")
        if threading.current_thread() is self._thread:
            work.close()
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                "a callback runs on the client's own thread and must not wait for it: hand the "
                "work to another thread",
            )
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed meanwhile") from None
        except BaseException:
            # Ctrl-C while waiting: the work ends too.
            future.cancel()
            raise

    def call_plain(self, work: Callable[[], Result]) -> Result:
        """Call a plain function on the loop, as `call` does for coroutines."""

        async def run() -> Result:
            return work()

        return self.call(run())

    def make(self, make: Callable[[], Result]) -> Result:
        """Return the result of `make`, called on the loop; if it raises, the thread ends."""
        try:
            return self.call_plain(make)
        except BaseException:
            self.stop()
            raise

    def end(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a last coroutine as `call` does, then `stop`."""
        try:
            self.call(work)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the loop and its thread."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(10)


Parameters = ParamSpec("Parameters")

# A class that uses these has `_thread`, whose loop runs the asynchronous client, and `_twin`, that
# client. The signature is written once, at the asynchronous method; type checkers, `help` and `dir`
# see it here, too.


def waits(
    method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Call `method` of the twin, and wait for its result."""
    name = method.__name__  # Looked up in the twin's class, which may override the method.

    @wraps(method)
    def call(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        result: Result = self._thread.call(getattr(self._twin, name)(*arguments, **named))
        return result

    return call


def asks(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Call `method` of the twin, which does not wait but must run on the twin's loop."""
    name = method.__name__  # Looked up in the twin's class, which may override the method.

    @wraps(method)
    def call(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        result: Result = self._thread.call_plain(
            lambda: getattr(self._twin, name)(*arguments, **named)
        )
        return result

    return call
