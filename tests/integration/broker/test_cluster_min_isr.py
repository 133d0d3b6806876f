"""`min.insync.replicas` is one number of the cluster, in the store (Kafka since 4.1)."""

import asyncio
import logging

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing.cluster import Cluster
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.broker.inprocess import run

NAME = "min.insync.replicas"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
CLUSTER_WIDE, STATIC, DEFAULT = 3, 4, 5


async def described(caller, kind, name):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[NAME]
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (config,) = (await caller.call(request, 4)).results[0].configs
    sources = [(synonym.value, synonym.source) for synonym in config.synonyms]
    return config.value, config.config_source, sources


async def alter(caller, broker, operation, value=None):
    config = AlterableConfig(name=NAME, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    answer = await caller.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return answer.responses[0].error_code


def test_topics_and_brokers_tell_it_as_a_setting_of_the_cluster():
    """With the broker's own settings behind it; it cannot be removed, nor set for one broker."""

    async def scenario(caller):
        broker = caller.broker
        await broker.parts.metadata.topics.auto_create("t")
        first = ("2", CLUSTER_WIDE, [("2", CLUSTER_WIDE), ("2", STATIC), ("1", DEFAULT)])
        assert await described(caller, TOPIC, "t") == first
        assert await described(caller, BROKER, str(broker.broker_id)) == first
        assert await described(caller, BROKER, "") == ("2", CLUSTER_WIDE, [("2", CLUSTER_WIDE)])
        refused = ErrorCode.INVALID_CONFIG
        assert await alter(caller, str(broker.broker_id), SET, "3") == refused
        assert await alter(caller, "", DELETE) == refused
        assert await alter(caller, "", SET, "3") == ErrorCode.NONE
        assert (await described(caller, TOPIC, "t"))[:2] == ("3", CLUSTER_WIDE)

    run(scenario, {NAME: "2"})


def test_the_first_broker_decides_and_the_others_say_that_theirs_is_not_heeded(
    caplog: pytest.LogCaptureFixture,
):
    """All go by one number, whatever their files say later."""

    async def scenario():
        async with Cluster(2, {NAME: "2"}) as cluster:
            await cluster.kill(2)
            cluster._settings[NAME] = "1"
            with caplog.at_level(logging.WARNING):
                await cluster.restart(2)
            values = [broker.settings.integer(NAME) for broker in cluster.brokers.values()]
            assert values == [2, 2]

    asyncio.run(scenario())
    assert f"{NAME}=1 in this broker's settings has no effect: the cluster has 2" in caplog.text
