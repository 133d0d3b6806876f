"""The outcome of a batch of sent records, one for all of them."""

import asyncio
from collections.abc import Generator

from ottla.base.errors import ErrorCode
from ottla.client.errors import ClientError, DeliveryFailed


class Delivery:
    """The outcome of one batch. Await it, or read it once `is_done`.

    `base_offset` is the offset of the batch's first record (-1 with acks 0: there is no answer);
    the record sent as number `n` of the batch has offset `base_offset + n`. `timestamp_ms` is
    the broker's time where the topic uses LogAppendTime, else -1. A batch that the topic found
    too large went in parts: then `base_offset` holds for the first part only.
    """

    __slots__ = (
        "_futures",
        "_told",
        "base_offset",
        "error",
        "is_done",
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
        self.is_done = False
        self._futures: list[asyncio.Future[Delivery]] = []
        # Set once the outcome was awaited or read: `flush` does not raise the error again.
        self._told = False

    def __repr__(self) -> str:
        state = "pending" if not self.is_done else str(self.error or self.base_offset)
        return f"<Delivery {self.topic}-{self.partition} x{self.record_count}: {state}>"

    def __await__(self) -> Generator[object, None, "Delivery"]:
        """Wait for the answer; returns self, or raises DeliveryFailed."""
        return self._wait().__await__()

    async def _wait(self) -> "Delivery":
        # The caller gets the error.
        self._told = True
        await self.settled()
        return self.result()

    async def settled(self) -> None:
        """Wait until the outcome is known; raises nothing."""
        if not self.is_done:
            future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
            self._futures.append(future)
            await future

    def result(self) -> "Delivery":
        """Self once delivered. Raises DeliveryFailed if the records were given up."""
        if not self.is_done:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                "nothing is known of this batch yet: await the delivery, or flush the producer",
            )
        if self.error is not None:
            self._told = True
            raise self.error
        return self

    @property
    def _untold_error(self) -> ClientError | None:
        """The error, unless it was raised or read already."""
        return None if self._told else self.error

    def _complete(self, base_offset: int, timestamp_ms: int) -> None:
        """The broker has the records."""
        self.base_offset = base_offset
        self.timestamp_ms = timestamp_ms
        self._finish()

    def _fail(self, error: DeliveryFailed) -> None:
        """The records were given up."""
        self.error = error
        self._finish()

    def _settle_as_is(self) -> None:
        """All parts of a batch that was sent in parts are settled; their outcome is set."""
        self._finish()

    def _finish(self) -> None:
        assert not self.is_done
        self.is_done = True
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():
                future.set_result(self)
