"""What is stopped, in which order, and what is not."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from ottla.broker.runtime.part import BrokerPart


class Named(BrokerPart):
    """Notes its life in `life`."""

    def __init__(self, name, life, *, start_error=None, stop_error=None, hangs=False):
        self._name = name
        self._life = life
        self._start_error = start_error
        self._stop_error = stop_error
        self._hangs = hangs

    async def start(self):
        self._life.append(f"start {self._name}")
        if self._start_error is not None:
            raise self._start_error

    async def stop(self):
        await asyncio.sleep(0)
        self._life.append(f"stop {self._name}")
        if self._hangs:
            await asyncio.get_running_loop().create_future()
        if self._stop_error is not None:
            raise self._stop_error

    def status(self):
        return None


def test_the_last_is_stopped_first():
    """An error in one leaves the others to be stopped; a second close stops nothing."""
    life = []

    async def main():
        stack = AsyncExitStack()
        await stack.enter_async_context(Named("first", life))
        await stack.enter_async_context(Named("bad", life, stop_error=OSError("no")))
        await stack.enter_async_context(Named("last", life))
        life.clear()
        with pytest.raises(OSError, match="no"):
            await stack.aclose()
        await stack.aclose()

    asyncio.run(main())
    assert life == ["stop last", "stop bad", "stop first"]


def test_a_part_whose_start_fails_is_stopped():
    """It may hold something already; those below it are left to the stack."""
    life = []

    async def main():
        with pytest.raises(OSError, match="no"):
            await Named("only", life, start_error=OSError("no")).__aenter__()

    asyncio.run(main())
    assert life == ["start only", "stop only"]


def test_a_cancelled_stop_stops_the_others():
    life = []

    async def main():
        stack = AsyncExitStack()
        await stack.enter_async_context(Named("first", life))
        await stack.enter_async_context(Named("last", life, hangs=True))
        life.clear()
        work = asyncio.ensure_future(stack.aclose())
        while not life:  # noqa: ASYNC110  # A turn or two.
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    assert life == ["stop last", "stop first"]


def test_an_abandoned_stop_stops_nothing_more():
    """A killed process of the simulation must not go on to write clean checkpoints."""
    life = []

    async def main():
        stack = AsyncExitStack()
        await stack.enter_async_context(Named("first", life))
        await stack.enter_async_context(Named("last", life, hangs=True))
        life.clear()
        work = stack.aclose()
        work.send(None)
        work.send(None)
        work.close()

    asyncio.run(main())
    assert life == ["stop last"]
