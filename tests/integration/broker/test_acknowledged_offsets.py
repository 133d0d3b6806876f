"""What was acknowledged with acks=1 is there for the client that was told so, before the flush too.

One replica with group commit: the records are committed by a flush that begins milliseconds later.
"""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.integration.broker.broker_client import batch, connected, produce, produced

ROUNDS = 10


async def acknowledge(client, number):
    """Produce a record with acks=1; the offset behind it."""
    answer = produced(await client.call(produce("a", batch(b"x", timestamp=number), acks=1), 9))
    assert answer.error_code == ErrorCode.NONE
    return answer.base_offset + 1


def ends(timestamp, isolation_level=0):
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="a", partitions=[wanted])
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic])


def on_a_disk(scenario, tmp_path):
    """Run it with a broker whose flushes take a thread and a while."""

    async def play():
        settings = {
            "log.dirs": str(tmp_path / "logs"),
            "num.partitions": "1",
            "log.message.timestamp.before.max.ms": str(2**63 - 1),
        }
        async with connected(settings, filesystem=OsFileSystem()) as (_, client):
            await scenario(client)

    asyncio.run(play())


def test_latest_offset_is_above_what_was_acknowledged(tmp_path):
    """Also that of committed records, and lookups by time find them."""

    async def scenario(client):
        for number in range(1, ROUNDS + 1):
            end = await acknowledge(client, number)
            for timestamp, isolation, offset in ((-1, 0, end), (-1, 1, end), (number, 0, end - 1)):
                answer = await client.call(ends(timestamp, isolation), 8)
                assert answer.topics[0].partitions[0].offset == offset

    on_a_disk(scenario, tmp_path)


def test_records_can_be_deleted_up_to_what_was_acknowledged(tmp_path):
    """Beyond that is out of range as ever."""

    async def delete(client, offset):
        one = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name="a", partitions=[one])]
        answer = await client.call(DeleteRecordsRequest(topics=topics, timeout_ms=60_000), 2)
        found = answer.topics[0].partitions[0]
        return ErrorCode(found.error_code), found.low_watermark

    async def scenario(client):
        for number in range(ROUNDS):
            end = await acknowledge(client, number)
            if number % 2:
                assert await delete(client, end + 1) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
            asked = -1 if number % 3 else end
            assert await delete(client, asked) == (ErrorCode.NONE, end)

    on_a_disk(scenario, tmp_path)
