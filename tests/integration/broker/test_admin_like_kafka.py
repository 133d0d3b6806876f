"""The same administration asked of Apache Kafka and of us: the same codes and values.

Words of refusals are our own where they say what to do; codes, names and sources are compared.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rig import kafka as kafka_rig
from rig.wire_client import WireClient

import ottla.testing
from ottla.base.errors import ErrorCode
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.metadata.features import SUPPORTED
from ottla.wire.messages import client_quotas
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND = 0, 1, 2
UP, DOWN, UNSAFE = 1, 2, 3
OURS = {"node.id": "1", "log.segment.delete.delay.ms": "500"}
# Settings of Kafka 4.4, which we have already.
_LATER = "errors.deadletterqueue."
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[WireClient, WireClient]]:
    """Connections to Kafka and to ours; both brokers have the id 1 and a topic `t`."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with (
        kafka_rig.kafka(quick=True) as theirs,
        ottla.testing.Broker(settings=OURS) as ours,
        WireClient(theirs.port) as kafka,
        WireClient(ours.port) as here,
    ):
        for client in (kafka, here):
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            client.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
        yield kafka, here


def described(client: WireClient, kind: int, name: str) -> dict[str, tuple[Any, ...]]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = client.call(request, 4).results
    assert result.error_code == 0
    return {
        one.name: (
            one.value,
            one.config_source,
            one.read_only,
            one.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
        )
        for one in result.configs
    }


# Kafka's authorizer reads them from the broker's file by itself.
_OF_THE_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}
# Kafka 3 had them; and ours, and what is a property of Java in Kafka.
_ELSEWHERE = {
    *(name for name in BROKER_SETTINGS if name.startswith("zookeeper.")),
    "coordination.sasl.mechanism",
    "delegation.token.master.key",
    "sasl.oauthbearer.allowed.urls",
}


def ours_alone(table: dict[str, Any]) -> set[str]:
    """Settings that Kafka 4.3 does not have."""
    return {
        name
        for name, setting in table.items()
        if name.startswith(_LATER) or "Kafka has no such" in setting.differs
    }


@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        (
            BROKER,
            "1",
            ours_alone(BROKER_SETTINGS)
            | _OF_THE_AUTHORIZER
            | _ELSEWHERE
            | {"leader.imbalance.per.broker.percentage"},
        ),
        (BROKER, "", set()),
        (TOPIC, "t", ours_alone(TOPIC_SETTINGS)),
        (GROUP, "g", ours_alone(GROUP_SETTINGS)),
        (CLIENT_METRICS, "m", set()),
    ],
)
def test_the_same_settings_are_described(
    both: tuple[WireClient, WireClient], kind: int, name: str, more: set[str]
) -> None:
    """By name; and of all but brokers, whose files differ, with values, sources and synonyms."""
    theirs, ours = (described(client, kind, name) for client in both)
    assert set(ours) - more == set(theirs)
    if kind != BROKER:
        # One broker has it in its file.
        both_told = [one for one in theirs if one != "file.delete.delay.ms"]
        assert {one: ours[one] for one in both_told} == {one: theirs[one] for one in both_told}


def altered(client: WireClient, kind: int, name: str, *changes: tuple[str, int, Any]) -> int:
    configs = [AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    code: int = client.call(request, 1).responses[0].error_code
    return code


CHANGES = [
    (CLIENT_METRICS, "m", ("interval.ms", SET, "1000"), ErrorCode.NONE),
    (CLIENT_METRICS, "m", ("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST),
    (CLIENT_METRICS, "m", ("interval.ms", SET, "3600001"), ErrorCode.INVALID_REQUEST),
    (CLIENT_METRICS, "m", ("interval.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("interval.ms", SET, None), ErrorCode.INVALID_REQUEST),
    (CLIENT_METRICS, "m", ("metrics", SET, "a.b,c"), ErrorCode.NONE),
    (CLIENT_METRICS, "m", ("metrics", SET, "a,,b"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("metrics", APPEND, "d"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("match", SET, "client_id=.*,client_source_port=9"), ErrorCode.NONE),
    (CLIENT_METRICS, "m", ("match", SET, "client_id=["), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("match", SET, "foo=1"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("match", SET, "client_id"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("match", SET, "client_id=a=b"), ErrorCode.INVALID_CONFIG),
    (CLIENT_METRICS, "m", ("nosuch", SET, "1"), ErrorCode.INVALID_REQUEST),
    (CLIENT_METRICS, "", ("metrics", SET, "*"), ErrorCode.INVALID_REQUEST),
    (CLIENT_METRICS, "a b/c", ("metrics", SET, "*"), ErrorCode.NONE),
    (CLIENT_METRICS, "never", ("metrics", DELETE, None), ErrorCode.NONE),
    (BROKER, "1", ("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
    (BROKER, "", ("min.insync.replicas", DELETE, None), ErrorCode.INVALID_CONFIG),
    *(
        (BROKER, name, (setting, SET, value), ErrorCode.INVALID_REQUEST)
        for name in ("", "1")
        for setting, value in (
            ("max.connections", "0"),
            ("max.connections", "-1"),
            ("max.connection.creation.rate", "0"),
            ("max.connections.per.ip", "0"),
            ("max.connections.per.ip.overrides", "x:y"),
            ("log.retention.ms", "x"),
            ("log.retention.ms", "0"),
            ("log.segment.bytes", "1"),
            ("log.cleaner.dedupe.buffer.size", "10"),
            ("compression.type", "zip"),
            ("num.partitions", "3"),
        )
    ),
    (BROKER, "", ("log.retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("kind", "name", "change", "code"), CHANGES)
def test_the_same_changes_of_settings_are_taken(
    both: tuple[WireClient, WireClient],
    kind: int,
    name: str,
    change: tuple[str, int, Any],
    code: ErrorCode,
) -> None:
    """Kafka has another code for each kind of mistake."""
    assert [altered(client, kind, name, change) for client in both] == [code, code]


def test_subscriptions_are_listed_by_what_they_set(both: tuple[WireClient, WireClient]) -> None:
    """Alone in version 0, by type in version 1; one that sets nothing is not there."""

    def listed(client: WireClient) -> list[tuple[int, str]]:
        assert altered(client, CLIENT_METRICS, "x/y", ("metrics", SET, "*")) == 0
        assert altered(client, CLIENT_METRICS, "gone", ("metrics", SET, "*")) == 0
        assert altered(client, CLIENT_METRICS, "gone", ("metrics", DELETE, None)) == 0
        old = client.call(ListConfigResourcesRequest(), 0).config_resources
        new = client.call(ListConfigResourcesRequest(resource_types=[16]), 1).config_resources
        names = sorted((each.resource_type, each.resource_name) for each in new)
        assert sorted(each.resource_name for each in old) == [name for _, name in names]
        return names

    theirs, ours = map(listed, both)
    assert ours == theirs
    assert (CLIENT_METRICS, "x/y") in ours


@pytest.mark.parametrize(
    ("entity", "key", "value", "code"),
    [
        ([("ip", "192.0.2.7")], "connection_creation_rate", 5.0, ErrorCode.NONE),
        ([("ip", "::1")], "connection_creation_rate", 5.0, ErrorCode.NONE),
        ([("ip", "0::1")], "connection_creation_rate", 5.0, ErrorCode.NONE),
        ([("ip", "[::1]")], "connection_creation_rate", 5.0, ErrorCode.NONE),
        ([("ip", None)], "connection_creation_rate", 5.0, ErrorCode.NONE),
        ([("ip", "192.0.2.7 ")], "connection_creation_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("ip", "not an ip")], "connection_creation_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("ip", "a b")], "connection_creation_rate", None, ErrorCode.INVALID_REQUEST),
        ([("ip", "")], "connection_creation_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("ip", "192.0.2.7/8")], "connection_creation_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("ip", "192.0.2.7")], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("ip", "::1"), ("user", "a")], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("foo", "x")], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("user", "a"), ("foo", "x")], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("user", "")], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([], "producer_byte_rate", 5.0, ErrorCode.INVALID_REQUEST),
        ([("user", "a")], "nosuch", 5.0, ErrorCode.INVALID_REQUEST),
        ([("user", "a")], "nosuch", None, ErrorCode.NONE),
        ([("user", "a")], "producer_byte_rate", 0.0, ErrorCode.INVALID_REQUEST),
        ([("user", "a")], "producer_byte_rate", 1.5, ErrorCode.INVALID_REQUEST),
        ([("user", "a")], "producer_byte_rate", 1e300, ErrorCode.INVALID_REQUEST),
        ([("user", "a")], "connection_creation_rate", 5.0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_same_quotas_are_taken(
    both: tuple[WireClient, WireClient],
    entity: list[tuple[str, str | None]],
    key: str,
    value: float | None,
    code: ErrorCode,
) -> None:
    """Entities, keys and limits."""
    parts = [client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    op = client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
    entry = client_quotas.EntryData(entity=parts, ops=[op])
    request = client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)
    assert [client.call(request, 1).entries[0].error_code for client in both] == [code, code]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("foo", 0, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([("ip", 2, None), ("foo", 0, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([("", 0, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, "a"), ("user", 0, "b")], ErrorCode.INVALID_REQUEST),
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", 0, "not an ip")], ErrorCode.NONE),
    ],
)
def test_the_same_quotas_can_be_asked_for(
    both: tuple[WireClient, WireClient],
    components: list[tuple[str, int, str | None]],
    code: ErrorCode,
) -> None:
    """A kind of entity that does not exist is not a mistake of the request, but of its version."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ]
    )
    assert [client.call(request, 1).error_code for client in both] == [code, code]


def test_features_go_up_and_down_alike(both: tuple[WireClient, WireClient]) -> None:
    """The same updates are taken, and the same levels told, of the features that both have."""

    def told(client: WireClient) -> dict[str, int]:
        request = ApiVersionsRequest(client_software_name="rig", client_software_version="1")
        found = client.call(request, 4).finalized_features
        return {f.name: f.max_version_level for f in found if f.name in SUPPORTED}

    def story(client: WireClient, wait: Callable[[], object]) -> list[Any]:
        said: list[Any] = []
        for updates in (
            [("group.version", 1, UP)],
            [("group.version", 2, UP)],
            [("group.version", 0, UP)],
            [("group.version", -1, DOWN)],
            [("group.version", 0, 9)],
            [("nosuch", 1, UP)],
            [("share.version", 0, UNSAFE), ("nosuch", 1, UP)],
            [("group.version", 0, DOWN), ("share.version", 0, UNSAFE)],
            [("group.version", 1, DOWN)],
            [("group.version", 1, UP), ("share.version", 1, UP)],
            [("transaction.version", 1, DOWN)],
            [("transaction.version", 2, UP)],
            [],
        ):
            keys = [
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                for name, level, kind in updates
            ]
            answer = client.call(UpdateFeaturesRequest(feature_updates=keys), 2)
            wait()
            said.append((updates, answer.error_code, told(client)))
        return said

    kafka, here = both

    def until_told() -> None:
        """Kafka answers before its broker knows; another change of settings is heard after it."""
        marker = str(next(_numbers))
        assert altered(kafka, CLIENT_METRICS, "marker", ("metrics", SET, marker)) == 0
        while described(kafka, CLIENT_METRICS, "marker")["metrics"][0] != marker:
            pass

    assert story(here, lambda: None) == story(kafka, until_told)
