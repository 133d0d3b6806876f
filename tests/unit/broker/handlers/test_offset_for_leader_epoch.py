"""OffsetForLeaderEpoch: where a term of leadership ended, for followers and for consumers."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.list_offsets import OffsetForLeaderEpoch
from ottla.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .replica_world import ask, play


def request(epoch, *, replica_id=-1, topic="t", current=-1):
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )


def outcome(response):
    (topic,) = response.topics
    (partition,) = topic.partitions
    return ErrorCode(partition.error_code), partition.leader_epoch, partition.end_offset


async def two_terms(world):
    """Terms 5 with two records and 6 with three, of which none is committed."""
    world.know(1, 2)
    partition = await world.host("t", 1, replicas=(1, 2), epoch=5)
    world.append(partition, b"a", b"b")
    world.roles.on_follower_fetch(partition, 2, 2, 1, 2, 5, 5)
    partition = await world.host("t", 1, replicas=(1, 2), epoch=6)
    world.roles.on_follower_fetch(partition, 2, 2, 2, 2, 5, 6)
    world.append(partition, b"c", b"d", b"e")
    return OffsetForLeaderEpoch(world.partitions)


def test_a_term_ends_where_the_next_began():
    """Of the present term a consumer hears what is committed, a follower the log's end."""

    async def scenario(world):
        handler = await two_terms(world)
        assert outcome(ask(handler, request(5))) == (ErrorCode.NONE, 5, 2)
        assert outcome(ask(handler, request(6))) == (ErrorCode.NONE, 6, 2)
        follower = ask(handler, request(6, replica_id=2), broker=2)
        assert outcome(follower) == (ErrorCode.NONE, 6, 5)

    play(scenario)


def test_another_term_or_topic_is_refused():
    """The asker's own term is fenced; only a proven broker may call itself a replica."""

    async def scenario(world):
        handler = await two_terms(world)
        fenced = outcome(ask(handler, request(5, current=5)))
        assert fenced == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
        unknown = outcome(ask(handler, request(5, topic="u")))
        assert unknown == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        with pytest.raises(OttlaError, match="not proven") as caught:
            ask(handler, request(6, replica_id=2))
        assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    play(scenario)
