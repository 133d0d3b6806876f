"""kafka-python, unmodified: produce with every codec, consume, groups, admin, offsets by time."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from tests.integration.groups.members import KafkaPython, settle

MakeTopic = Callable[..., str]
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def client(bootstrap: str) -> Iterator[KafkaAdminClient]:
    found = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield found
    found.close()


def produce(bootstrap: str, topic: str, count: int, **settings: object) -> list[int]:
    """Produce to partition 0 and give the offsets in order."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    futures = [
        producer.send(
            topic,
            key=b"k%d" % i,
            value=b"v%d" % i * 20,
            headers=[("n", b"%d" % i)],
            partition=0,
            timestamp_ms=1_700_000_000_000 + 1000 * i,
        )
        for i in range(count)
    ]
    producer.flush(120)
    offsets = [future.get(120).offset for future in futures]
    producer.close()
    return offsets


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent_with_every_codec(
    bootstrap: str, make_topic: MakeTopic, codec: str | None
) -> None:
    """Key, value, headers and timestamp survive."""
    topic = make_topic()

    offsets = produce(bootstrap, topic, 200, compression_type=codec, linger_ms=20)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=120_000)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    records = list(itertools.islice(consumer, 200))
    consumer.close()

    assert offsets == list(range(200))
    assert [r.value for r in records] == [b"v%d" % i * 20 for i in range(200)]
    assert records[3].key == b"k3"
    assert list(records[3].headers) == [("n", b"3")]
    assert records[3].timestamp == 1_700_000_003_000


def test_idempotent_producer_is_served(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()

    offsets = produce(bootstrap, topic, 300, enable_idempotence=True)

    assert offsets == list(range(300))


def test_offsets_are_found_by_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(bootstrap, topic, 10, linger_ms=0)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)

    found = consumer.offsets_for_times({partition: 1_700_000_004_500})
    beyond = consumer.offsets_for_times({partition: 1_800_000_000_000})
    ends = consumer.end_offsets([partition]), consumer.beginning_offsets([partition])
    consumer.close()

    assert found[partition].offset == 5
    assert beyond[partition] is None
    assert ends == ({partition: 10}, {partition: 0})


def test_group_resumes_at_its_committed_offset(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)

    def member() -> KafkaConsumer:
        return KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=120_000,
        )

    first = member()
    assert next(first).offset == 0
    first.commit({partition: OffsetAndMetadata(7, "seven", -1)})
    first.close()
    second = member()
    resumed = next(second).offset
    committed = second.committed(partition)
    second.close()

    assert resumed == 7
    assert committed == 7


def test_partitions_are_shared_between_two_members(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """The second member's arrival makes the first give half away; its leaving gives them back."""
    topic = make_topic(partitions=4)

    first = KafkaPython(bootstrap, group, topic)
    settle([first], [4])
    second = KafkaPython(bootstrap, group, topic)
    settle([first, second], [2, 2])
    second.close()
    settle([first], [4])
    first.close()


def test_topics_are_created_grown_and_deleted(client: KafkaAdminClient, group: str) -> None:
    topic = f"kp-{group}"

    client.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    with pytest.raises(TopicAlreadyExistsError):
        client.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    client.create_partitions({topic: NewPartitions(total_count=3)})
    (described,) = client.describe_topics([topic])
    client.delete_topics([topic])

    assert len(described["partitions"]) == 3
    assert topic not in client.list_topics()


def test_config_is_described(client: KafkaAdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms="1234")

    described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])

    assert "1234" in str(described)


def test_groups_are_listed_with_their_offsets(
    client: KafkaAdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(3, "", -1)})
    consumer.close()

    listed = client.list_groups()
    offsets = client.list_group_offsets(group)

    assert group in str(listed)
    assert "3" in str(offsets)
