"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.configs import (
    AlterConfigs,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ListConfigResources,
)
from ottla.coordination.interface.store import Create, Delete, Set
from ottla.metadata import paths
from ottla.metadata.image import ALL_BROKERS
from ottla.metadata.nodes import decode_configs, encode_configs
from ottla.wire.messages import configs as configs_messages
from ottla.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ListConfigResourcesRequest,
)

from .cluster_world import call, play

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2


def outcomes(responses):
    return [
        (each.resource_type, each.resource_name, ErrorCode(each.error_code).name)
        for each in responses
    ]


async def describe(world, *resources, version=4, **fields):
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, *keys in resources
        ],
        **fields,
    )
    return (await call(DescribeConfigs(world.configs), request, version)).results


def test_settings_are_described_with_their_sources():
    """1 is the topic's own, 4 the broker's file, 5 a default; the strongest synonym is first."""

    async def scenario(world):
        await world.make("t", segment_bytes="2000000")
        topic, broker = await describe(
            world,
            (TOPIC, "t", "segment.bytes", "segment.ms", "no.such"),
            (BROKER, "1", "log.segment.bytes", "node.id"),
            include_synonyms=True,
        )
        assert [(c.name, c.value, c.config_source, c.read_only) for c in topic.configs] == [
            ("segment.bytes", "2000000", 1, False),
            ("segment.ms", "604800000", 5, False),
        ]
        assert [(s.name, s.value, s.source) for s in topic.configs[0].synonyms] == [
            ("segment.bytes", "2000000", 1),
            ("log.segment.bytes", "3000000", 4),
            ("log.segment.bytes", "1073741824", 5),
        ]
        assert [(c.name, c.value, c.config_source, c.read_only) for c in broker.configs] == [
            ("log.segment.bytes", "3000000", 4, False),
            ("node.id", "1", 4, True),
        ]

    play(scenario, {"log.segment.bytes": "3000000"})


def test_what_cannot_be_described_does_not_hinder_the_rest():
    """A topic that is not there, another broker, a type that is unknown."""

    async def scenario(world):
        results = await describe(
            world, (TOPIC, "none"), (BROKER, "2"), (77, "x"), (GROUP, "g", "group.type")
        )
        assert outcomes(results) == [
            (TOPIC, "none", "UNKNOWN_TOPIC_OR_PARTITION"),
            (BROKER, "2", "INVALID_REQUEST"),
            (77, "x", "INVALID_REQUEST"),
            (GROUP, "g", "NONE"),
        ]

    play(scenario)


def replacing(kind, name, *configs):
    return configs_messages.ReplaceConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[configs_messages.ReplacingConfig(name=key, value=value) for key, value in configs],
    )


async def replace(world, *resources, **fields):
    request = configs_messages.AlterConfigsRequest(resources=list(resources), **fields)
    return outcomes((await call(AlterConfigs(world.configs), request)).responses)


async def stored(world, name):
    path = paths.topic_config(name)
    return decode_configs(path, (await world.store.get(path)).data)


def test_the_settings_of_a_topic_are_replaced():
    """What is not named goes back to its default: in the store, the image and the log."""

    async def scenario(world):
        await world.make("t", retention_ms="5", segment_bytes="2000000")
        wanted = replacing(TOPIC, "t", ("retention.ms", "7"))
        assert await replace(world, wanted, validate_only=True) == [(TOPIC, "t", "NONE")]
        assert world.view.image.topic("t").configs["retention.ms"] == "5"
        assert await replace(world, wanted) == [(TOPIC, "t", "NONE")]
        assert world.view.image.topic("t").configs == {"retention.ms": "7"}
        assert await stored(world, "t") == {"retention.ms": "7"}
        config = world.partitions.get("t", 0).log.config
        assert (config.retention_ms, config.segment_bytes) == (7, 1073741824)

    play(scenario)


def test_a_replacement_that_is_refused_changes_nothing():
    """A null, a key given twice, a value that is none, a topic that is not there."""

    async def scenario(world):
        await world.make("t", retention_ms="5")
        for configs, code in (
            ([("retention.ms", None)], "INVALID_REQUEST"),
            ([("retention.ms", "7"), ("retention.ms", "8")], "INVALID_REQUEST"),
            ([("retention.ms", "soon")], "INVALID_CONFIG"),
        ):
            assert await replace(world, replacing(TOPIC, "t", *configs)) == [(TOPIC, "t", code)]
        assert await replace(world, replacing(TOPIC, "none")) == [
            (TOPIC, "none", "UNKNOWN_TOPIC_OR_PARTITION")
        ]
        assert world.view.image.topic("t").configs == {"retention.ms": "5"}

    play(scenario)


def altering(kind, name, *changes):
    return configs_messages.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            configs_messages.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


async def alter(world, *resources, **fields):
    request = configs_messages.IncrementalAlterConfigsRequest(resources=list(resources), **fields)
    return outcomes((await call(IncrementalAlterConfigs(world.configs), request)).responses)


def test_single_settings_are_altered_and_the_others_stay():
    """Of topics, of the broker and of groups; what is refused does not hinder the rest."""

    async def scenario(world):
        await world.make("t", retention_ms="5", segment_bytes="2000000")
        assert await alter(
            world,
            altering(
                TOPIC, "t", ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")
            ),
            altering(BROKER, "1", ("log.segment.bytes", SET, "5000000")),
            altering(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            altering(BROKER, "", ("node.id", SET, "2")),
            altering(TOPIC, "none", ("retention.ms", SET, "1")),
        ) == [
            (TOPIC, "t", "NONE"),
            (BROKER, "1", "NONE"),
            (GROUP, "g", "NONE"),
            (BROKER, "", "INVALID_REQUEST"),
            (TOPIC, "none", "UNKNOWN_TOPIC_OR_PARTITION"),
        ]
        image = world.view.image
        assert image.topic("t").configs == {
            "segment.bytes": "2000000",
            "cleanup.policy": "delete,compact",
        }
        assert image.group_configs == {"g": {"consumer.session.timeout.ms": "50000"}}
        assert world.settings.integer("log.segment.bytes") == 5000000

    play(scenario)


def test_an_alteration_is_tried_whole_or_not_at_all():
    """One wrong setting keeps the others of its resource from being set, and so does a trial."""

    async def scenario(world):
        await world.make("t")
        good, bad = ("retention.ms", SET, "7"), ("segment.bytes", SET, "many")
        assert await alter(world, altering(TOPIC, "t", good, bad)) == [
            (TOPIC, "t", "INVALID_CONFIG")
        ]
        assert await alter(world, altering(TOPIC, "t", good), validate_only=True) == [
            (TOPIC, "t", "NONE")
        ]
        assert world.view.image.topic("t").configs == {}

    play(scenario)


async def as_another_broker(world, path, **configs):
    """Store settings of which this broker has not heard yet."""
    data = encode_configs({key.replace("_", "."): value for key, value in configs.items()})
    node = await world.store.get(path)
    await world.store.multi([Create(path, data) if node is None else Set(path, data)])


async def held_at(world, path):
    return decode_configs(path, (await world.store.get(path)).data)


def test_what_another_broker_has_just_set_stays():
    """A change begins with what is stored, not with what this broker has heard of by then."""

    async def scenario(world):
        await world.make("t", retention_ms="5")
        topic, brokers = paths.topic_config("t"), paths.broker_config(ALL_BROKERS)
        await as_another_broker(world, topic, retention_ms="5", max_message_bytes="2000")
        await as_another_broker(world, brokers, message_max_bytes="3000")
        await as_another_broker(world, paths.group_config("g"), streams_num_standby_replicas="1")
        assert await alter(
            world,
            altering(TOPIC, "t", ("retention.ms", DELETE, None), ("segment.ms", SET, "9")),
            altering(BROKER, "", ("log.retention.ms", SET, "7")),
            altering(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
        ) == [(TOPIC, "t", "NONE"), (BROKER, "", "NONE"), (GROUP, "g", "NONE")]
        expected = {"max.message.bytes": "2000", "segment.ms": "9"}
        assert await held_at(world, topic) == expected
        assert world.view.image.topic("t").configs == expected
        assert await held_at(world, brokers) == {
            "message.max.bytes": "3000",
            "log.retention.ms": "7",
        }
        assert world.settings.integer("message.max.bytes") == 3000
        assert await held_at(world, paths.group_config("g")) == {
            "streams.num.standby.replicas": "1",
            "consumer.session.timeout.ms": "50000",
        }

    play(scenario)


def test_what_another_broker_has_just_set_can_be_deleted():
    """It is not passed over in silence as something that is not there."""

    async def scenario(world):
        await world.make("t")
        path = paths.topic_config("t")
        await as_another_broker(world, path, retention_ms="5")
        assert await alter(world, altering(TOPIC, "t", ("retention.ms", DELETE, None))) == [
            (TOPIC, "t", "NONE")
        ]
        assert await held_at(world, path) == {}

    play(scenario)


def test_settings_of_a_topic_that_another_broker_has_just_deleted_are_not_made_anew():
    """They would be those of the next topic of that name."""

    async def scenario(world):
        await world.make("t")
        path = paths.topic_config("t")
        await world.store.multi([Delete(path)])
        assert await alter(world, altering(TOPIC, "t", ("retention.ms", SET, "5"))) == [
            (TOPIC, "t", "UNKNOWN_TOPIC_OR_PARTITION")
        ]
        assert await world.store.get(path) is None

    play(scenario)


def test_a_resource_that_is_named_twice_is_altered_neither_time():
    """Each mention is answered."""

    async def scenario(world):
        await world.make("t")
        twice = [altering(TOPIC, "t", ("retention.ms", SET, value)) for value in ("7", "8")]
        assert await alter(world, *twice) == [(TOPIC, "t", "INVALID_REQUEST")] * 2
        assert world.view.image.topic("t").configs == {}

    play(scenario)


def test_an_error_of_the_whole_request_is_on_every_resource():
    """These answers have no other place for it."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t"),
        DescribeConfigsResource(resource_type=BROKER, resource_name="1"),
    ]
    for responses in (
        DescribeConfigs.on_error(
            DescribeConfigsRequest(resources=resources), code, "why", 4
        ).results,
        AlterConfigs.on_error(
            configs_messages.AlterConfigsRequest(
                resources=[replacing(TOPIC, "t"), replacing(BROKER, "1")]
            ),
            code,
            "why",
            2,
        ).responses,
        IncrementalAlterConfigs.on_error(
            configs_messages.IncrementalAlterConfigsRequest(
                resources=[altering(TOPIC, "t"), altering(BROKER, "1")]
            ),
            code,
            "why",
            1,
        ).responses,
    ):
        assert outcomes(responses) == [(TOPIC, "t", code.name), (BROKER, "1", code.name)]
        assert {each.error_message for each in responses} == {"why"}


@pytest.mark.parametrize(
    ("version", "kinds", "listed"),
    [
        (1, [], [(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")]),
        (1, [GROUP, TOPIC], [(TOPIC, "t"), (GROUP, "g")]),
        (0, [], [(METRICS, "m")]),
    ],
)
def test_what_has_settings_is_listed(version, kinds, listed):
    """Of the types asked for, or of all; version 0 knows subscriptions to metrics only."""

    async def scenario(world):
        await world.make("t")
        image = world.view.image.with_group_configs("g", {"consumer.session.timeout.ms": "50000"})
        world.view.replace(image.with_client_metrics("m", {"interval.ms": "1000"}))
        request = ListConfigResourcesRequest(resource_types=kinds)
        answer = await call(ListConfigResources(world.configs), request, version)
        assert answer.error_code == 0
        found = [(each.resource_type, each.resource_name) for each in answer.config_resources]
        assert found == listed

    play(scenario)


def test_a_type_that_is_unknown_cannot_be_listed():
    """As in Kafka, it is a version that is missing."""

    async def scenario(world):
        request = ListConfigResourcesRequest(resource_types=[TOPIC, 77])
        answer = await call(ListConfigResources(world.configs), request)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert answer.config_resources == []

    play(scenario)
