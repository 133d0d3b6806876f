"""ShareFetch over loopback: what a member waits for (KIP-932)."""

import asyncio
import time

import pytest

from ottla.base.errors import ErrorCode
from tests.integration.broker.share_member import (
    ACCEPT,
    FOR_EVER_MS,
    RELEASE,
    Member,
    joined,
    values,
    write,
)


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for():
    """Records below that stay available; all come together when there are enough."""

    async def scenario():
        async with joined() as (member, other):
            waiting = asyncio.create_task(member.fetch(min_bytes=1000, max_wait_ms=FOR_EVER_MS))
            await write(other, b"one", b"two")
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done
            await write(other, b"x" * 1000)
            assert await waiting == [b"one", b"two", b"x" * 1000]

    run(scenario())


def test_a_fetch_waits_no_longer_than_it_asks_for():
    """Then it gets what there is."""

    async def scenario():
        async with joined() as (member, other):
            # Its partition is loaded with the first fetch.
            assert await member.fetch(min_bytes=1, max_wait_ms=1) == []
            await write(other, b"one")
            began_s = time.monotonic()
            assert await member.fetch(min_bytes=1000, max_wait_ms=300) == [b"one"]
            assert time.monotonic() - began_s >= 0.29

    run(scenario())


def test_what_others_have_does_not_count():
    """Bytes are counted of records that the member may be given, released ones among them."""

    async def scenario():
        async with joined() as (first, other):
            second = Member(first.broker, other)
            await second.join()
            await write(other, b"x" * 600)
            assert await first.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS) == [b"x" * 600]
            waiting = asyncio.create_task(second.fetch(min_bytes=1000, max_wait_ms=FOR_EVER_MS))
            third = await type(other).connect(first.broker.port)
            await write(third, b"y" * 600)
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done
            released = first.request(min_bytes=1, max_wait_ms=1, said=[(0, 0, RELEASE)])
            released.max_records = 0
            await first.client.call(released, 2)
            assert await waiting == [b"x" * 600, b"y" * 600]
            third.close()

    run(scenario())


def test_a_member_is_told_at_once_that_its_answer_does_not_hold():
    """Though there are no records for it yet."""

    async def scenario():
        async with joined() as (member, other):
            await write(other, b"one")
            assert await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS) == [b"one"]
            asked = member.request(min_bytes=1000, max_wait_ms=FOR_EVER_MS, said=[(5, 5, ACCEPT)])
            answer = await member.client.call(asked, 2)
            (part,) = answer.responses[0].partitions
            assert part.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE

    run(scenario())


@pytest.mark.parametrize("version", [1, 2])
def test_every_version_gives_the_records(version):
    """Once: who has them does not get them again."""

    async def scenario():
        async with joined() as (member, other):
            await write(other, b"one", b"two")
            asked = member.request(min_bytes=1, max_wait_ms=FOR_EVER_MS)
            assert values(await member.client.call(asked, version)) == [b"one", b"two"]
            assert await member.fetch(min_bytes=1, max_wait_ms=1) == []

    run(scenario())
