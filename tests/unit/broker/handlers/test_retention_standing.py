"""RetentionStanding: when records are deleted, and which groups that waits for."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.groups import Groups
from ottla.broker.handlers.log_cleaning import RetentionStanding
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.retention.readers import UNKNOWN, Readers
from ottla.broker.usage.table import UsageTable
from ottla.network.dialer import LoopDialer
from ottla.wire.messages.log_cleaning import RetentionStandingRequest

from .replica_world import CLUSTER, OWN, ask, play


def handler_of(world):
    own = Credentials(OWN, CLUSTER, b"secret", bytes, lambda: 7)
    peers = Peers(own, lambda: world.view.image, "PLAINTEXT", LoopDialer(1_000), PeerLimits())
    groups = Groups(world.view, world.runtime, world.settings, world.partitions)

    async def start_offset(group, _partition):
        return 4 if group == "sharers" else UNKNOWN

    readers = Readers(world.view, world.clock, groups, peers, start_offset)
    retention = RetentionKeeper(
        world.settings,
        world.runtime,
        world.view,
        world.partitions,
        world.directories,
        world.removals,
        world.decisions,
        readers,
        UsageTable(0),
    )
    return RetentionStanding(world.view, world.runtime, world.partitions, retention)


def request(topic, *offsets):
    return RetentionStandingRequest(
        topic=topic, partition=0, offsets=list(offsets), group_id="readers"
    )


def test_it_tells_what_is_left_of_the_time_of_each_offset():
    """A record of a minute ago has an hour less that minute, one of a closed segment."""

    async def scenario(world):
        partition = await world.host("t", 1, configs={"retention.ms": "3600000"})
        world.append(partition, b"a")
        partition.log.roll(world.clock.now_ms())
        world.clock.advance(60_000)
        answer = await ask(handler_of(world), request("t", 0))
        assert (answer.broker_id, answer.log_start_offset, answer.log_end_offset) == (1, 0, 1)
        assert (answer.cleanup_policy, answer.retention_ms) == ("delete", 3_600_000)
        (deadline,) = answer.deadlines
        assert (deadline.offset, deadline.left_ms) == (0, 3_540_000)
        assert deadline.setting == "retention.ms=3600000"
        assert (answer.readers, answer.held_bytes) == ([], 0)

    play(scenario)


def test_a_group_that_is_waited_for_is_told_with_where_it_stands():
    """Without a committed offset and a coordinator -1; a share group stands at its start offset."""

    async def scenario(world):
        await world.host("t", 1, configs={"ottla.retention.hold.groups": "readers,sharers"})
        answer = await ask(handler_of(world), request("t"))
        standing = [(one.group_id, one.committed) for one in answer.readers]
        assert standing == [("readers", -1), ("sharers", 4)]

    play(scenario)


def test_only_the_leader_answers():
    """No such partition, and one that follows."""

    async def scenario(world):
        await world.host("t", 1, leader=2, replicas=(1, 2))
        for topic, code in (
            ("t", ErrorCode.NOT_LEADER_OR_FOLLOWER),
            ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            with pytest.raises(OttlaError) as caught:
                await ask(handler_of(world), request(topic))
            assert caught.value.code == code

    play(scenario)
