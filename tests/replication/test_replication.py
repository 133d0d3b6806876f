"""Replication from end to end: three brokers over real connections, disks in memory."""

from ottla.base.errors import ErrorCode

from ..broker.broker_client import batch, produce, produced
from .cluster import run


async def write(cluster, broker_id, topic, *values, acks=-1, version=11):
    client = await cluster.client(broker_id)
    request = produce(topic, batch(*values, timestamp=1_000), acks=acks)
    return produced(await client.call(request, version))


def test_what_is_acknowledged_is_on_every_replica():
    """Byte for byte: a follower's log is the leader's."""

    async def scenario(cluster):
        await cluster.create("a")
        for number in range(20):
            answer = await write(cluster, 1, "a", b"%d" % number)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        assert cluster.ends("a") == {1: 20, 2: 20, 3: 20}
        assert len(cluster.log(1, "a")) > 20 * 61
        assert cluster.log(1, "a") == cluster.log(2, "a") == cluster.log(3, "a")

    run(scenario)
