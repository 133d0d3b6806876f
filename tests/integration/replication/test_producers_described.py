"""DescribeProducers is answered by every replica (KIP-664)."""

from ottla.base.errors import ErrorCode
from ottla.wire.messages.transaction_listings import DescribeProducersRequest, TopicRequest
from tests.integration.broker.broker_client import batch, produce, produced

from .scenes import play


async def described(scene, broker_id, topic, index=0):
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    (answer,) = (await (await scene.client(broker_id)).call(request, 0)).topics
    return answer.partitions[0]


def test_a_follower_tells_of_the_producers_it_knows():
    """A tool that looks for hanging transactions may ask any replica; others refuse."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        records = batch(b"x", b"y", producer_id=7, producer_epoch=3, base_sequence=0)
        request = produce("a", records)
        assert produced(await (await scene.client(1)).call(request, 11)).error_code == 0
        await scene.cluster.until(lambda: set(scene.ends("a").values()) == {2})
        for broker_id in (1, 2):
            answer = await described(scene, broker_id, "a")
            assert answer.error_code == ErrorCode.NONE
            assert [
                (each.producer_id, each.producer_epoch, each.last_sequence)
                for each in answer.active_producers
            ] == [(7, 3, 1)]
        elsewhere = await described(scene, 3, "a")
        assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        absent = await described(scene, 2, "a", 5)
        assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario, 3)
