"""A broker of ours or one of Kafka's, with the topic that groups read."""

from contextlib import AbstractContextManager

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig import kafka as kafka_rig
from rig.nodes import Node
from rig.wire_client import WireClient

import ottla.testing
from tests.integration.groups.kinds import TOPIC, find

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    # Kafka gathers changes for a second by default, we assign at once.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def start(which: str, **more: str) -> AbstractContextManager[Node | ottla.testing.Broker]:
    settings = {**SETTINGS, **more}
    if which == "ottla":
        return ottla.testing.Broker(settings=settings)
    if reason := kafka_rig.available():
        pytest.skip(reason)
    return kafka_rig.kafka(quick=True, settings=settings)


def connected(port: int) -> WireClient:
    """A connection to a broker that has the topic, and coordinators."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(120)
    wire = WireClient(port)
    find(wire, "any")
    find(wire, "any", key_type=1)
    return wire
