"""Batches of an idempotent producer that come twice, or before those they follow."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.api import ApiKey
from tests.integration.broker.broker_client import batch, produce, produced

from .scenes import play
from .test_failover import writable

AGAIN = ErrorCode.NOT_LEADER_OR_FOLLOWER
NOT_ENOUGH = ErrorCode.NOT_ENOUGH_REPLICAS
GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
OLD = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
NOT_YET = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


async def send(scene, broker_id, *sequences, timeout_ms=100_000):
    """Send one record for each sequence, all at once; error code and base offset of each."""
    client = await scene.client(broker_id)
    for sequence in sequences:
        sent = batch(b"x", timestamp=1_000, producer_id=5, producer_epoch=0, base_sequence=sequence)
        client.send(produce("a", sent, acks=-1, timeout_ms=timeout_ms), 9)
    answers = [produced(await client.receive(ApiKey.PRODUCE, 9)) for _ in sequences]
    return [(answer.error_code, answer.base_offset) for answer in answers]


async def move(scene, leader):
    """Kill the leader; the broker that leads and takes records next."""
    await scene.cluster.kill(leader)
    return await writable(scene, "a")


def test_new_leader_asks_for_the_batches_before_those_it_gets():
    """A client's batches to the old leader come back to be sent again while others go to the new.

    Told that there is a gap, librdkafka begins a new epoch in all partitions, and what it does not
    know to be appended in another one is appended twice.
    """

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0, 1) == [(0, 0), (0, 1)]
        leader = await move(scene, 1)
        assert await send(scene, leader, 3, 4) == [(AGAIN, -1), (AGAIN, -1)]
        assert await send(scene, leader, 2, 3, 4) == [(0, 2), (0, 3), (0, 4)]
        assert await send(scene, leader, 6) == [(GAP, -1)]

    play(scenario, 3)


def test_producer_that_lost_records_is_told_by_its_second_attempt():
    """Nothing is before what it sends: the gap is one, and it must know."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0) == [(0, 0)]
        leader = await move(scene, 1)
        assert await send(scene, leader, 3) == [(AGAIN, -1)]
        assert await send(scene, leader, 3) == [(GAP, -1)]

    play(scenario, 3)


def test_first_batch_of_a_producer_is_not_overtaken():
    """Who is not known may begin anywhere: librdkafka would take what is missing for appended."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 1) == [(AGAIN, -1)]
        assert await send(scene, 1, 0, 1) == [(0, 0), (0, 1)]

    play(scenario, 3)


@pytest.mark.parametrize("is_known", [False, True])
def test_batches_behind_one_that_too_few_replicas_refused_are_refused_alike(is_known):
    """The ISR may grow between the two; a lower sequence number comes again, so there is no gap."""

    async def scenario(scene):
        await scene.create("a", 1, 2, min_insync_replicas="2")
        first = 0
        if is_known:
            assert await send(scene, 1, 0) == [(0, 0)]
            first = 1
        await scene.cluster.kill(2)
        partition = scene.partition(1, "a")
        await scene.cluster.until(lambda: partition.under_min_isr)
        assert await send(scene, 1, first) == [(NOT_ENOUGH, -1)]
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: not partition.under_min_isr)
        refused = [(NOT_ENOUGH, -1)] * 2
        assert await send(scene, 1, first + 1, first + 2) == refused
        later = [(0, first + number) for number in range(3)]
        assert await send(scene, 1, first, first + 1, first + 2) == later

    play(scenario, 2)


def test_batch_whose_time_is_over_is_not_appended_again():
    """REQUEST_TIMED_OUT leaves it in the log: the retry waits for the same offset."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0) == [(0, 0)]
        for broker_id in (2, 3):
            scene.cluster.brokers[broker_id].parts.replication.close()
        for _ in range(2):
            late = ErrorCode.REQUEST_TIMED_OUT
            assert await send(scene, 1, 1, 2, timeout_ms=1) == [(late, 1), (late, 2)]
        assert scene.ends("a")[1] == 3

    play(scenario, 3)


def test_batch_that_was_committed_and_not_answered_is_known_to_the_next_leader():
    """Its leader dies before the client hears of it: the retry gets the same offset."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0, 1, 2) == [(0, 0), (0, 1), (0, 2)]
        leader = await move(scene, 1)
        assert await send(scene, leader, 1, 2, 3) == [(0, 1), (0, 2), (0, 3)]

    play(scenario, 3)


def test_batch_that_comes_again_after_many_later_ones_is_known_to_the_next_leader():
    """librdkafka's threads may put a batch back so late, and end where it is called a gap."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0, 1) == [(0, 0), (0, 1)]
        leader = await move(scene, 1)
        assert await send(scene, leader, *range(2, 9)) == [(0, number) for number in range(2, 9)]
        assert await send(scene, leader, 1, 9, 0) == [(OLD, -1), (0, 9), (OLD, -1)]

    play(scenario, 3)


def test_old_batch_is_not_called_a_duplicate_before_it_is_committed():
    """The producer takes that for an acknowledgement, and the next leader may lack the batch."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert await send(scene, 1, 0) == [(0, 0)]
        for broker_id in (2, 3):
            scene.cluster.brokers[broker_id].parts.replication.close()
        late = await send(scene, 1, *range(1, 9), timeout_ms=1)
        assert {code for code, _ in late} == {ErrorCode.REQUEST_TIMED_OUT}
        assert await send(scene, 1, 1, 2) == [(NOT_YET, -1)] * 2

    play(scenario, 3)
