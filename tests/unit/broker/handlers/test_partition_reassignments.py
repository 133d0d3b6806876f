"""AlterPartitionReassignments, ListPartitionReassignments: moves begin, show, are cancelled."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.reassignments import (
    AlterPartitionReassignments,
    ListPartitionReassignments,
)
from ottla.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)

from .controller_world import play
from .replica_world import ask


def alter(*wanted, **more):
    return AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=0, replicas=replicas)],
            )
            for topic, replicas in wanted
        ],
        **more,
    )


def outcomes(response):
    return {
        topic.name: [ErrorCode(partition.error_code) for partition in topic.partitions]
        for topic in response.responses
    }


def moves(response):
    return [
        (topic.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_a_move_begins_shows_and_is_cancelled():
    """What does not move is not listed; a second cancellation finds nothing to cancel."""

    async def scenario(world):
        await world.topic("t", 1, leader=1, replicas=[1, 2], isr=[1, 2])
        await world.topic("u", 2, leader=1, replicas=[1, 2], isr=[1, 2])
        await world.begin()
        altering = AlterPartitionReassignments(world.controller)
        listing = ListPartitionReassignments(world.controller)
        assert outcomes(await ask(altering, alter(("t", [1, 3])))) == {"t": [ErrorCode.NONE]}
        found = [("t", 0, [1, 3, 2], [3], [2])]
        assert moves(ask(listing, ListPartitionReassignmentsRequest(topics=None))) == found
        asked = [ListPartitionReassignmentsTopics(name="u", partition_indexes=[0])]
        assert moves(ask(listing, ListPartitionReassignmentsRequest(topics=asked))) == []
        cancel = alter(("t", None))
        assert outcomes(await ask(altering, cancel)) == {"t": [ErrorCode.NONE]}
        again = {"t": [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]}
        assert outcomes(await ask(altering, cancel)) == again
        assert moves(ask(listing, ListPartitionReassignmentsRequest(topics=None))) == []

    play(scenario)


def test_each_partition_that_cannot_move_says_why():
    """No such topic, no such broker, another factor where that is not wanted."""

    async def scenario(world):
        for number, topic in enumerate(("far", "wide"), 1):
            await world.topic(topic, number, leader=1, replicas=[1, 2], isr=[1, 2])
        await world.begin()
        request = alter(
            ("none", [1]),
            ("far", [1, 9]),
            ("wide", [1, 2, 3]),
            allow_replication_factor_change=False,
        )
        response = await ask(AlterPartitionReassignments(world.controller), request)
        assert outcomes(response) == {
            "none": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
            "far": [ErrorCode.INVALID_REPLICA_ASSIGNMENT],
            "wide": [ErrorCode.INVALID_REPLICATION_FACTOR],
        }

    play(scenario)


def test_without_a_controller_nothing_moves_and_nothing_is_listed():
    """NOT_CONTROLLER for the whole request."""

    async def scenario(world):
        altering = AlterPartitionReassignments(world.controller)
        for request, code in ((alter(("t", [1])), ErrorCode.NOT_CONTROLLER),):
            with pytest.raises(OttlaError) as caught:
                await ask(altering, request)
            assert caught.value.code == code
        with pytest.raises(OttlaError) as caught:
            ask(ListPartitionReassignments(world.controller), ListPartitionReassignmentsRequest())
        assert caught.value.code == ErrorCode.NOT_CONTROLLER

    play(scenario)
