"""Whoever waits for memory is never left waiting when none is taken any more."""

import asyncio

from ottla.client import Producer


def test_room_is_there_at_once_where_nothing_is_outstanding() -> None:
    """The last delivery may come between finding memory full and waiting for it to be free.

    Seen once: a thread that sent to an idle producer waited for ever.
    """

    async def wait_for_room() -> None:
        producer = Producer("127.0.0.1:1")
        await asyncio.wait_for(producer._room(), 60)

    asyncio.run(wait_for_room())
