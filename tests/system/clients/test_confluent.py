"""librdkafka through confluent-kafka, unmodified: producing and consuming."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from rig.consumer import read

MakeTopic = Callable[..., str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def consumer_of(bootstrap: str, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 500,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def produce_all(
    bootstrap: str, topic: str, values: list[bytes], **settings: object
) -> list[Message]:
    """Produce to partition 0 and give the delivered messages in order."""
    delivered: list[Message] = []
    errors: list[KafkaError] = []

    def told(error: KafkaError | None, message: Message) -> None:
        (errors if error else delivered).append(error or message)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=told)
    assert producer.flush(120) == 0
    assert errors == []
    return delivered


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent_with_every_codec(
    bootstrap: str, make_topic: MakeTopic, group: str, codec: str
) -> None:
    """Key, value, headers and timestamp survive, whatever compresses the batch (P2, P8)."""
    topic = make_topic()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 50,
            "log_level": 0,
        }
    )
    for index in range(500):
        producer.produce(
            topic,
            key=f"key-{index}".encode(),
            value=f"value-{index}".encode() * 10,
            headers=[("number", str(index).encode()), ("empty", None)],
            timestamp=1_700_000_000_000 + index,
        )
    assert producer.flush(120) == 0

    consumer = consumer_of(bootstrap, group)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = read(consumer, 500)
    consumer.close()

    assert [m.offset() for m in messages] == list(range(500))
    assert messages[7].key() == b"key-7"
    assert messages[7].value() == b"value-7" * 10
    assert messages[7].headers() == [("number", b"7"), ("empty", None)]
    assert [m.timestamp()[1] for m in messages] == [1_700_000_000_000 + i for i in range(500)]


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_records_without_a_key_are_refused_by_a_compacted_topic(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    """Nothing could ever replace them; also where a codec hides them. Others are stored."""
    topic = make_topic(cleanup_policy="compact")
    outcomes: dict[bytes | None, int] = {}

    def told(error: KafkaError | None, message: Message) -> None:
        outcomes[message.value()] = error.code() if error else message.offset()

    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "log_level": 0}
    producer = Producer(settings)
    for key, value in ((b"k", b"a"), (None, b"no key" * 100), (b"", b"empty key")):
        producer.produce(topic, key=key, value=value, partition=0, on_delivery=told)
        assert producer.flush(120) == 0

    assert outcomes == {b"a": 0, b"no key" * 100: KafkaError.INVALID_RECORD, b"empty key": 1}


def test_null_key_and_null_value_stay_null(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """A tombstone is not an empty value."""
    topic = make_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, key=b"k", value=None)
    producer.produce(topic, key=None, value=b"")
    assert producer.flush(120) == 0

    consumer = consumer_of(bootstrap, group)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = read(consumer, 2)
    consumer.close()

    assert [(m.key(), m.value()) for m in messages] == [(b"k", None), (None, b"")]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acknowledgement_level_stores_the_records(
    bootstrap: str, make_topic: MakeTopic, group: str, acks: str
) -> None:
    """acks decides when the producer is told, not whether the record is kept (P8)."""
    topic = make_topic()
    produce_all(bootstrap, topic, [b"%d" % i for i in range(100)], acks=acks)

    consumer = consumer_of(bootstrap, group)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = read(consumer, 100)
    consumer.close()

    assert [m.value() for m in messages] == [b"%d" % i for i in range(100)]


def test_delivery_reports_the_offset_of_each_record(bootstrap: str, make_topic: MakeTopic) -> None:
    """The acknowledgement names the base offset, so that the client knows each record's."""
    topic = make_topic()

    first = produce_all(bootstrap, topic, [b"a", b"b", b"c"], acks="all")
    second = produce_all(bootstrap, topic, [b"d"], acks="all")

    assert [m.offset() for m in first] == [0, 1, 2]
    assert [m.offset() for m in second] == [3]


def test_idempotent_producer_is_served(bootstrap: str, make_topic: MakeTopic) -> None:
    """enable.idempotence gets a producer id and its sequences are accepted in order."""
    topic = make_topic()

    delivered = produce_all(bootstrap, topic, [b"x"] * 2000, enable_idempotence=True, linger_ms=0)

    assert [m.offset() for m in delivered] == list(range(2000))


def test_record_larger_than_the_topic_allows_is_refused_with_its_name(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    """max.message.bytes answers MESSAGE_TOO_LARGE and the connection goes on."""
    topic = make_topic(max_message_bytes="10000")
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    producer.produce(topic, b"x" * 20_000, on_delivery=lambda e, m: errors.append(e))
    producer.flush(120)
    producer.produce(topic, b"x", on_delivery=lambda e, m: errors.append(e))
    producer.flush(120)

    assert errors[0] is not None
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert errors[1] is None


def test_batch_larger_than_a_fetch_allows_is_still_delivered(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """At least one whole batch comes, however small the fetch (KIP-74)."""
    topic = make_topic()
    produce_all(bootstrap, topic, [b"x" * 500_000])

    consumer = consumer_of(
        bootstrap, group, fetch_max_bytes=1024, max_partition_fetch_bytes=1024,
        message_max_bytes=1000,
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    (message,) = read(consumer, 1)
    consumer.close()

    assert len(message.value()) == 500_000


def test_offsets_are_found_by_time(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    """The earliest offset whose timestamp is not below the asked one; the end when none is."""
    topic = make_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    for index in range(10):
        producer.produce(topic, b"v", timestamp=1_700_000_000_000 + 1000 * index)
        assert producer.flush(120) == 0

    consumer = consumer_of(bootstrap, group)
    asked = [1_700_000_000_000, 1_700_000_003_500, 1_700_000_009_000, 1_700_000_099_000]
    found = [
        consumer.offsets_for_times([TopicPartition(topic, 0, when)], timeout=60)[0].offset
        for when in asked
    ]
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()

    assert found == [0, 4, 9, -1]
    assert (low, high) == (0, 10)


def test_seek_rewinds_to_an_old_offset(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    """A consumer may go back and read again what it has read (P11)."""
    topic = make_topic()
    produce_all(bootstrap, topic, [b"%d" % i for i in range(20)])

    consumer = consumer_of(bootstrap, group)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    read(consumer, 20)
    consumer.seek(TopicPartition(topic, 0, 5))
    messages = read(consumer, 15)
    consumer.close()

    assert [m.offset() for m in messages] == list(range(5, 20))


def test_unknown_topic_is_named_as_such_when_nothing_is_created_on_demand(
    bootstrap: str, group: str
) -> None:
    """A consumer that may not create topics hears UNKNOWN_TOPIC_OR_PART."""
    consumer = consumer_of(bootstrap, group, allow_auto_create_topics=False)
    consumer.subscribe([f"absent-{group}"])

    deadline_s = time.monotonic() + 120
    codes: set[int] = set()
    while KafkaError.UNKNOWN_TOPIC_OR_PART not in codes and time.monotonic() < deadline_s:
        if (message := consumer.poll(1)) is not None:
            assert message.error() is not None
            codes.add(message.error().code())
    consumer.close()

    assert KafkaError.UNKNOWN_TOPIC_OR_PART in codes


def test_topic_is_created_by_the_first_record(bootstrap: str, group: str) -> None:
    """auto.create.topics.enable is on by default: a producer needs no other step."""
    delivered = produce_all(bootstrap, f"on-demand-{group}", [b"first"])

    assert [m.offset() for m in delivered] == [0]
