"""`ottla txn` and `ottla why lso`: what is open, what holds readers back, and ending it."""

from collections.abc import Callable

from confluent_kafka import Producer

import ottla.testing
from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]
PATIENCE_S = 120


def begun(broker: ottla.testing.Broker, topic: str) -> Producer:
    """A producer under the topic's name with a record in an open transaction."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def test_an_open_transaction_is_listed_and_described(
    broker: ottla.testing.Broker, run: Command, make_topic: MakeTopic
) -> None:
    """By its state and its partitions; committed it is listed as that."""
    topic = make_topic(partitions=2)
    producer = begun(broker, topic)
    assert [topic] == [
        each["transactional_id"]
        for each in run("txn", "list", "--state", "Ongoing", "-o", "json").json
    ]
    described = run("txn", "describe", topic, "-o", "json").json
    assert (described["state"], described["partitions"]) == ("Ongoing", [f"{topic}-0"])
    producer.commit_transaction(PATIENCE_S)
    assert run("txn", "list", "--state", "Ongoing", "-o", "json").json == []
    assert topic in "\n".join(run("txn", "list").lines)
    assert "no state Sleeping" in run.refused("txn", "list", "--state", "Sleeping")


def test_what_holds_readers_back_is_told_and_can_be_aborted(
    broker: ottla.testing.Broker, run: Command, make_topic: MakeTopic
) -> None:
    """By the id; and the partition says that nothing is open then."""
    topic = make_topic()
    producer = begun(broker, topic)
    told = run("why", "lso", f"{topic}-0", "-o", "json").json
    assert (told["last_stable_offset"], told["high_watermark"]) == (0, 1)
    (opened,) = told["open"]
    assert (opened["start_offset"], opened["transaction"]["transactional_id"]) == (0, topic)
    said = "\n".join(run("why", "lso", f"{topic}-0").lines)
    assert "1 offsets wait" in said
    assert f"ottla txn abort {topic}" in said
    refused = run.refused("txn", "abort", "--partition", f"{topic}-0", "--start-offset", "0")
    assert "its coordinator will end" in refused
    assert run("txn", "hanging", "--topic", topic, "-o", "json").json == []

    run("txn", "abort", topic)

    broker_says = run("why", "lso", f"{topic}-0", "-o", "json").json
    assert broker_says["open"] == []
    assert broker_says["last_stable_offset"] == broker_says["high_watermark"] == 2
    del producer


def test_what_does_not_exist_is_told(run: Command, make_topic: MakeTopic) -> None:
    """An id, and a transaction in a partition."""
    assert "no transactional id" in run.refused("txn", "describe", "nobody")
    assert "TRANSACTIONAL_ID_NOT_FOUND" in run.refused("txn", "abort", "nobody")
    where = ("--partition", f"{make_topic()}-0", "--start-offset", "7")
    assert "no open transaction begins" in run.refused("txn", "abort", *where)
