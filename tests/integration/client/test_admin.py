"""Administration against real brokers."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    BrokerRefused,
    ClientError,
    ConfigResourceType,
    Consumer,
    NewTopic,
    TopicPartition,
    UnknownTopic,
    sync,
)
from ottla.client.admin.configs import ConfigEntry, ConfigSource
from ottla.client.common.errors import ConnectionFailed, UnsupportedByBroker
from ottla.wire.messages.decisions import DescribeDecisionsRequest, DescribeRebalancesRequest

from .conftest import eventually, unique
from .scripted import ScriptedBroker


@pytest.fixture
def admin(bootstrap):
    with sync.Admin(bootstrap) as found:
        yield found


def test_topics_are_created_listed_described_grown_and_deleted(admin) -> None:
    """A topic's whole life."""
    name = unique("life")
    admin.topics.create_all([NewTopic(name=name, partitions=2, config={"retention.ms": "5000"})])
    assert eventually(lambda: name in [topic.name for topic in admin.topics.all()])
    admin.topics.create_partitions(name, 3)

    def partitions() -> list[tuple[int, int, tuple[int, ...]]]:
        (described,) = admin.topics.describe_all([name])
        return [(entry.partition, entry.leader, entry.isr) for entry in described.partitions]

    expected = [(0, 1, (1,)), (1, 1, (1,)), (2, 1, (1,))]
    assert eventually(lambda: partitions() == expected), partitions()
    admin.topics.delete([name])

    def gone() -> bool:
        try:
            partitions()
        except UnknownTopic:
            return True
        return False

    assert eventually(gone)


def test_refusals_carry_the_brokers_code_and_a_remedy(admin, make_topic) -> None:
    """Existing names, bad names, fewer partitions, unknown settings."""
    name = make_topic(partitions=2)
    with pytest.raises(BrokerRefused, match="choose another name") as caught:
        admin.topics.create_all([NewTopic(name=name, partitions=1)])
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(BrokerRefused) as caught:
        admin.topics.create_all([NewTopic(name="no/slash", partitions=1)])
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    with pytest.raises(BrokerRefused, match="can only grow") as caught:
        admin.topics.create_partitions(name, 1)
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(BrokerRefused) as caught:
        admin.configs.alter(ConfigResourceType.TOPIC, name, {"no.such.setting": "1"})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_partition_that_a_topic_lacks_is_told_of_by_those_it_has(bootstrap, make_topic) -> None:
    """Whatever is asked about it, numbers below none included."""
    name = make_topic(partitions=2)

    async def refusals(partition: TopicPartition) -> list[str]:
        async with Admin(bootstrap) as admin, Consumer(bootstrap) as consumer:
            found = []
            for asked in (
                admin.compaction.describe(partition),
                admin.decisions.describe(partition),
                admin.logs.offsets({partition: LATEST}),
                admin.logs.account(partition),
                admin.logs.retention(partition),
                consumer.assign([partition]),
            ):
                with pytest.raises(UnknownTopic) as caught:
                    await asked
                found.append(caught.value.message)
            return found

    for number in (2, -1):
        told = asyncio.run(refusals(TopicPartition(name, number)))
        assert told == [f"topic {name!r} has partitions 0 to 1, not {number}"] * 6


def test_a_broker_that_is_no_ottla_is_told_of_by_what_it_lacks() -> None:
    """What only Ottla answers is not asked of others; the error says which broker it was."""

    async def refusals() -> list[str]:
        async with ScriptedBroker() as broker, Admin(broker.bootstrap) as admin:
            found = []
            for asked in (
                admin.compaction.describe(TopicPartition("planes", 0)),
                admin.decisions.describe(TopicPartition("planes", 0)),
                admin.logs.account(TopicPartition("planes", 0)),
                admin.logs.retention(TopicPartition("planes", 0)),
                admin.rebalances.describe("crew"),
            ):
                with pytest.raises(UnsupportedByBroker) as caught:
                    await asked
                found.append(caught.value.message)
            return found

    assert asyncio.run(refusals()) == [
        "broker 1 does not describe its cleaner: it is no Ottla, or an older one",
        "broker 1 keeps no decision records: it is no Ottla, or an older one",
        "broker 1 keeps no ledger of offsets: it is no Ottla, or an older one",
        "broker 1 does not describe its retention: it is no Ottla, or an older one",
        "broker 1 records no rebalances: it is no Ottla, or an older one",
    ]


def test_a_broker_that_does_not_answer_is_named_and_the_story_is_told_without_it() -> None:
    """Of decisions and of rebalances: what others remember is worth having."""
    requests = (DescribeDecisionsRequest, DescribeRebalancesRequest)
    stories = frozenset(request.__api_key__ for request in requests)
    broker = ScriptedBroker(versions=dict.fromkeys(stories, (0, 0)), drops=stories)

    async def silent() -> list[dict[int, OttlaError]]:
        async with broker, Admin(broker.bootstrap) as admin:
            decisions = await admin.decisions.describe(TopicPartition("planes", 0))
            rebalances = await admin.rebalances.describe("crew")
            assert (decisions.records, rebalances.rebalances) == ((), ())
            return [decisions.silent, rebalances.silent]

    for told in asyncio.run(silent()):
        assert list(told) == [1]
        assert isinstance(told[1], ConnectionFailed)


def test_validating_creates_nothing(admin) -> None:
    """validate_only asks whether it would work."""
    name = unique("never")
    admin.topics.create_all([NewTopic(name=name, partitions=1)], validate_only=True)
    assert name not in [topic.name for topic in admin.topics.all()]


def test_settings_show_their_origin_and_return_to_their_default(admin, make_topic) -> None:
    """Set, read with source and synonyms, unset (KIP-339, KIP-226)."""
    name = make_topic()
    admin.configs.alter(ConfigResourceType.TOPIC, name, {"retention.ms": "1234"})

    def retention() -> ConfigEntry:
        described = admin.configs.describe(ConfigResourceType.TOPIC, name, ["retention.ms"])
        return described["retention.ms"]

    assert eventually(lambda: retention().value == "1234"), retention()
    entry = retention()
    assert (entry.source, entry.is_read_only) == (ConfigSource.TOPIC, False)
    assert entry.synonyms[0] == ("retention.ms", "1234", ConfigSource.TOPIC)
    admin.configs.alter(ConfigResourceType.TOPIC, name, {"retention.ms": None})
    assert eventually(lambda: retention().value == "604800000"), retention()
    assert retention().source is ConfigSource.DEFAULT
    broker = admin.configs.describe(ConfigResourceType.BROKER, "1", ["log.retention.hours"])
    assert broker["log.retention.hours"].value == "168"
    with pytest.raises(ClientError, match="named by its id"):
        admin.configs.describe(ConfigResourceType.BROKER, "one")


def test_groups_are_described_moved_and_deleted(admin, bootstrap, make_topic, group) -> None:
    """Offsets move only while nobody is there; then the group goes with them."""
    topic = make_topic(partitions=2)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with sync.Consumer(bootstrap, group_id=group) as consumer:
        consumer.subscribe(topic)
        while len(consumer.assignment()) < 2:
            consumer.poll(0.1)
        (described,) = admin.groups.describe_all([group])
        assert (described.state, described.coordinator_id) == ("Stable", 1)
        (member,) = described.members
        assert (member.partitions, member.client_id) == ((zero, one), "ottla-consumer")
        stable = [listed.group_id for listed in admin.groups.all(states=["Stable"])]
        assert group in stable
        with pytest.raises(BrokerRefused, match="stop the members"):
            admin.groups.delete([group])
    admin.groups.set_offsets(group, {zero: 5, one: 7})
    assert {p: o.offset for p, o in admin.groups.offsets(group).items()} == {zero: 5, one: 7}
    admin.groups.delete_offsets(group, [one])
    assert set(admin.groups.offsets(group)) == {zero}
    admin.groups.delete([group])
    assert eventually(lambda: group not in [listed.group_id for listed in admin.groups.all()])


def test_offsets_are_listed_by_name_and_time_and_records_deleted(
    admin, bootstrap, make_topic
) -> None:
    """Earliest, latest, last in time, at a time; then the log starts later (KIP-107, KIP-734)."""
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    with sync.Producer(bootstrap) as producer:
        for timestamp_ms in (100, 300, 200):
            producer.send(topic, b"v", timestamp_ms=timestamp_ms)
    wanted = {EARLIEST: 0, LATEST: 3, MAX_TIMESTAMP: 1, 150: 1, 301: -1}
    assert {
        which: admin.logs.offsets({partition: which})[partition].offset for which in wanted
    } == wanted
    assert admin.logs.delete_records({partition: 2}) == {partition: 2}
    assert admin.logs.offsets({partition: EARLIEST})[partition].offset == 2
    with pytest.raises(BrokerRefused) as caught:
        admin.logs.delete_records({partition: 99})
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_brokers_disks_and_producers_are_told(admin, bootstrap, make_topic) -> None:
    """Who is there, how much each log holds, and whose sequences are remembered."""
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    with sync.Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"x" * 1000)
    cluster = admin.cluster.describe()
    assert (cluster.controller_id, [broker.broker_id for broker in cluster.brokers]) == (1, [1])
    (directory,) = admin.logs.directories()
    assert 1000 < directory.partition_bytes[partition] < 1200
    (described,) = admin.logs.producers([partition])[partition]
    assert (described.producer_epoch, described.last_sequence) == (0, 0)


def test_only_calls_are_offered(admin) -> None:
    """A misspelt call is an AttributeError, as with any object."""
    with pytest.raises(AttributeError):
        admin.create_topick("t")
