"""DescribeDecisions: what this broker decided about a partition."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.handlers.decisions import DescribeDecisions
from ottla.metadata.decisions import Decision, DecisionKind
from ottla.wire.messages.decisions import DescribeDecisionsRequest

from .replica_world import ask, play


def decision(kind, topic):
    name = TopicPartition(topic, 0)
    return Decision(kind, name, 1, 3, "it was late", "end 7 of 9", "lag=30000", 1234)


def test_decisions_of_the_partition_are_told_in_their_order():
    """All of them, or those of the kinds that are named."""

    async def scenario(world):
        await world.host("t", 1)
        for kind, topic in (("ISR_SHRUNK", "t"), ("ELECTED", "u"), ("ELECTED", "t")):
            world.decisions.record(decision(DecisionKind[kind], topic))
        handler = DescribeDecisions(world.view, world.decisions)
        told = ask(handler, DescribeDecisionsRequest(topic="t", partition=0, kinds=None)).decisions
        assert [one.kind for one in told] == ["isr shrunk", "leader elected"]
        first = told[0]
        assert (first.broker_id, first.leader_epoch, first.at_ms) == (1, 3, 1234)
        assert (first.cause, first.evidence, first.setting) == (
            *("it was late", "end 7 of 9", "lag=30000"),
        )
        request = DescribeDecisionsRequest(topic="t", partition=0, kinds=["leader elected"])
        assert [one.kind for one in ask(handler, request).decisions] == ["leader elected"]

    play(scenario)


def test_an_unknown_partition_is_refused_with_its_name():
    """UNKNOWN_TOPIC_OR_PARTITION."""

    async def scenario(world):
        handler = DescribeDecisions(world.view, world.decisions)
        with pytest.raises(OttlaError, match="x-2") as caught:
            ask(handler, DescribeDecisionsRequest(topic="x", partition=2))
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario)
