"""DeleteRecords on several replicas (KIP-107)."""

from ottla.base.errors import ErrorCode
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

from .scenes import play


async def delete(scene, broker_id, offset, timeout_ms=100_000):
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="a", partitions=[partition])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
    answer = await (await scene.client(broker_id)).call(request, 2)
    return answer.topics[0].partitions[0]


def test_answer_comes_when_every_replica_has_deleted():
    """At once, not with the followers' next idle fetch; the answer is the least start of all."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        for number in range(5):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        answer = await delete(scene, 1, 3)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 3)
        starts = [scene.partition(broker_id, "a").log_start_offset for broker_id in (1, 2, 3)]
        assert starts == [3, 3, 3]
        # What is deleted already is answered without waiting.
        answer = await delete(scene, 1, 2, timeout_ms=0)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 3)

    # Idle followers would ask after ten minutes only.
    play(scenario, 3, {"replica.fetch.wait.max.ms": "600000", "replica.lag.time.max.ms": "900000"})


def test_follower_that_does_not_delete_is_waited_for_until_the_timeout():
    """REQUEST_TIMED_OUT with the start that is still there; one that is dead is not waited for."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        for number in range(5):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        assert (await delete(scene, 1, 2)).low_watermark == 2
        scene.cluster.brokers[2].parts.replication.close()
        answer = await delete(scene, 1, 3, timeout_ms=50)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 2)
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: 2 not in scene.cluster.brokers[1].image.brokers)
        answer = await delete(scene, 1, 4)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 4)

    play(scenario, 2)
