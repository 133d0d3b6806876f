"""DescribeDecisions, and who is told of it."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.metadata.decisions import Decision, DecisionKind
from ottla.metadata.topic_plan import RequestedTopic
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.decisions import DescribeDecisionsRequest
from tests.integration.broker.inprocess import run

KEY = 1001


def decision(kind, topic="t", epoch=3):
    partition = TopicPartition(topic, 0)
    return Decision(kind, partition, 1, epoch, "it was late", "end 7 of 9", "lag=30000", 1234)


def test_a_broker_tells_what_it_decided():
    """Of that partition, oldest first; kinds that are named, or all."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create(
            [RequestedTopic("t", 1, 1), RequestedTopic("u", 1, 1)]
        )
        for kind, topic in (("ISR_SHRUNK", "t"), ("ELECTED", "t"), ("ELECTED", "u")):
            caller.broker.parts.controller.decisions.record(decision(DecisionKind[kind], topic))
        answer = await caller.call(DescribeDecisionsRequest(topic="t", partition=0, kinds=None), 0)
        assert [told.kind for told in answer.decisions] == [
            "partition created",
            "isr shrunk",
            "leader elected",
        ]
        first = answer.decisions[1]
        assert (first.broker_id, first.leader_epoch, first.at_ms) == (1, 3, 1234)
        assert (first.cause, first.evidence, first.setting) == (
            *("it was late", "end 7 of 9", "lag=30000"),
        )
        request = DescribeDecisionsRequest(topic="t", partition=0, kinds=["leader elected"])
        (only,) = (await caller.call(request, 0)).decisions
        assert only.kind == "leader elected"

    run(scenario)


def test_a_partition_that_is_not_there_is_refused():
    """With its name."""

    async def scenario(caller):
        answer = await caller.call(DescribeDecisionsRequest(topic="x", partition=2), 0)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "x-2" in answer.error_message

    run(scenario)


@pytest.mark.parametrize(
    ("software", "version", "is_told"),
    [
        ("ottla", 3, True),
        ("ottla", 4, True),
        ("apache-kafka-java", 4, False),
        ("librdkafka", 3, False),
        ("", 2, False),
        ("", 0, False),
    ],
)
def test_only_ottlas_own_clients_hear_of_it(software, version, is_told):
    """Others see what Kafka has, and nothing else."""

    async def scenario(caller):
        request = ApiVersionsRequest(client_software_name=software, client_software_version="1")
        answer = await caller.call(request, version)
        keys = [entry.api_key for entry in answer.api_keys]
        assert (KEY in keys) == is_told
        # DescribeDecisions, CompactLog, DescribeRebalances, DescribeCleaner, OffsetLedger,
        # RetentionStanding, two about clients' use of topics, DescribeUndo and RestoreTopic.
        own = [key for key in keys if key >= 1000]
        served = [1001, 1003, 1004, 1008, 1012, 1013, 1031, 1032, 1034, 1035]
        assert own == served * is_told

    run(scenario)
