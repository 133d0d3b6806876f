"""Whatever a setting is set to, it is refused by its name, or the broker works with it.

A value that is taken and cannot be used shows itself much later, in a request that fails.
"""

import asyncio
import logging

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerSettings
from ottla.base.settings.tables import GROUP_SETTINGS
from ottla.base.settings.tables.setting import ConfigType, Use
from ottla.broker.configs.configs import ResourceType
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.transactions import InitProducerIdRequest

from .broker_client import batch, connected, fetch, fetched, produce, produced

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_TEXTS = {
    ConfigType.BOOLEAN: ("rubbish", ""),
    ConfigType.DOUBLE: ("-1", "0", "2", "1e308", "rubbish"),
    ConfigType.LIST: ("rubbish", "", " , ", "rubbish,rubbish", "a b:/c"),
}
# The greatest value of these waits for brokers, or is more than a topic may have.
_LIMITS_ABOVE = {
    "default.replication.factor",
    "num.partitions",
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.replication.factor",
}
# The least value of these is a limit that lets nothing through, and is meant to; or it is another
# broker's number. What reaches them is refused in order.
_LIMITS = {
    "log.dir",  # Elsewhere on the disk.
    "log.dirs",
    "message.max.bytes",
    "node.id",
    "socket.request.max.bytes",
    "transaction.max.timeout.ms",
}
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
_ONE_PARTITION = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def rubbish(setting):
    """Values of the setting's type, as far from sense as there are."""
    bits = _BITS.get(setting.type)
    if bits is None:
        return _TEXTS.get(setting.type, ("rubbish", "", "a b,c:/d=é"))
    return (str(-1 << bits - 1), "-7", "-1", "0", "1", "rubbish", "", str((1 << bits - 1) - 1))


def used(table):
    return [each for each in table.values() if each.use is Use.USED]


def names(settings):
    return [each.name for each in settings]


def accepted(setting):
    """The values that are taken; a refusal names the setting."""
    taken = []
    for text in rubbish(setting):
        refusal = refused(setting.name, text)
        if refusal is None:
            taken.append(text)
        else:
            assert refusal.code is ErrorCode.INVALID_CONFIG
            assert setting.name in refusal.message
    return taken


def refused(name, text):
    """The refusal of a value at the start, None where it is taken."""
    try:
        BrokerSettings({name: text})
    except OttlaError as error:
        return error
    return None


async def ask(client, request, version, code_of, *, good=(ErrorCode.NONE,)):
    """Ask until the coordinator is there; the answer's code is a good one."""
    async with asyncio.timeout(120):
        while True:
            code = ErrorCode(code_of(await client.call(request, version)))
            if code not in _PASSING:
                break
            await asyncio.sleep(0.005)
    assert code in good, (type(request).__name__, code.name)


async def write(client, *good):
    """Produce a record, which is too old where its time may not be a millisecond ago."""
    good = (ErrorCode.NONE, ErrorCode.INVALID_TIMESTAMP, *good)
    await ask(client, produce("a", batch(b"x")), 9, lambda a: produced(a).error_code, good=good)


async def use(client):
    """Something of everything that a broker does."""
    await write(client)
    await ask(client, fetch("a", 0), 12, lambda a: fetched(a).error_code)
    await groups(client)
    transactional = FindCoordinatorRequest(key="x", key_type=1)
    await ask(client, transactional, 3, lambda a: a.error_code)
    begin = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000)
    await ask(client, begin, 4, lambda a: a.error_code)
    shown = DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name="a")
    describe = DescribeConfigsRequest(resources=[shown])
    await ask(client, describe, 4, lambda a: a.results[0].error_code)


async def groups(client):
    """A group of each kind."""
    find = FindCoordinatorRequest(key="g", key_type=0)
    await ask(client, find, 3, lambda a: a.error_code)
    joins = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1_000,
        topic_partitions=[],
        subscribed_topic_names=["a"],
    )
    await ask(client, joins, 1, lambda a: a.error_code)
    describe = ConsumerGroupDescribeRequest(group_ids=["g"])
    await ask(client, describe, 1, lambda a: a.groups[0].error_code)
    joins = ShareGroupHeartbeatRequest(group_id="s", member_id="m", subscribed_topic_names=["a"])
    await ask(client, joins, 1, lambda a: a.error_code)
    joins = JoinGroupRequest(
        group_id="c",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    good = (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.INVALID_SESSION_TIMEOUT)
    await ask(client, joins, 5, lambda a: a.error_code, good=good)
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="a", partitions=[partition])
    commit = OffsetCommitRequest(group_id="o", topics=[topic])
    await ask(client, commit, 8, lambda a: a.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("name", sorted(BROKER_SETTINGS))
def test_a_broker_refuses_rubbish_by_name_or_works(name, caplog):
    """Every value is refused at the start, or, the most absurd ones that are taken, harmless."""
    setting = BROKER_SETTINGS[name]
    taken = accepted(setting)
    if setting.use is not Use.USED or name in _LIMITS or not taken:
        return

    async def scenario(text):
        async with connected({**_ONE_PARTITION, name: text}) as (_, client):
            await use(client)

    caplog.set_level(logging.ERROR, "ottla")
    for text in {taken[0]} if name in _LIMITS_ABOVE else {taken[0], taken[-1]}:
        try:
            asyncio.run(scenario(text))
        except OttlaError as error:
            # A start that succeeds is as good.
            assert name in error.message  # noqa: PT017
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def alter(client, kind, resource, setting, text):
    """The code of the answer, and its message."""
    operation = 1 if text is None else 0
    config = AlterableConfig(name=setting.name, config_operation=operation, value=text)
    changed = AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[changed])
    (answer,) = (await client.call(request, 1)).responses
    return ErrorCode(answer.error_code), answer.error_message


@pytest.mark.parametrize("name", names(used(TOPIC_SETTINGS)))
def test_a_topic_refuses_rubbish_by_name_or_works(name, caplog):
    """As above; a topic may still refuse records that are too large or too old for it."""
    setting = TOPIC_SETTINGS[name]
    too_large = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

    async def scenario():
        async with connected() as (_, client):
            for text in rubbish(setting):
                code, message = await alter(client, ResourceType.TOPIC, "a", setting, text)
                if code is not ErrorCode.NONE:
                    assert name in message
                    continue
                await write(client, *too_large)
                await ask(client, fetch("a", 0), 12, lambda a: fetched(a).error_code)

    asyncio.run(scenario())
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("name", names(used(GROUP_SETTINGS)))
def test_a_group_refuses_rubbish_by_name_or_works(name, caplog):
    """As above."""
    setting = GROUP_SETTINGS[name]
    group = {"consumer": "g", "share": "s", "streams": "c", "errors": "s"}[name.partition(".")[0]]

    async def scenario():
        async with connected(_ONE_PARTITION) as (_, client):
            for text in rubbish(setting):
                code, message = await alter(client, ResourceType.GROUP, group, setting, text)
                if code is not ErrorCode.NONE:
                    assert name in message
                    continue
                await groups(client)

    asyncio.run(scenario())
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "name", [each.name for each in used(BROKER_SETTINGS) if each.update.value != "read-only"]
)
def test_an_altered_broker_refuses_rubbish_by_name_or_works(name, caplog):
    """What is refused at the start is refused where it is altered, too."""
    setting = BROKER_SETTINGS[name]
    if name in _LIMITS:
        return

    async def scenario():
        async with connected(_ONE_PARTITION) as (broker, client):
            for text in rubbish(setting):
                resource = str(broker.broker_id)
                code, message = await alter(client, ResourceType.BROKER, resource, setting, text)
                if code is not ErrorCode.NONE:
                    assert name in message
                    continue
                await write(client)
            await groups(client)

    asyncio.run(scenario())
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("text", "assignor"),
    [
        ("range", "range"),
        ("org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform", "range"),
        ("org.apache.kafka.coordinator.group.assignor.UniformAssignor, uniform", "uniform"),
    ],
)
def test_assignors_are_named_by_kafkas_classes_as_well(text, assignor):
    """A group uses the first one, and is described with its short name."""

    async def scenario():
        settings = {**_ONE_PARTITION, "group.consumer.assignors": text}
        async with connected(settings) as (_, client):
            await groups(client)
            answer = await client.call(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
            assert answer.groups[0].assignor_name == assignor

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["nosuch", "uniform,nosuch", "", "org.example.Assignor"])
def test_an_unknown_assignor_is_refused_with_those_there_are(text):
    """It used to end every heartbeat of a group in a closed connection."""
    with pytest.raises(OttlaError) as caught:
        BrokerSettings({"group.consumer.assignors": text})
    assert "group.consumer.assignors" in caught.value.message
    assert "choose from uniform, range, org.apache.kafka." in caught.value.message
