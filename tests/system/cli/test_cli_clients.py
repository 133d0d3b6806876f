"""`ottla topic users`, `ottla topic unused`, `ottla why slow`: what brokers know of clients."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

import ottla.testing
from ottla.base.ids import TopicPartition as OffsetOf
from ottla.client import sync
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command


@pytest.fixture
def run(broker: ottla.testing.Broker) -> Iterator[Command]:
    return CommandHere(broker.bootstrap)


def write(bootstrap: str, topic: str, client_id: str, count: int = 1) -> None:
    """Write with librdkafka, one batch for each record, so that the fast path serves most."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id})
    for _ in range(count):
        producer.produce(topic, b"x" * 100)
        assert producer.flush(60) == 0


def test_a_member_of_a_share_group_reads_a_topic(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Else a topic that only share groups read would look unused."""
    topic = make_topic()
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "tasks"})
    consumer.subscribe([topic])
    # It begins at the end of the log.
    while not consumer.poll(1):
        write(broker.bootstrap, topic, "billing")
    answer = run("topic", "users", topic, "-o", "json").json
    (read,) = [one for one in answer["users"] if one["direction"] == "fetch"]
    consumer.close()
    assert read["size_bytes"] > 161


def test_the_users_of_a_topic_are_shown_for_any_client(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Direction, client id, principal, library with its version, bytes of all its batches."""
    topic = make_topic()
    write(broker.bootstrap, topic, "billing", 5)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "client.id": "audit",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(5, timeout=120)) == 5
    consumer.close()
    with sync.Producer(broker.bootstrap, client_id="ours") as producer:
        producer.send(topic, b"value").result()
    answer = run("topic", "users", topic, "-o", "json").json
    found = {(one["direction"], one["client_id"]): one for one in answer["users"]}
    assert set(found) == {("produce", "billing"), ("produce", "ours"), ("fetch", "audit")}
    written, read = found["produce", "billing"], found["fetch", "audit"]
    assert written["principal"] == "User:ANONYMOUS"
    assert written["library"].startswith("confluent-kafka-python 2.")
    # Each batch has a header of 61 bytes.
    assert found["produce", "ours"]["library"].startswith("ottla ")
    assert 5 * 161 < written["size_bytes"] < 5 * 200
    assert read["size_bytes"] == written["size_bytes"]
    shown = run("topic", "users", topic).out
    assert "billing" in shown
    assert "confluent-kafka-python" in shown
    assert "no topic" in run.refused("topic", "users", "absent")


def test_unused_topics_are_listed_only_if_they_were_watched_for_so_long(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A topic that was used is not, one that is not known for so long is named apart."""
    used, idle = make_topic(), make_topic()
    write(broker.bootstrap, used, "billing")
    answer = run("topic", "unused", "--for", "30d", "-o", "json").json
    assert idle in answer["not_known"]
    assert used not in answer["not_known"]
    assert answer["unused"] == []
    assert "not all brokers have watched" in run("topic", "unused", "--for", "30d").out


def test_uses_are_known_after_a_restart(tmp_path: Path) -> None:
    """From a file of the broker; the counters go on."""
    for restarts in range(2):
        with ottla.testing.Broker(storage=tmp_path / "data") as broker:
            if not restarts:
                broker.create_topic("t", 1)
            write(broker.bootstrap, "t", "billing", 2)
            run = CommandHere(broker.bootstrap)
            (row,) = run("topic", "users", "t", "-o", "json").json["users"]
            assert 161 * 2 * (restarts + 1) < row["size_bytes"]
            assert run("topic", "users", "t", "-o", "json").json["unknown_minute_before"] == {}


def test_the_failures_of_a_client_are_explained(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A fetch from where there is nothing, with the range of the log."""
    topic = make_topic()
    write(broker.bootstrap, topic, "w")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "client.id": "stuck",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 999)])
    failed = consumer.poll(120)
    assert failed is not None
    assert failed.error() is not None
    consumer.close()
    answer = run("why", "slow", "--client-id", "stuck", "-o", "json").json
    (failure,) = [one for one in answer["failures"] if one["api"] == "FETCH"]
    assert failure["place"] == [topic, 0]
    assert "cannot be read at 999 here: its log holds 0 to 1" in failure["detail"]
    assert f"{topic}-0" in run("why", "slow", "--client-id", "stuck").out
    assert "no broker noted" in run("why", "slow", "--client-id", "other").out


def test_a_deleted_offset_says_what_deleted_it(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A request with its principal, retention with its setting and the timestamp; or nothing."""
    topic = make_topic(internal_segment_bytes="100")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for age_days in (0, 30, 30, 0):
        at_ms = 0 if not age_days else round(time.time() * 1000) - age_days * 86_400_000
        producer.produce(topic, b"x" * 20, timestamp=at_ms)
        assert producer.flush(60) == 0
    run("topic", "delete-records", f"{topic}-0", "--before", "1", "--yes")
    # The first pass deletes what lies below the log's start, which protects what comes after it.
    broker.apply_retention()
    broker.apply_retention()
    told = {
        offset: run("why", "deleted", f"{topic}-0", "--offset", str(offset), "-o", "json").json
        for offset in (0, 1, 3, 9)
    }
    assert [one["fate"] for one in told.values()] == ["deleted", "deleted", "data", "absent"]
    assert "User:ANONYMOUS asked for it (DeleteRecords)" in told[0]["evidence"]
    assert "decided by retention.ms=604800000" in told[1]["evidence"]
    assert any("its timestamp was already 30 days old" in line for line in told[1]["evidence"])
    assert "the topic was created at" in told[9]["evidence"][1]
    assert "it was deleted" in run("why", "deleted", f"{topic}-0", "--offset", "1").out


def test_retention_counts_from_arrival_if_the_topic_says_so(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A record with an old timestamp stays; `why retention` names the setting."""
    topic = make_topic(internal_segment_bytes="100", ottla_retention_by="append")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(3):
        producer.produce(topic, b"x" * 20, timestamp=1)
        assert producer.flush(60) == 0
    broker.apply_retention()
    answer = run("why", "retention", f"{topic}-0", "-o", "json").json
    assert answer["log_start_offset"] == 0
    assert answer["setting"] == "retention.ms=604800000, ottla.retention.by=append"
    assert "ottla.retention.by" in run.refused(
        "config", "set", "topic", topic, "ottla.retention.by=arrival"
    )
    run("config", "set", "topic", topic, "ottla.retention.by=timestamp")
    broker.apply_retention()
    assert run("why", "retention", f"{topic}-0", "-o", "json").json["log_start_offset"] > 0


def test_a_transaction_is_listed_with_the_groups_that_wait_for_it(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """And the group says so, with the command that ends it."""
    topic = make_topic()
    write(broker.bootstrap, topic, "w")
    with sync.Admin(broker.bootstrap) as admin:
        admin.groups.set_offsets("waits", {OffsetOf(topic, 0): 1})
        admin.groups.set_offsets("reads", {OffsetOf(topic, 0): 0})
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(120) == 0
    (row,) = run("txn", "list", "--blocking", "-o", "json").json
    assert (row["partition"], row["start_offset"], row["held_back"]) == (f"{topic}-0", 1, 1)
    assert (row["transactional_id"], row["groups"]) == (topic, ["waits"])
    assert row["remedy"].endswith(f"`ottla txn abort {topic}`")
    troubles = run("group", "why", "waits", "-o", "json").json["troubles"]
    assert any(f"a transaction in {topic}-0" in one["what"] for one in troubles)
    run("txn", "abort", topic)
    assert run("txn", "list", "--blocking", "-o", "json").json == []
    del producer


def test_what_is_wrong_with_a_group_is_said_first_of_all(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A member of another client that fetches where there is nothing, and what helps."""
    topic = make_topic()
    write(broker.bootstrap, topic, "w")
    with sync.Admin(broker.bootstrap) as admin:
        admin.groups.set_offsets("broken", {OffsetOf(topic, 0): 999})
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "broken",
            "client.id": "lost",
            "auto.offset.reset": "error",
        }
    )
    consumer.subscribe([topic])
    failed = consumer.poll(120)
    assert failed is not None
    assert failed.error() is not None
    answer = run("group", "why", "broken", "-o", "json").json
    said = [one["what"] for one in answer["troubles"]]
    assert any("999 of" in one and "beyond the end" in one for one in said)
    (stuck,) = [one for one in answer["troubles"] if one["what"].startswith("client lost: FETCH")]
    assert "OFFSET_OUT_OF_RANGE" in stuck["what"]
    assert "ottla group reset broken --to-earliest" in stuck["remedy"]
    assert "lag" in run("group", "why", "broken").out
    consumer.close()
    assert "no group" in run.refused("group", "why", "absent")
