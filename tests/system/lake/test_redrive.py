"""A table's dead letters are redriven once each, though the redrive is killed at any step."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.lake import Decode, Format, columns, run_here
from ottla.lake.write.dead_letters import letters_of_table, redrive_table
from tests.unit.lake.forked import exit_code_of

MakeTopic = Callable[..., str]
LETTERS = 510  # More than one portion.
STEPS = ("settled", "noted", "sent", "marked", "committed", "done")


# Redrives, and is killed at a step's turn.
KILLED = """
import asyncio, os, signal, sys
from ottla.lake.write.dead_letters import redrive_table
bootstrap, target, to, step, turn = sys.argv[1:]
left = [int(turn)]
def kill(done):
    left[0] -= done == step
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(redrive_table(bootstrap, target, lambda _one: True, to=to, on_step=kill))
"""


@pytest.fixture
def table(node: Node, make_topic: MakeTopic, tmp_path: Path) -> Path:
    """A table with dead letters."""
    topic = make_topic(node, partitions=1)
    with sync.Producer(node.bootstrap) as producer:
        for number in range(LETTERS):
            producer.send(topic, b"bad %d" % number, partition=0)
        producer.flush()
    decode = Decode(value=Format("json", columns({"id": "int64"})), on_bad_record="dead-letter")
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here, decode=decode)
    return tmp_path


def committed(node: Node, topic: str) -> Counter[bytes]:
    """Values that librdkafka reads committed, and how often."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    place = TopicPartition(topic, 0, 0)
    # Not where committed records end: the markers of a commit may be written after its answer.
    settings = {"bootstrap.servers": node.bootstrap, "isolation.level": "read_uncommitted"}
    ends = Consumer({**settings, "group.id": "ends", "log_level": 0})
    _, end = ends.get_watermark_offsets(place, timeout=60)
    ends.close()
    consumer.assign([place])
    found: Counter[bytes] = Counter()
    while consumer.position([place])[0].offset < end:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found[message.value()] += 1
    consumer.close()
    return found


def redrive(node: Node, table: Path, to: str, *, again: bool = False) -> int:
    done = redrive_table(node.bootstrap, str(table), lambda _one: True, to=to, again=again)
    return asyncio.run(done).sent


@pytest.mark.parametrize(("turn", "steps"), [(1, STEPS), (2, ("noted", "marked"))])
def test_killed_at_any_step_each_letter_is_sent_once(
    node: Node, make_topic: MakeTopic, table: Path, turn: int, steps: Sequence[str]
) -> None:
    """In the first transaction or the second; one kill after another, then the rest."""
    for step in steps:
        to = make_topic(node, partitions=1)
        for mark in (table / "_ottla" / "redriven").glob("*"):
            mark.unlink()
        arguments = (node.bootstrap, str(table), to, step, str(turn))
        assert exit_code_of(KILLED, *arguments) == -signal.SIGKILL
        redrive(node, table, to)
        assert committed(node, to) == Counter(b"bad %d" % n for n in range(LETTERS)), step
        assert all(one.redriven for one in letters_of_table(str(table)))
        assert redrive(node, table, to) == 0


def test_what_the_brokers_have_forgotten_is_not_guessed(
    node: Node, make_topic: MakeTopic, table: Path
) -> None:
    """An old note without a mark is an error that names the remedy, which works."""
    to = make_topic(node, partitions=1)
    letters = [[one.source, one.offset] for one in letters_of_table(str(table))]
    folder = table / "_ottla" / "redriven"
    folder.mkdir(parents=True, exist_ok=True)
    note = {"state": "begun", "letters": letters, "noted_ms": 0}
    (folder / f"{'0' * 32}.json").write_text(json.dumps(note))
    with pytest.raises(OttlaError, match=r"not known any more.*--again"):
        redrive(node, table, to)
    assert redrive(node, table, to, again=True) == LETTERS
