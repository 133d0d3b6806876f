"""`ottla log ledger`: what became of each offset, on topics that real clients have written."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

import ottla.testing
from ottla.base.ids import TopicPartition
from ottla.client import sync
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command

TERMS = ("data", "control", "aborted", "undecided", "compacted", "deleted", "lost", "unexplained")


@pytest.fixture
def run(broker: ottla.testing.Broker) -> Command:
    return CommandHere(broker.bootstrap)


def write(broker: ottla.testing.Broker, topic: str, count: int, keys: int = 3) -> None:
    """One record in each batch."""
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"value%d" % number, key=b"key%d" % (number % keys), partition=0)
            producer.flush()


def terms(run: Command, topic: str, *words: str) -> dict[str, int]:
    """The terms of the account that are not 0; they add up to the range."""
    answer = run("log", "ledger", f"{topic}-0", "-o", "json", *words).json
    assert sum(answer[term] for term in TERMS) == answer["end"] - answer["start"]
    return {term: answer[term] for term in TERMS if answer[term]}


def test_a_plain_topic_is_all_data(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Any range of it."""
    topic = make_topic()
    write(broker, topic, 20)
    assert terms(run, topic) == {"data": 20}
    assert terms(run, topic, "--from", "5", "--to", "12") == {"data": 7}
    assert "unexplained        0" in run("log", "ledger", f"{topic}-0").out


def test_a_transactional_topic_has_markers_and_aborted_records(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """And records of a transaction that is not decided, as long as it is not."""
    topic = make_topic()
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-t", "linger.ms": 0}
    )
    producer.init_transactions(60)
    for number, outcome in enumerate(("commit", "abort", "commit", "")):
        producer.begin_transaction()
        for _ in range(number + 1):
            producer.produce(topic, b"value", partition=0)
        assert producer.flush(60) == 0
        if outcome == "commit":
            producer.commit_transaction(60)
        elif outcome:
            producer.abort_transaction(60)
    assert terms(run, topic) == {"data": 4, "aborted": 2, "control": 3, "undecided": 4}
    producer.abort_transaction(60)
    assert terms(run, topic) == {"data": 4, "aborted": 6, "control": 4}


def test_a_compacted_topic_tells_which_pass_took_what(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Two passes, each with its own count."""
    topic = make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    write(broker, topic, 30)
    run("topic", "compact", topic, "--now", "--wait")
    assert terms(run, topic) == {"data": 3, "compacted": 27}
    write(broker, topic, 6)
    run("topic", "compact", topic, "--now", "--wait")
    answer = run("log", "ledger", f"{topic}-0", "-o", "json").json
    assert [(one["number"], one["count"]) for one in answer["compacted_by"]] == [(1, 27), (2, 6)]
    assert (answer["data"], answer["compacted"], answer["unexplained"]) == (3, 33, 0)
    shown = run("log", "ledger", f"{topic}-0").out
    assert "pass 1" in shown
    assert "pass 2" in shown
    assert terms(run, topic, "--from", "3", "--to", "28")["compacted"] >= 24


def test_deleted_records_and_retention_are_told_apart(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Each by its cause, also when the segments are gone."""
    topic = make_topic(retention_bytes="100", internal_segment_bytes="300")
    write(broker, topic, 20)
    with sync.Admin(broker.bootstrap) as admin:
        admin.logs.delete_records({TopicPartition(topic, 0): 4})
    broker.apply_retention()
    answer = run("log", "ledger", f"{topic}-0", "-o", "json").json
    assert answer["unexplained"] == 0
    causes = {name: n for one in answer["deleted_by"] for name, n in one["counts"].items()}
    assert causes == {"delete_records": 4, "retention_bytes": answer["log_start_offset"] - 4}
    assert answer["log_start_offset"] > 4
    assert "retention.bytes" in run("log", "ledger", f"{topic}-0").out


def test_what_was_never_written_is_refused(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A range must lie in what the log ever held; a name must be one of a partition."""
    topic = make_topic()
    write(broker, topic, 3)
    assert "where the log ends" in run.refused("log", "ledger", f"{topic}-0", "--to", "4")
    assert "where the log ends" in run.refused(
        "log", "ledger", f"{topic}-0", "--from", "3", "--to", "2"
    )
    assert "there is no topic" in run.refused("log", "ledger", "nowhere-0")
    assert "has partitions 0 to 0, not 1" in run.refused("log", "ledger", f"{topic}-1")
    assert "is no partition" in run.misused("log", "ledger", "nowhere")
