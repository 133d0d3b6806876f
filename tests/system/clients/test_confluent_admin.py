"""librdkafka's admin client: topics, partitions, configs, records, offsets and groups."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

MakeTopic = Callable[..., str]


def fill(bootstrap: str, topic: str, count: int, start_ms: int = 1_700_000_000_000) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for index in range(count):
        producer.produce(topic, b"v%d" % index, partition=0, timestamp=start_ms + index * 1000)
    assert producer.flush(120) == 0


def commit(bootstrap: str, group: str, *offsets: TopicPartition) -> None:
    """Commit as a client without membership does."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


def error_of(future: object) -> int:
    with pytest.raises(KafkaException) as raised:
        future.result(90)  # type: ignore[attr-defined]  # The client's futures have no types.
    code: int = raised.value.args[0].code()
    return code


def topic_config(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(90)
    return described


def test_created_topic_has_the_partitions_asked_for(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    """Every partition has a leader, which is its only replica and in sync."""
    topic = make_topic(partitions=3)

    described = admin.describe_topics(TopicCollection([topic]))[topic].result(90)

    assert [p.id for p in described.partitions] == [0, 1, 2]
    assert all(p.leader.id == 1 for p in described.partitions)
    assert all([n.id for n in p.isr] == [1] for p in described.partitions)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("bad name!", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("none-at-all", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-copies", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (
            NewTopic("bad-config", 1, 1, config={"retention.ms": "soon"}),
            KafkaError.INVALID_CONFIG,
        ),
        (
            NewTopic("no-such-config", 1, 1, config={"retention.minutes": "1"}),
            KafkaError.INVALID_CONFIG,
        ),
    ],
    ids=["name", "partitions", "replicas", "value", "setting"],
)
def test_impossible_topic_is_refused_with_kafkas_error(
    admin: AdminClient, new: NewTopic, code: int
) -> None:
    """What cannot be created is refused and leaves nothing behind."""
    assert error_of(admin.create_topics([new])[new.topic]) == code
    assert new.topic not in admin.list_topics(timeout=60).topics


def test_topic_that_exists_is_not_created_again(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()

    future = admin.create_topics([NewTopic(topic, 1, 1)])[topic]

    assert error_of(future) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validation_alone_creates_nothing(admin: AdminClient, group: str) -> None:
    name = f"only-validated-{group}"

    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(90)

    assert name not in admin.list_topics(timeout=60).topics


def test_deleted_topic_is_gone_and_its_name_free_again(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    """A topic of the same name starts empty."""
    topic = make_topic()
    fill(bootstrap, topic, 3)

    admin.delete_topics([topic])[topic].result(90)
    assert topic not in admin.list_topics(timeout=60).topics
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(90)
    partition = TopicPartition(topic, 0)
    latest = admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(90)

    assert latest.offset == 0


def test_unknown_topic_cannot_be_deleted(admin: AdminClient, group: str) -> None:
    future = admin.delete_topics([f"absent-{group}"])[f"absent-{group}"]

    assert error_of(future) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_grow_and_never_shrink(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)

    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(90)
    shrink = error_of(admin.create_partitions([NewPartitions(topic, 3)])[topic])

    assert shrink == KafkaError.INVALID_PARTITIONS
    assert len(admin.list_topics(topic, timeout=60).topics[topic].partitions) == 4


def test_topic_config_says_where_each_value_comes_from(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    """What was set on the topic is dynamic; the rest are defaults (KIP-226)."""
    topic = make_topic(retention_ms="60000")

    entries = topic_config(admin, topic)

    assert entries["retention.ms"].value == "60000"
    assert ConfigSource(entries["retention.ms"].source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entries["cleanup.policy"].value == "delete"
    assert entries["cleanup.policy"].is_default
    assert "retention.ms" in entries["retention.ms"].synonyms


def test_config_is_set_appended_and_deleted_step_by_step(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    """Incremental changes touch only what they name (KIP-339)."""
    topic = make_topic(retention_ms="60000")

    def alter(name: str, value: str | None, operation: AlterConfigOpType) -> None:
        change = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        admin.incremental_alter_configs([resource])[resource].result(90)

    alter("segment.bytes", "2097152", AlterConfigOpType.SET)
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    after = topic_config(admin, topic)
    alter("segment.bytes", None, AlterConfigOpType.DELETE)
    restored = topic_config(admin, topic)

    assert after["segment.bytes"].value == "2097152"
    assert after["cleanup.policy"].value == "delete,compact"
    assert after["retention.ms"].value == "60000"
    assert restored["segment.bytes"].value == "1073741824"


def test_changed_config_holds_at_once(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    """A smaller max.message.bytes refuses the very next record (dynamic, no restart)."""
    topic = make_topic()
    change = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(90)

    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, b"x" * 5000, on_delivery=lambda e, m: errors.append(e))
    producer.flush(120)

    assert errors[0] is not None
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_bad_config_value_is_refused(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    change = ConfigEntry("segment.bytes", "many", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])

    future = admin.incremental_alter_configs([resource])[resource]

    assert error_of(future) == KafkaError.INVALID_CONFIG


def test_broker_config_is_described(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.BROKER, "1")

    entries = admin.describe_configs([resource])[resource].result(90)

    assert entries["log.retention.hours"].value == "168"
    assert ConfigSource(entries["log.dirs"].source) is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["log.dirs"].is_read_only


def test_deleted_records_are_no_longer_readable(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    """DeleteRecords moves the log's start, and only forward (KIP-107)."""
    topic = make_topic()
    fill(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0, 6)

    deleted = admin.delete_records([partition])[partition].result(90)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()
    beyond = TopicPartition(topic, 0, 99)

    assert deleted.low_watermark == 6
    assert (low, high) == (6, 10)
    assert error_of(admin.delete_records([beyond])[beyond]) == KafkaError.OFFSET_OUT_OF_RANGE


def test_offsets_are_listed_by_every_kind_of_time(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    """Earliest, latest, largest timestamp (KIP-734), and the first at or after a time."""
    topic = make_topic()
    fill(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(admin.list_offsets({partition: spec})[partition].result(90).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1_700_000_002_500)) == 3


def test_cluster_names_its_controller_and_brokers(admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(90)

    assert len(cluster.cluster_id) == 22
    assert cluster.controller.id == 1
    assert [n.id for n in cluster.nodes] == [1]


def test_group_is_listed_described_and_deleted(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """A group with members is stable and cannot be deleted; an empty one can."""
    topic = make_topic(partitions=2)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "lister",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline_s = time.monotonic() + 120
    while not consumer.assignment() and time.monotonic() < deadline_s:
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)

    described = admin.describe_consumer_groups([group])[group].result(90)
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(90).valid
    refused = error_of(admin.delete_consumer_groups([group])[group])
    consumer.close()
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(90).valid
    admin.delete_consumer_groups([group])[group].result(90)
    left = admin.list_consumer_groups().result(90).valid

    assert described.state is ConsumerGroupState.STABLE
    assert [m.client_id for m in described.members] == ["lister"]
    assert [tp.partition for tp in described.members[0].assignment.topic_partitions] == [0, 1]
    assert group in {g.group_id for g in stable}
    assert refused == KafkaError.NON_EMPTY_GROUP
    assert group in {g.group_id for g in empty}
    assert group not in {g.group_id for g in left}


def test_offsets_of_an_empty_group_are_set_from_outside(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Resetting a group is committing on its behalf while nobody is in it."""
    topic = make_topic(partitions=2)
    commit(bootstrap, group, TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 5))

    change = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
    admin.alter_consumer_group_offsets([change])[group].result(90)
    asked = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(90)

    assert {(tp.partition, tp.offset) for tp in found.topic_partitions} == {(0, 1), (1, 5)}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_told_to_be_disabled(node: Node, version: int) -> None:
    """Without an authorizer: to read, make and delete ACLs is answered, and refused, one by one."""
    anything = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    creation = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    with WireClient(node.port) as client:
        described = client.call(DescribeAclsRequest(**anything), version)
        created = client.call(CreateAclsRequest(creations=[creation] * 2), version)
        filters = [DeleteAclsFilter(**anything)] * 3
        deleted = client.call(DeleteAclsRequest(filters=filters), version)
    codes = [each.error_code for each in (described, *created.results, *deleted.filter_results)]
    assert codes == [ErrorCode.SECURITY_DISABLED] * 6
    assert described.error_message.startswith("No Authorizer is configured")
