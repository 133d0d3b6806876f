"""ElectLeaders over a connection, as old clients send it."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.reassignments import ElectLeadersRequest, TopicPartitions
from tests.integration.broker.inprocess import run


@pytest.mark.parametrize("version", range(3))
def test_a_broker_that_is_not_controller_says_so_in_every_version(version):
    """Version 0 has no error of the whole: each partition has it."""

    async def scenario(caller):
        await caller.broker.parts.controller.stop()
        wanted = [TopicPartitions(topic="t", partitions=[0])]
        request = ElectLeadersRequest(topic_partitions=wanted)
        answer = await asyncio.wait_for(caller.call(request, version), 60)
        (topic,) = answer.replica_election_results
        assert [(p.partition_id, p.error_code) for p in topic.partition_result] == [
            (0, ErrorCode.NOT_CONTROLLER)
        ]
        assert answer.error_code == (ErrorCode.NOT_CONTROLLER if version >= 1 else 0)

    run(scenario)
