"""Kafka's VerifiableProducer and VerifiableConsumer, each a process of its own."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from rig import kafka as kafka_rig
from rig.tools import VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER, command

MakeTopic = Callable[..., str]
pytestmark = pytest.mark.skipif(
    kafka_rig.available() is not None, reason=kafka_rig.available() or ""
)


def events(tool: str, *arguments: object) -> list[dict[str, Any]]:
    """Run a tool to its end and give the events it told, one of each line."""
    done = subprocess.run(
        command(tool, *arguments), check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def named(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in found if event["name"] == name]


def test_every_record_that_was_acknowledged_is_consumed_once(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """What the producer was promised is what the consumer's group gets, offset by offset."""
    topic = make_topic(partitions=3)
    where = ("--bootstrap-server", bootstrap, "--topic", topic)

    produced = events(VERIFIABLE_PRODUCER, *where, "--max-messages", 5000, "--acks", -1)
    consumed = events(
        VERIFIABLE_CONSUMER,
        *where,
        *("--group-id", group, "--max-messages", 5000, "--reset-policy", "earliest"),
        "--verbose",
    )

    sent = {
        (event["partition"], event["offset"]): event["value"]
        for event in named(produced, "producer_send_success")
    }
    got = [
        ((event["partition"], event["offset"]), event["value"])
        for event in named(consumed, "record_data")
    ]
    assert named(produced, "producer_send_error") == []
    assert len(sent) == 5000
    assert sorted(got) == sorted(sent.items())
    assert all(event["success"] for event in named(consumed, "offsets_committed"))
