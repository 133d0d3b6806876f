"""The outcome of a batch of sent records, one for all of them."""

import asyncio
import threading
from collections.abc import Callable, Generator

from ottla.base.errors import ErrorCode
from ottla.client.common.callbacks import call_callback
from ottla.client.common.errors import ClientError, DeliveryFailed, RequestTimedOut


class Delivery:
    """The outcome of one batch. Await it, or call `result()` in a thread without an event loop.

    `base_offset` is the offset of the batch's first record (-1 with acks 0: there is no answer);
    record number `n` of the batch has offset `base_offset + n`. `timestamp_ms` is the broker's time
    if the topic uses LogAppendTime, else -1. A batch that was too large for the topic was sent in
    parts: then `base_offset` is the offset of the first part.
    """

    __slots__ = (
        "_callbacks",
        "_futures",
        "_is_done",
        "_is_reported",
        "base_offset",
        "error",
        "partition",
        "record_count",
        "timestamp_ms",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.record_count = 0
        self.base_offset = -1
        self.timestamp_ms = -1
        self.error: ClientError | None = None
        self._is_done = False
        self._futures: list[asyncio.Future[Delivery]] = []
        self._callbacks: list[Callable[[Delivery], object]] = []
        # Set once the outcome was awaited or read, so that `flush` does not raise the error again.
        self._is_reported = False

    def __repr__(self) -> str:
        state = "pending" if not self._is_done else str(self.error or self.base_offset)
        return f"<Delivery {self.topic}-{self.partition} x{self.record_count}: {state}>"

    def __await__(self) -> Generator[object, None, "Delivery"]:
        """Wait for the answer; returns self, or raises DeliveryFailed."""
        return self._wait().__await__()

    async def _wait(self) -> "Delivery":
        # The caller receives the error.
        self._is_reported = True
        await self.settled()
        return self.result()

    async def settled(self) -> None:
        """Wait until the outcome is known; never raises an error."""
        if not self._is_done:
            future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
            self._futures.append(future)
            await future

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._is_done

    @property
    def offset(self) -> int:
        """Return the offset of a record sent alone. Raises ClientError for more records."""
        if self.record_count > 1:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                f"this batch has {self.record_count} records: the first one's offset is"
                " base_offset, and the others follow it",
            )
        return self.base_offset

    def result(self, timeout: float | None = None) -> "Delivery":
        """Wait for delivery, `timeout` seconds, and return self. Not on an event loop: await.

        Raises DeliveryFailed if the producer gave up the records, RequestTimedOut.
        """
        if not self._is_done:
            self._wait_here(timeout)
        if self.error is not None:
            self._is_reported = True
            raise self.error
        return self

    def _wait_here(self, timeout: float | None) -> None:
        """Block this thread until the client's own thread knows the outcome."""
        if _is_on_a_loop():
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                "nothing is known of this batch yet: await the delivery, or flush the producer",
            )
        ended = threading.Event()
        self.add_callback(lambda _delivery: ended.set())
        if not ended.wait(timeout):
            raise RequestTimedOut(f"no outcome of {self!r} within {timeout:g} s")

    def add_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Call `callback` with this delivery once its outcome is known, on the client's loop.

        If the outcome is known already, call it at once. Errors of the callback are logged.
        """
        self._callbacks.append(callback)
        # Another thread may have finished meanwhile; the thread that removes the callback calls it.
        if self._is_done and callback in self._callbacks:
            self._callbacks.remove(callback)
            call_callback("a callback of a delivery", callback, self)

    @property
    def _unreported_error(self) -> ClientError | None:
        """Return the error, unless it was raised or read already."""
        return None if self._is_reported else self.error

    def _complete(self, base_offset: int, timestamp_ms: int) -> None:
        """Note that the broker has the records."""
        self.base_offset = base_offset
        self.timestamp_ms = timestamp_ms
        self._finish()

    def _fail(self, error: DeliveryFailed) -> None:
        """Note that the producer gave up the records."""
        self.error = error
        self._finish()

    def _finish(self) -> None:
        """Note that the outcome is set."""
        assert not self._is_done
        self._is_done = True
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():
                future.set_result(self)
        while self._callbacks:
            call_callback("a callback of a delivery", self._callbacks.pop(0), self)


def _is_on_a_loop() -> bool:
    """Whether an event loop runs in this thread: waiting here would stop it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
