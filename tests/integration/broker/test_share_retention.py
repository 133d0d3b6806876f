"""Retention that waits for a share group waits for what its members have not finished."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.broker.configs.configs import ResourceType
from tests.integration.broker.broker_client import until
from tests.integration.broker.share_member import ACCEPT, FOR_EVER_MS, joined, write

# Each batch is a segment, and old as soon as there is a later one.
HELD = {
    "internal.segment.bytes": "100",
    "retention.bytes": "0",
    "ottla.retention.hold.groups": "workers",
}


def test_records_that_a_share_group_has_finished_are_held_no_longer():
    """Its start offset counts as committed: nothing below it is delivered again."""

    async def scenario():
        async with joined() as (member, other):
            parts = member.broker.parts
            await parts.configs.configs.replace(ResourceType.TOPIC, "a", HELD, validate_only=False)
            partition = parts.replication.partitions.get("a", 0)
            await until(lambda: partition.config.hold_groups)
            assert await member.fetch(min_bytes=1, max_wait_ms=1) == []
            await write(other, *[b"%d" % number for number in range(6)])
            got = []
            while len(got) < 6:
                got += await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS)
            await parts.retention.apply_retention()
            assert partition.log_start_offset == 0
            said = member.request(min_bytes=1, max_wait_ms=1, said=[(0, 3, ACCEPT)])
            answer = await member.client.call(said, 2)
            assert answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.NONE
            await parts.retention.apply_retention()
            assert partition.log_start_offset == 4

    asyncio.run(scenario())
