"""A share group whose state was lost on the disk (KIP-932)."""

import asyncio
import logging

from ottla.base.errors import ErrorCode
from ottla.coordination.memory.memory import MemoryStore
from ottla.record.header import read_header
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.consumer_groups import ShareGroupHeartbeatRequest
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tests.integration.broker.broker_client import Client, connected, running, until
from tests.integration.broker.share_member import FOR_EVER_MS, ONE_OF_EACH, Member, write

STATE_LOG = f"/logs/__share_group_state-0/{0:020d}.log"


def flip_a_bit(filesystem, numbers):
    """Damage the batches of these numbers of the share state's log."""
    content = filesystem._file(STATE_LOG).content  # A disk does not ask.
    position = number = 0
    while position < len(content):
        if number in numbers:
            content[position + 70] ^= 1
        position += read_header(memoryview(bytes(content[position:]))).size
        number += 1


async def leave(client, member):
    beat = ShareGroupHeartbeatRequest(
        group_id="workers", member_id=member.id, member_epoch=-1, subscribed_topic_names=["a"]
    )
    assert (await client.call(beat, 1)).error_code == ErrorCode.NONE


def test_a_group_whose_state_was_lost_goes_on_where_an_administrator_says(caplog):
    """It is refused before, and the log names the remedy."""

    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with connected(ONE_OF_EACH, **parts) as (broker, client):
            await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            member = Member(broker, client)
            await member.join()
            assert await member.fetch(min_bytes=1, max_wait_ms=1) == []
            await write(client, b"one", b"two")
            await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS)
        flip_a_bit(parts["filesystem"], range(99))
        async with running(ONE_OF_EACH, **parts) as broker:
            await until(lambda: broker.partitions.find("a", 0) is not None)
            client = await Client.connect(broker.port)
            again = Member(broker, client)
            await again.join()
            error = ErrorCode.NONE
            while error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                response = await client.call(again.request(min_bytes=1, max_wait_ms=100), 2)
                error = max(p.error_code for t in response.responses for p in t.partitions)
            await leave(client, member)
            await leave(client, again)
            part = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
            topic = AlterShareGroupOffsetsRequestTopic(topic_name="a", partitions=[part])
            altered = await client.call(
                AlterShareGroupOffsetsRequest(group_id="workers", topics=[topic]), 0
            )
            assert altered.responses[0].partitions[0].error_code == ErrorCode.NONE
            last = Member(broker, client)
            await last.join()
            found = []
            while not found:
                found = await last.fetch(min_bytes=1, max_wait_ms=200)
            client.close()
            return found

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(asyncio.wait_for(scenario(), 60)) == [b"two"]
    (line, *_) = [m for m in caplog.messages if m.startswith("cannot serve a-0 of group workers")]
    assert "ottla group reset" in line


def test_a_fetch_of_no_member_begins_no_state():
    """Its group may have been deleted: nothing of it comes back."""

    async def scenario():
        async with connected(ONE_OF_EACH) as (broker, client):
            await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            member = Member(broker, client)
            await member.join()
            stranger = Member(broker, client)
            asked = stranger.request(min_bytes=1, max_wait_ms=1000)
            asked.group_id = "others"
            response = await client.call(asked, 2)
            (part,) = response.responses[0].partitions
            assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            (shard,) = broker.parts.share.states.shards()
            assert {key.group_id for key in shard.coordinator.states} == {"workers"}

    asyncio.run(asyncio.wait_for(scenario(), 60))
