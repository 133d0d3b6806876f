"""UpdateFeatures: levels that the whole cluster agrees on."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.metadata.features import INITIAL, FeatureUpdate
from ottla.testing.cluster import Cluster
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from ottla.wire.messages.share_records import ShareFetchRequest
from tests.integration.broker.inprocess import run

UP, DOWN, UNSAFE = 1, 2, 3


async def update(caller, *updates, version=2, validate_only=False):
    request = UpdateFeaturesRequest(validate_only=validate_only)
    for name, level, *kind in updates:
        key = FeatureUpdateKey(feature=name, max_version_level=level)
        if kind:
            key.upgrade_type = kind[0]
        request.feature_updates.append(key)
    return await caller.call(request, version)


async def told(caller):
    """The finalized features."""
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = await caller.call(request, 4)
    return {f.name: f.max_version_level for f in answer.finalized_features}


def test_features_are_supported_and_finalized():
    """As Kafka 4.3 has them, without those that mean nothing here (KRaft's, streams groups')."""

    async def scenario(caller):
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        answer = await caller.call(request, 4)
        assert [(f.name, f.min_version, f.max_version) for f in answer.supported_features] == [
            ("group.version", 0, 1),
            ("transaction.version", 0, 2),
            ("eligible.leader.replicas.version", 1, 1),
            ("share.version", 0, 1),
        ]
        assert await told(caller) == INITIAL
        older = await caller.call(request, 3)
        assert [f.name for f in older.supported_features] == ["eligible.leader.replicas.version"]

    run(scenario)


def test_a_feature_of_level_0_is_off():
    """It is not finalized, and its protocol is refused until it is raised again."""

    async def scenario(caller):
        off = ErrorCode.UNSUPPORTED_VERSION
        assert (await update(caller, ("group.version", 0, DOWN))).error_code == 0
        assert (await update(caller, ("share.version", 0, UNSAFE))).error_code == 0
        assert await told(caller) == {
            "transaction.version": 2,
            "eligible.leader.replicas.version": 1,
        }
        for request in (
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
            ShareGroupHeartbeatRequest(group_id="g", member_id="m"),
            ShareFetchRequest(group_id="g", member_id="m"),
        ):
            assert (await caller.call(request, 1)).error_code == off
        for request in (
            ConsumerGroupDescribeRequest(group_ids=["g"]),
            ShareGroupDescribeRequest(group_ids=["g"]),
        ):
            assert (await caller.call(request, 1)).groups[0].error_code == off
        assert (await update(caller, ("group.version", 1), ("share.version", 1))).error_code == 0
        assert await told(caller) == INITIAL
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        assert (await caller.call(request, 1)).groups[0].error_code != off

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_an_update_is_all_or_nothing(version):
    """Up to version 1 the answer of success names each feature."""

    async def scenario(caller):
        good = [("transaction.version", 2), ("group.version", 1)]
        answer = await update(caller, *good, version=version)
        assert answer.error_code == ErrorCode.NONE
        assert len(answer.results) == (2 if version < 2 else 0)
        answer = await update(caller, *good, ("metadata.version", 27), version=version)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.results == []
        assert await told(caller) == INITIAL

    run(scenario)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (("group.version", 0, UP), "without setting the upgrade type"),
        (("group.version", 2, UP), "only supports versions 0-1"),
        (("group.version", -1, DOWN), "cannot be less than 0"),
        (("group.version", 0, 9), "does not support the given upgrade type"),
        (("nosuch", 1, UP), "does not support this feature"),
        (("eligible.leader.replicas.version", 0, UNSAFE), "only supports versions 1-1"),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_words(wanted, words):
    """INVALID_UPDATE_VERSION for all of it; a trial run is refused alike."""

    async def scenario(caller):
        for validate_only in (True, False):
            answer = await update(caller, wanted, validate_only=validate_only)
            assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
            assert words in answer.error_message
        assert await told(caller) == INITIAL

    run(scenario)


def test_a_downgrade_does_not_raise_and_a_trial_changes_nothing():
    """As in Kafka."""

    async def scenario(caller):
        answer = await update(caller, ("group.version", 0, DOWN), validate_only=True)
        assert answer.error_code == ErrorCode.NONE
        assert await told(caller) == INITIAL
        await update(caller, ("group.version", 0, DOWN))
        answer = await update(caller, ("group.version", 1, DOWN))
        assert "Can't downgrade to a newer version." in answer.error_message

    run(scenario)


def test_all_brokers_have_the_same_features():
    """Those that run hear of a change, and one that starts later reads it."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.kill(3)
            down = [FeatureUpdate("group.version", 0, DOWN)]
            await cluster.brokers[2].parts.configs.features.update(down, validate_only=False)
            await cluster.restart(3)
            await cluster.until(
                lambda: all(
                    broker.image.features == {**INITIAL, "group.version": 0}
                    and broker.image.features_epoch == 2
                    for broker in cluster.brokers.values()
                )
            )

    asyncio.run(scenario())
