"""Records that no member of a share group accepted, copied to a dead-letter topic (KIP-1191)."""

import time

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from rig.consumer import read, records_among

from tests.system.clients.conftest import MakeTopic, unique
from tests.system.clients.test_share_consumers import configure, member, poll_until, produce

ACCEPT, RELEASE, REJECT = 1, 2, 3
EXPLICIT = {"share_acknowledgement_mode": "explicit"}


def letters(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """So many records of a topic, and more if there are; in the order of partitions and offsets.

    A letter that was written twice counts once: whoever does not know whether it was writes again.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": unique("reader"), "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: dict[str, Message] = {}
    try:
        while len(found) < count:
            for each in read(consumer, 1):
                found.setdefault(context(each)["offset"], each)
        for each in records_among(consumer.consume(1, 0.5)):
            found.setdefault(context(each)["offset"], each)
    finally:
        consumer.close()
    return sorted(found.values(), key=lambda each: (each.partition(), each.offset()))


def context(letter: Message) -> dict[str, str]:
    """What its headers tell, by the ends of their names."""
    return {
        name.removeprefix("__dlq.errors."): value.decode()
        for name, value in letter.headers() or ()
        if name.startswith("__dlq.errors.")
    }


@pytest.fixture
def dead(make_topic: MakeTopic, admin: AdminClient) -> str:
    """A topic that is open for dead letters; it has two partitions."""
    name = unique("dlq.letters")
    config = {"errors.deadletterqueue.group.enable": "true"}
    admin.create_topics([NewTopic(name, 2, 1, config=config)])[name].result(120)
    return name


@pytest.fixture
def group(admin: AdminClient, dead: str) -> str:
    """A group that begins at the log's start and writes dead letters."""
    name = unique("share")
    configure(
        admin,
        name,
        share_auto_offset_reset="earliest",
        share_delivery_count_limit="2",
        errors_deadletterqueue_topic_name=dead,
    )
    return name


def test_rejected_records_and_those_given_out_too_often_leave_letters(
    bootstrap: str, make_topic: MakeTopic, group: str, dead: str
) -> None:
    """One each, with where it stood, how often it was given out and why; accepted ones none."""
    topic = make_topic(1)
    produce(bootstrap, topic, 6)
    with member(bootstrap, group, topic, **EXPLICIT) as consumer:
        for each in poll_until(consumer, 6):
            kind = (ACCEPT, RELEASE, REJECT)[each.offset() % 3]
            consumer.acknowledge(each, kind)
        consumer.commit_sync(30)
        for each in poll_until(consumer, 2):
            consumer.acknowledge(each, RELEASE)
        consumer.commit_sync(30)
        found = letters(bootstrap, dead, 4, 2)
    rejected = "Offset rejected by client."
    exhausted = "Offset delivery count exceeded the threshold."
    assert {each.partition() for each in found} == {0}
    assert [(each.key(), each.value()) for each in found] == [(None, None)] * 4
    told = sorted((context(each) for each in found), key=lambda each: int(each["offset"]))
    assert told == [
        {
            "topic": topic,
            "partition": "0",
            "offset": offset,
            "group": group,
            "delivery.count": count,
            "message": why,
        }
        for offset, count, why in (
            ("1", "2", exhausted),
            ("2", "1", rejected),
            ("4", "2", exhausted),
            ("5", "1", rejected),
        )
    ]


def test_letters_hold_their_records_where_the_group_wants_it(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str, dead: str
) -> None:
    """Key, value and headers, also of compressed batches; partition 3 goes to 1 of 2."""
    configure(admin, group, errors_deadletterqueue_copy_record_enable="true")
    topic = make_topic(4)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 50}
    )
    for number in range(20):
        producer.produce(
            topic, b"value %d" % number, b"key", partition=3, headers=[("h", b"%d" % number)]
        )
    assert producer.flush(120) == 0
    with member(bootstrap, group, topic, **EXPLICIT) as consumer:
        for each in poll_until(consumer, 20):
            consumer.acknowledge(each, REJECT)
        consumer.commit_sync(30)
        found = letters(bootstrap, dead, 20, 2)
    assert {each.partition() for each in found} == {1}
    assert [(each.key(), each.value()) for each in found] == [
        (b"key", b"value %d" % number) for number in range(20)
    ]
    assert [dict(each.headers() or ())["h"] for each in found] == [b"%d" % n for n in range(20)]
    assert [context(each)["offset"] for each in found] == [str(n) for n in range(20)]


def test_a_topic_is_made_for_letters_where_the_brokers_may_do_that(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """errors.deadletterqueue.auto.create.topics.enable, with what such a topic needs."""
    name = unique("dlq.made")
    configure(admin, group, errors_deadletterqueue_topic_name=name)
    topic = make_topic(1)
    set_for_brokers(admin, "errors.deadletterqueue.auto.create.topics.enable", "true")
    try:
        produce(bootstrap, topic, 1)
        with member(bootstrap, group, topic, **EXPLICIT) as consumer:
            (record,) = poll_until(consumer, 1)
            consumer.acknowledge(record, REJECT)
            consumer.commit_sync(30)
            (letter,) = until_made(bootstrap, admin, name)
    finally:
        set_for_brokers(admin, "errors.deadletterqueue.auto.create.topics.enable", "false")
    assert context(letter)["offset"] == "0"
    resource = ConfigResource(ResourceType.TOPIC, name)
    configs = admin.describe_configs([resource])[resource].result(120)
    assert configs["errors.deadletterqueue.group.enable"].value == "true"


def test_a_group_without_a_topic_to_write_to_goes_on(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """What it rejects is done with; the log tells that no letter was left."""
    configure(admin, group, errors_deadletterqueue_topic_name=unique("dlq.nowhere"))
    topic = make_topic(1)
    produce(bootstrap, topic, 3)
    with member(bootstrap, group, topic, **EXPLICIT) as consumer:
        for each in poll_until(consumer, 3):
            consumer.acknowledge(each, REJECT)
        consumer.commit_sync(30)
        produce(bootstrap, topic, 1, since=3)
        (following,) = poll_until(consumer, 1)
        consumer.acknowledge(following)
        consumer.commit_sync(30)
    assert following.value() == b"3"


@pytest.mark.parametrize("name", ["__internal", "letters", "dlq.a b"])
def test_names_that_cannot_be_are_refused_when_they_are_set(
    admin: AdminClient, group: str, name: str
) -> None:
    """Internal ones, those without the brokers' prefix, and such as no topic has."""
    with pytest.raises(KafkaException) as raised:
        configure(admin, group, errors_deadletterqueue_topic_name=name)
    assert raised.value.args[0].code() == KafkaError.INVALID_CONFIG


def set_for_brokers(admin: AdminClient, name: str, value: str) -> None:
    """Change a setting of all brokers."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    for broker in admin.list_topics(timeout=120).brokers:
        resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(120)


def until_made(bootstrap: str, admin: AdminClient, name: str) -> list[Message]:
    """The first letter of a topic that does not exist yet."""
    deadline_s = time.monotonic() + 120
    while name not in admin.list_topics(timeout=120).topics:
        assert time.monotonic() < deadline_s, f"{name} is not made"
        time.sleep(0.1)
    return letters(bootstrap, name, 1)
