"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources."""

import logging

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.settings import BROKER_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.resolve import THROTTLES
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.topic_plan import RequestedTopic
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages import configs as configs_messages
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.integration.broker.inprocess import run

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


async def make(caller, name="t", **configs):
    new = RequestedTopic(name, 1, 1, configs={k.replace("_", "."): v for k, v in configs.items()})
    (outcome,) = await caller.broker.parts.metadata.topics.create([new])
    assert outcome.error is None


async def describe(caller, kind, name, *keys, version=4, **named):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], **named)
    (result,) = (await caller.call(request, version)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


async def value_of(caller, kind, name, key):
    (config,) = (await describe(caller, kind, name, key)).configs
    return config.value


async def alter(caller, kind, name, *changes, version=1, **named):
    configs = [AlterableConfig(name=n, config_operation=op, value=v) for n, op, v in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], **named)
    (response,) = (await caller.call(request, version)).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return ErrorCode(response.error_code).name


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_is_described_with_all_its_settings(version):
    """Versions 1-4; the names are those Kafka 4.3 tells (internal ones excepted)."""

    async def scenario(caller):
        await make(caller, retention_ms="5")
        result = await describe(caller, TOPIC, "t", version=version)
        told = {config.name: config for config in result.configs}
        assert told.keys() == TOPIC_SETTINGS.keys() - {"internal.segment.bytes"}
        assert (told["retention.ms"].value, told["retention.ms"].config_source) == ("5", 1)
        assert told["segment.ms"].config_source == 5
        assert not any(config.read_only or config.is_sensitive for config in result.configs)
        assert all(config.synonyms == [] for config in result.configs)
        assert told["segment.ms"].config_type == (5 if version >= 3 else 0)

    run(scenario)


def test_synonyms_and_documentation_come_when_asked_for():
    """Strongest source first."""

    async def scenario(caller):
        await make(caller, segment_bytes="2000000")
        result = await describe(
            caller,
            TOPIC,
            "t",
            "segment.bytes",
            include_synonyms=True,
            include_documentation=True,
        )
        (config,) = result.configs
        assert [(s.name, s.value, s.source) for s in config.synonyms] == [
            ("segment.bytes", "2000000", 1),
            ("log.segment.bytes", "3000000", 4),
            ("log.segment.bytes", "1073741824", 5),
        ]
        assert config.documentation == TOPIC_SETTINGS["segment.bytes"].doc

    run(scenario, {"log.segment.bytes": "3000000"})


def test_only_the_keys_asked_for_are_told():
    """Unknown keys are left out, as in Kafka."""

    async def scenario(caller):
        await make(caller)
        result = await describe(caller, TOPIC, "t", "retention.ms", "no.such")
        assert [config.name for config in result.configs] == ["retention.ms"]

    run(scenario)


def test_a_broker_is_described_with_what_may_change_and_what_is_secret():
    """Read-only unless it is dynamic (KIP-226); passwords without a value."""

    async def scenario(caller):
        result = await describe(caller, BROKER, "1", include_synonyms=True)
        told = {config.name: config for config in result.configs}
        shown = {name for name, setting in BROKER_SETTINGS.items() if not setting.internal}
        # Not set, as in Kafka.
        shown -= THROTTLES
        assert told.keys() == shown
        assert told["num.partitions"].read_only
        assert told["node.id"].config_source == 4
        assert not told["log.retention.ms"].read_only
        password = told["ssl.keystore.password"]
        assert (password.is_sensitive, password.value) == (True, None)
        assert [synonym.value for synonym in password.synonyms] == [None]

    run(scenario, {"ssl.keystore.password": "secret"})


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", "UNKNOWN_TOPIC_OR_PARTITION"),
        (TOPIC, "no pe", "INVALID_TOPIC_EXCEPTION"),
        (BROKER, "2", "INVALID_REQUEST"),
        (BROKER, "1" * 30_000, "INVALID_REQUEST"),
        (BROKER, "one", "INVALID_REQUEST"),
        (GROUP, "", "INVALID_REQUEST"),
        (3, "x", "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_described_says_why(kind, name, code):
    """One code and one sentence a resource."""

    async def scenario(caller):
        result = await describe(caller, kind, name)
        assert ErrorCode(result.error_code).name == code
        assert result.error_message
        assert result.configs == []

    run(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_a_change_of_a_topic_is_in_effect_at_once(version):
    """In the description and in the log itself."""

    async def scenario(caller):
        await make(caller)
        log = caller.broker.partitions.get("t", 0).log
        changes = [("max.message.bytes", SET, "100"), ("cleanup.policy", APPEND, "compact")]
        assert await alter(caller, TOPIC, "t", *changes, version=version) == "NONE"
        assert log.config.max_message_bytes == 100
        assert log.config.cleanup_policy == {"delete", "compact"}
        assert await value_of(caller, TOPIC, "t", "cleanup.policy") == "delete,compact"
        assert await alter(caller, TOPIC, "t", ("max.message.bytes", DELETE, None)) == "NONE"
        assert log.config.max_message_bytes == 1_048_588

    run(scenario)


def test_a_trial_run_changes_nothing():
    """But refuses what would be refused."""

    async def scenario(caller):
        await make(caller)
        good, bad = ("retention.ms", SET, "5"), ("retention.ms", SET, "soon")
        assert await alter(caller, TOPIC, "t", good, validate_only=True) == "NONE"
        assert await alter(caller, TOPIC, "t", bad, validate_only=True) == "INVALID_CONFIG"
        assert await value_of(caller, TOPIC, "t", "retention.ms") == "604800000"

    run(scenario)


def test_a_resource_is_altered_whole_or_not_at_all():
    """One bad setting spares the good ones beside it."""

    async def scenario(caller):
        await make(caller)
        changes = [("retention.ms", SET, "5"), ("segment.ms", SET, "-1")]
        assert await alter(caller, TOPIC, "t", *changes) == "INVALID_CONFIG"
        assert await value_of(caller, TOPIC, "t", "retention.ms") == "604800000"

    run(scenario)


def test_a_change_for_all_brokers_reaches_topics_without_their_own():
    """`log.retention.ms` for every broker; one broker's own wins over it."""

    async def scenario(caller):
        await make(caller)
        await make(caller, "own", retention_ms="7")
        log = caller.broker.partitions.get("t", 0).log
        assert await alter(caller, BROKER, "", ("log.retention.ms", SET, "5000")) == "NONE"
        assert log.config.retention_ms == 5000
        assert await alter(caller, BROKER, "1", ("log.retention.ms", SET, "6000")) == "NONE"
        assert log.config.retention_ms == 6000
        assert caller.broker.partitions.get("own", 0).log.config.retention_ms == 7
        assert await alter(caller, BROKER, "1", ("log.retention.ms", DELETE, None)) == "NONE"
        assert log.config.retention_ms == 5000

    run(scenario)


def test_the_settings_of_all_brokers_are_described_under_the_empty_name():
    """Only what was set there, and the cluster's least ISR, which is always set (KIP-966)."""

    async def scenario(caller):
        (least,) = (await describe(caller, BROKER, "")).configs
        assert (least.name, least.value, least.config_source) == ("min.insync.replicas", "1", 3)
        await alter(caller, BROKER, "", ("log.retention.ms", SET, "5000"))
        configs = (await describe(caller, BROKER, "", include_synonyms=True)).configs
        assert [(c.name, c.value, c.config_source) for c in configs] == [
            ("log.retention.ms", "5000", 3),
            ("min.insync.replicas", "1", 3),
        ]

    run(scenario)


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (BROKER, "1", ("num.partitions", SET, "2"), "INVALID_REQUEST"),
        (BROKER, "", ("listeners", SET, "PLAINTEXT://:1"), "INVALID_REQUEST"),
        (BROKER, "x", ("log.retention.ms", SET, "2"), "INVALID_REQUEST"),
        (BROKER, "1", ("log.retention.sm", SET, "2"), "INVALID_REQUEST"),
        (BROKER, "1", ("log.segment.bytes", SET, "1"), "INVALID_REQUEST"),
        (TOPIC, "nope", ("retention.ms", SET, "2"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (TOPIC, "t", ("retention.ms", APPEND, "2"), "INVALID_CONFIG"),
        (TOPIC, "t", ("retention.ms", SET, None), "INVALID_REQUEST"),
        (TOPIC, "t", ("x" * 32_000, SET, "1"), "INVALID_CONFIG"),
        (TOPIC, "t", ("retention.ms", SET, "1" * 32_000), "INVALID_CONFIG"),
        (LOGGER, "1", ("x" * 32_000, SET, "1"), "INVALID_CONFIG"),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "1"), "INVALID_CONFIG"),
        (METRICS, "m", ("interval.ms", SET, "1"), "INVALID_REQUEST"),
        (LOGGER, "1", ("ottla.nope", SET, "DEBUG"), "INVALID_CONFIG"),
        (LOGGER, "1", ("ottla", SET, "LOUD"), "INVALID_CONFIG"),
        (LOGGER, "1", ("ottla", DELETE, None), "INVALID_REQUEST"),
    ],
)
def test_a_change_that_cannot_be_is_refused(kind, name, change, code):
    """With the code Kafka uses."""

    async def scenario(caller):
        await make(caller)
        assert await alter(caller, kind, name, change) == code

    run(scenario)


def test_more_in_sync_replicas_than_replicas_cannot_be_set():
    """Nor asked for; segments above retention can be, as topics are emptied so."""

    async def scenario(caller):
        await make(caller, segment_ms="60000", segment_bytes="2000000")
        change = ("min.insync.replicas", SET, "2")
        assert await alter(caller, TOPIC, "t", change) == "INVALID_CONFIG"
        for change in (("retention.ms", SET, "1000"), ("retention.bytes", SET, "1000")):
            assert await alter(caller, TOPIC, "t", change) == "NONE"

    run(scenario)


def test_what_a_topic_inherits_is_not_held_against_other_changes():
    """The broker's min.insync.replicas=2 hinders no topic of one replica."""

    async def scenario(caller):
        await make(caller)
        assert await alter(caller, TOPIC, "t", ("retention.ms", SET, "1000")) == "NONE"

    run(scenario, {"min.insync.replicas": "2"})


def test_broker_settings_in_the_wrong_order_are_refused_while_running_too():
    """They would have every topic refused that is created from then on."""

    async def scenario(caller):
        low = ("log.cleaner.min.compaction.lag.ms", SET, "100")
        high = ("log.cleaner.max.compaction.lag.ms", SET, "10")
        assert await alter(caller, BROKER, "", low, high) == "INVALID_REQUEST"
        assert await alter(caller, BROKER, "", low) == "NONE"
        assert await alter(caller, BROKER, "", high) == "INVALID_REQUEST"

    run(scenario)


def test_a_resource_named_twice_is_refused():
    """Which of the two should hold?"""

    async def scenario(caller):
        await make(caller)
        resource = AlterConfigsResource(
            resource_type=TOPIC,
            resource_name="t",
            configs=[AlterableConfig(name="retention.ms", value="5")],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource, resource])
        codes = [r.error_code for r in (await caller.call(request, 1)).responses]
        assert codes == [ErrorCode.INVALID_REQUEST] * 2
        assert await value_of(caller, TOPIC, "t", "retention.ms") == "604800000"

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_the_older_alter_replaces_all(version):
    """What it does not name goes back to its default (KIP-133)."""

    async def scenario(caller):
        await make(caller, retention_ms="6", segment_ms="5")

        async def replace(value):
            config = configs_messages.ReplacingConfig(name="retention.ms", value=value)
            resource = configs_messages.ReplaceConfigsResource(
                resource_type=TOPIC, resource_name="t", configs=[config]
            )
            request = configs_messages.AlterConfigsRequest(resources=[resource])
            (response,) = (await caller.call(request, version)).responses
            return response.error_code

        assert await replace("7") == 0
        assert await value_of(caller, TOPIC, "t", "retention.ms") == "7"
        assert await value_of(caller, TOPIC, "t", "segment.ms") == "604800000"
        assert await replace(None) == ErrorCode.INVALID_REQUEST

    run(scenario)


def test_changes_survive_a_restart():
    """They are in the store: of topics, of brokers, of groups with any name."""
    store, filesystem = MemoryStore(), MemoryFileSystem()

    async def change(caller):
        await make(caller)
        assert await alter(caller, TOPIC, "t", ("retention.ms", SET, "5")) == "NONE"
        assert await alter(caller, BROKER, "", ("log.segment.bytes", SET, "2000000")) == "NONE"
        assert await alter(caller, GROUP, "a/b", ("streams.num.standby.replicas", SET, "1")) == (
            "NONE"
        )

    async def look(caller):
        assert await value_of(caller, TOPIC, "t", "retention.ms") == "5"
        assert await value_of(caller, BROKER, "1", "log.segment.bytes") == "2000000"
        assert await value_of(caller, GROUP, "a/b", "streams.num.standby.replicas") == "1"
        assert caller.broker.partitions.get("t", 0).log.config.segment_bytes == 2_000_000

    run(change, store=store, filesystem=filesystem)
    run(look, store=store, filesystem=filesystem)


def test_log_levels_are_settings_of_the_brokers_loggers():
    """KIP-412: changed while it runs, with Kafka's names of levels."""
    logger = logging.getLogger("ottla.broker.topics.topics")

    async def scenario(caller):
        assert (
            await alter(caller, LOGGER, "1", ("ottla.broker.topics.topics", SET, "WARN")) == "NONE"
        )
        assert logger.level == logging.WARNING
        assert await value_of(caller, LOGGER, "1", "ottla.broker.topics.topics") == "WARN"
        assert (
            await alter(caller, LOGGER, "1", ("ottla.broker.topics.topics", DELETE, None)) == "NONE"
        )
        assert logger.level == logging.NOTSET

    try:
        run(scenario)
    finally:
        logger.setLevel(logging.NOTSET)


def test_resources_are_listed_by_type():
    """KIP-1142; version 0 asks for client metrics, of which there are none."""

    async def scenario(caller):
        await make(caller)
        await alter(caller, GROUP, "g", ("streams.num.standby.replicas", SET, "1"))

        async def listed(kinds, version=1):
            request = ListConfigResourcesRequest(resource_types=kinds)
            answer = await caller.call(request, version)
            assert answer.error_code == 0
            return [(r.resource_type, r.resource_name) for r in answer.config_resources]

        assert await listed([TOPIC, GROUP]) == [(TOPIC, "t"), (GROUP, "g")]
        assert await listed([]) == [(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g")]
        assert await listed([], 0) == []

    run(scenario)


def test_a_type_that_cannot_be_listed_is_refused():
    """UNSUPPORTED_VERSION, as Kafka answers."""

    async def scenario(caller):
        answer = await caller.call(ListConfigResourcesRequest(resource_types=[3]), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION

    run(scenario)
