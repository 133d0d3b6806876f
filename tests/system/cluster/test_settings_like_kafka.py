"""Settings changed through several brokers, of Apache Kafka and of ours."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig import kafka as kafka_rig
from rig.clusters import Cluster
from rig.kafka_cluster import kafka_cluster
from rig.ottla_cluster import ottla_cluster
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, SET = 2, 0
NAMES = ("max.message.bytes", "retention.ms", "segment.ms")


def alter(client: WireClient, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[config])
    (answer,) = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE


def described(client: WireClient) -> dict[str, str]:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=list(NAMES)
    )
    (result,) = client.call(DescribeConfigsRequest(resources=[resource]), 4).results
    return {config.name: config.value for config in result.configs}


@pytest.mark.parametrize(
    "started", [ottla_cluster, partial(kafka_cluster, quick=True)], ids=["ottla", "kafka"]
)
def test_changes_through_one_broker_after_the_other_are_all_kept(
    started: Callable[[], AbstractContextManager[Cluster]],
) -> None:
    """Though a broker is asked that has not heard of the change before."""
    if started is not ottla_cluster and (reason := kafka_rig.available()):
        pytest.skip(reason)
    with started() as cluster, contextlib.ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 1, 3)])["t"].result(120)
        cluster.wait_until_in_sync("t")
        clients = [
            stack.enter_context(WireClient(member.port)) for member in cluster.members.values()
        ]
        for value in map(str, range(20_000, 20_020)):
            for client, name in zip(clients, NAMES, strict=True):
                alter(client, name, value)
            wanted = dict.fromkeys(NAMES, value)
            cluster.wait_until(
                lambda wanted=wanted: all(described(client) == wanted for client in clients),
                f"{wanted} on all brokers",
                timeout_s=60,
            )
