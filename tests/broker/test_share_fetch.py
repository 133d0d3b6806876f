"""ShareFetch over loopback: what a member waits for (KIP-932)."""

import asyncio
import time
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from broker_client import batch, connected, produce, produced

from ottla.base.errors import ErrorCode
from ottla.broker.configs import ResourceType
from ottla.record.reader import batches, records
from ottla.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = "workers"
FOR_EVER_MS = 3_600_000
ACCEPT, RELEASE = 1, 2
LOADING = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
ONE_OF_EACH = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def run(coroutine):
    return asyncio.run(coroutine)


class Member:
    """One of the group, that fetches the only partition of topic `a`."""

    def __init__(self, broker, client):
        self.broker = broker
        self.client = client
        self.id = str(uuid4())
        self.epoch = -1

    async def join(self):
        """Until it has the partition."""
        epoch = 0
        while True:
            beat = ShareGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.id,
                member_epoch=epoch,
                subscribed_topic_names=["a"],
            )
            answer = await self.client.call(beat, 1)
            if answer.error_code in LOADING:
                await asyncio.sleep(0.01)
                continue
            assert answer.error_code == 0, answer.error_message
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            epoch = answer.member_epoch

    def request(self, *, min_bytes, max_wait_ms, said=()):
        self.epoch += 1
        part = FetchPartition(
            partition_index=0,
            acknowledgement_batches=[
                AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
                for first, last, kind in said
            ],
        )
        topic_id = self.broker.image.topics["a"].id
        return ShareFetchRequest(
            group_id=GROUP,
            member_id=self.id,
            share_session_epoch=self.epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
        )

    async def fetch(self, **asked):
        return values(await self.client.call(self.request(**asked), 2))


def values(response):
    assert response.error_code == 0, response.error_message
    return [
        record.value
        for topic in response.responses
        for part in topic.partitions
        for position, header in batches(bytes(part.records or b""))
        for record in records(bytes(part.records), position, header)
    ]


@asynccontextmanager
async def joined():
    """A broker, a member of a group that begins at the log's start, and another connection."""
    async with connected(ONE_OF_EACH) as (broker, client):
        await broker.topics.auto_create("__consumer_offsets")
        settings = {"share.auto.offset.reset": "earliest"}
        await broker.configs.replace(ResourceType.GROUP, GROUP, settings, validate_only=False)
        member = Member(broker, client)
        await member.join()
        other = await type(client).connect(broker.port)
        try:
            yield member, other
        finally:
            other.close()


async def write(client, *values):
    for value in values:
        assert produced(await client.call(produce("a", batch(value)), 9)).error_code == 0


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
