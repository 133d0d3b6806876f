"""What is closed, in which order, and what is not."""

import asyncio

import pytest

from ottla.broker.process.closing import Closing


def test_the_last_is_closed_first():
    """Coroutine functions and plain ones alike; an error leaves the others to be called."""
    closed = []

    async def slowly():
        await asyncio.sleep(0)
        closed.append("slowly")

    def badly():
        raise OSError("no")

    async def main():
        closing = Closing()
        closing.push(lambda: closed.append("first"))
        closing.push(slowly)
        closing.push(badly)
        closing.push(lambda: closed.append("last"))
        with pytest.raises(OSError, match="no"):
            await closing.close()
        await closing.close()

    asyncio.run(main())
    assert closed == ["last", "slowly", "first"]


def test_an_abandoned_close_closes_nothing_more():
    """A killed process of the simulation must not go on to write clean checkpoints."""
    closed = []

    async def for_ever():
        closed.append("began")
        await asyncio.get_running_loop().create_future()

    async def main():
        closing = Closing()
        closing.push(lambda: closed.append("first"))
        closing.push(for_ever)
        work = closing.close()
        work.send(None)
        work.close()

    asyncio.run(main())
    assert closed == ["began"]
