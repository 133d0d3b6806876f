"""`ottla dlq`: letters of share groups' topics and of tables, each redriven once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
import ottla.testing
from ottla.client.sync import Consumer, Producer
from ottla.lake import Decode, Format, run_here
from ottla.lake.model.decode_spec import columns
from ottla.record.dead_letters import DeadLetter, letter_headers
from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


def letter(topic: str, offset: int, **more: Any) -> DeadLetter:
    return DeadLetter(topic, 0, offset, "workers", "Offset rejected by client.", **more)


def records(bootstrap: str, topic: str, count: int) -> list[Any]:
    """The first `count` records of a topic's partition 0, read committed."""
    from ottla.client import TopicPartition

    found: list[Any] = []
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(found) < count:
            found += consumer.poll(1)
    return found


@pytest.fixture
def letters(broker: ottla.testing.Broker, make_topic: MakeTopic) -> tuple[str, str]:
    """A topic of work and one of its three dead letters: one with its record, two without."""
    work, dead = make_topic(), make_topic(partitions=2)
    with Producer(broker.bootstrap) as producer:
        for number in range(3):
            producer.send(work, b"v%d" % number, b"k", partition=0, headers=[("own", b"1")])
    with Producer(broker.bootstrap) as producer:
        producer.send(
            dead,
            b"v0",
            b"k",
            partition=0,
            headers=[("own", b"1"), *letter_headers(letter(work, 0))],
        )
        producer.send(dead, None, partition=1, headers=letter_headers(letter(work, 1)))
        producer.send(dead, None, partition=1, headers=letter_headers(letter(work, 99)))
    return work, dead


def listed(run: Command, source: str, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("dlq", "list", source, "-o", "json", *options).json
    return found


def test_letters_are_redriven_once_with_their_marks(
    run: Command, broker: ottla.testing.Broker, letters: tuple[str, str]
) -> None:
    """A bare letter's record is looked up, one that is gone is named; twice is refused."""
    work, dead = letters
    assert [(one["offset"], one["state"]) for one in listed(run, dead)] == [
        (0, "dead"),
        (1, "dead"),
        (99, "dead"),
    ]
    done = run("dlq", "redrive", dead, "--yes", "-o", "json").json
    assert done == {"sent": 2, "skipped": 0, "gone": 1}
    again = records(broker.bootstrap, work, 5)[3:]
    assert [(one.key, one.value) for one in again] == [(b"k", b"v0"), (b"k", b"v1")]
    assert [dict(one.headers)["own"] for one in again] == [b"1", b"1"]
    assert dict(again[0].headers)["__dlq.redriven.from"] == f"{dead}-0@0".encode()
    assert [(one["offset"], one["state"]) for one in listed(run, dead)] == [
        (0, "redriven"),
        (1, "redriven"),
        (99, "dead"),
    ]
    refused = run.refused("dlq", "redrive", dead, "--yes", "--offset", "0")
    assert "redriven before; send them once more with --again" in refused
    done = run("dlq", "redrive", dead, "--yes", "--again", "--offset", "0", "-o", "json").json
    assert done["sent"] == 1
    assert len(records(broker.bootstrap, work, 6)) == 6


def test_a_letter_is_shown_with_its_record(run: Command, letters: tuple[str, str]) -> None:
    """Key, value and the record's own headers; without the letter's."""
    work, dead = letters
    shown = run("dlq", "show", dead, "--offset", "0", "-o", "json").json
    assert (shown["record"], shown["value"], shown["headers"]) == (
        f"{work}-0@0",
        "v0",
        {"own": "1"},
    )
    assert shown["stage"] == "delivery"
    missing = run.refused("dlq", "show", dead, "--offset", "7")
    assert "no such dead letter" in missing
    summary = listed(run, dead, "--summary")
    assert [(one["letters"], one["redriven"]) for one in summary] == [(3, 0)]


def test_letters_of_a_table_are_redriven_into_another_topic(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """And stay marked in the table; verify takes no offence at the marks."""
    topic, mended = make_topic(), make_topic()
    with Producer(broker.bootstrap) as producer:
        for value in (b'{"id":1}', b"bad", b'{"id":"x"}'):
            producer.send(topic, value, b"k", partition=0)
    how = Format("json", columns({"id": "int64"}))
    ottla.lake.load(
        topic,
        str(tmp_path),
        bootstrap=broker.bootstrap,
        runner=run_here,
        decode=Decode(value=how, on_bad_record="dead-letter"),
    )
    assert [(one["offset"], one["stage"]) for one in listed(run, str(tmp_path))] == [
        (1, "decode.value"),
        (2, "schema"),
    ]
    run("dlq", "redrive", str(tmp_path), "--stage", "schema", "--to", mended, "--yes")
    (sent,) = records(broker.bootstrap, mended, 1)
    assert (sent.key, sent.value) == (b"k", b'{"id":"x"}')
    assert [one["state"] for one in listed(run, str(tmp_path))] == ["dead", "redriven"]
    refused = run.refused("dlq", "redrive", str(tmp_path), "--stage", "schema", "--yes")
    assert "--again" in refused
    assert ottla.lake.verify(str(tmp_path), bootstrap=broker.bootstrap).problems == []


def test_a_dry_run_says_what_a_load_would_refuse(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """With the places of such records, and changes of a table's columns; nothing is written."""
    topic = make_topic()
    with Producer(broker.bootstrap) as producer:
        for value in (b'{"id":1}', b"bad", b'{"id":2,"tag":"t"}', b"bad"):
            producer.send(topic, value, partition=0)
    done = run.try_to("lake", "try-schema", topic, "--value", "json", "-o", "json")
    assert done.code == 3
    answer = done.json
    assert (answer["records"], answer["decoded"]) == (4, 2)
    assert sorted((one["column"], one["type"]) for one in answer["columns"]) == [
        ("id", "int64"),
        ("tag", "string"),
    ]
    (refused,) = answer["refused"]
    assert (refused["records"], refused["such as"]) == (2, f"{topic}-0@1, {topic}-0@3")
    ottla.lake.load(
        topic,
        str(tmp_path),
        bootstrap=broker.bootstrap,
        runner=run_here,
        end="0:1",
        decode=Decode(value=Format("json"), on_bad_record="dead-letter"),
    )
    tried = ottla.lake.try_schema(topic, bootstrap=broker.bootstrap, target=str(tmp_path), last=2)
    assert [(one.what, dict(one.offsets)) for one in tried.changes] == [("add tag string", {0: 2})]
