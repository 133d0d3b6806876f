"""A member of a share group, message by message."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

from ottla.base.errors import ErrorCode
from ottla.broker.configs.configs import ResourceType
from ottla.record.reader import batches, records
from ottla.wire.messages.consumer_groups import ShareGroupHeartbeatRequest
from ottla.wire.messages.share_records import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from tests.integration.broker.broker_client import batch, connected, produce, produced

GROUP = "workers"
FOR_EVER_MS = 3_600_000
ACCEPT, RELEASE, REJECT = 1, 2, 3
LOADING = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
ONE_OF_EACH = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


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
async def joined(**configs):
    """A broker, a member of a group that begins at the log's start, and another connection."""
    async with connected(ONE_OF_EACH) as (broker, client):
        await broker.parts.metadata.topics.auto_create("__consumer_offsets")
        settings = {"share.auto.offset.reset": "earliest"}
        settings |= {name.replace("_", "."): value for name, value in configs.items()}
        await broker.parts.configs.configs.replace(
            ResourceType.GROUP, GROUP, settings, validate_only=False
        )
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
