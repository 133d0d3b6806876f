"""Records that are deleted before they were loaded are an error, unless their loss is accepted."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli.command import cli
from ottla.lake import run_here
from ottla.lake.edges.datasource import OttlaSource
from ottla.lake.tables.opening import existing_table

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def delete(node: Node, topic: str, before: int) -> None:
    """Delete the records of partition 0 below that offset."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    where = TopicPartition(topic, 0, before)
    admin.delete_records([where])[TopicPartition(topic, 0)].result(30)


def test_what_was_deleted_since_the_last_load_is_a_loss(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The gap between the committed position and the log's start: refused, or on record."""
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 100)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here
    )
    assert load().rows == 100
    produce(either, topic, 100, 300)
    delete(either, topic, 150)

    with pytest.raises(OttlaError, match=f"{topic}-0: 50 of the offsets 100 to 300 .*--accept-los"):
        load()
    assert existing_table(str(tmp_path)).latest()[0].positions == {0: 100}

    done = load(accept_loss=True)
    assert done.manifest is not None
    assert (done.rows, done.ledgers[0].deleted, done.manifest.accepted_loss) == (150, 50, {0: 50})
    assert existing_table(str(tmp_path)).latest()[0] == done.manifest
    assert ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap).problems == []


def test_what_is_deleted_between_plan_and_read_is_a_loss(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Also in the first load, which saw the records when it planned."""
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 100)
    delete(either, topic, 10)

    def retention(step: str) -> None:
        if step == "planned":
            delete(either, topic, 30)

    load = partial(ottla.lake.load, topic, bootstrap=either.bootstrap, runner=run_here)
    with pytest.raises(OttlaError, match=f"{topic}-0: 20 of the offsets 10 to 100") as caught:
        load(str(tmp_path / "a"), watch=ottla.lake.Observer(on_step=retention))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert existing_table(str(tmp_path / "a")).latest() == (None, None)
    # What was gone before its plan is none, whatever words the start has.
    assert load(str(tmp_path / "a")).manifest.accepted_loss == {}
    done = load(str(tmp_path / "b"), start="0:5")
    assert (done.rows, done.ledgers[0].deleted, done.manifest.accepted_loss) == (70, 25, {})


def test_all_that_was_new_is_gone(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The log is empty, and starts above the position."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    load()
    produce(node, topic, 10, 20)
    delete(node, topic, 20)
    with pytest.raises(OttlaError, match="10 of the offsets 10 to 20"):
        load()
    done = load(accept_loss=True)
    assert (done.rows, done.manifest.accepted_loss, done.manifest.positions) == (
        0,
        {0: 10},
        {0: 20},
    )
    assert load().manifest == done.manifest


def test_in_the_shell(node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path) -> None:
    """Exit code 1 and nothing done; with the option a line that says what was lost."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    produce(node, topic, 10, 20)
    delete(node, topic, 20)
    arguments = ["lake", "load", topic, "--to", str(tmp_path), "--bootstrap", node.bootstrap]
    refused = CliRunner().invoke(cli, arguments)
    assert refused.exit_code != 0
    assert existing_table(str(tmp_path)).latest()[0].version == 1


def test_the_data_source_fails_on_loss(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """After the last load, and between plan and read; `failOnDataLoss` false reads on."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    produce(node, topic, 10, 30)

    def reader(**options: str) -> Any:
        given = {"subscribe": topic, "kafka.bootstrap.servers": node.bootstrap, **options}
        return OttlaSource(given).reader(None)

    def offsets(source: Any, partitions: Any) -> list[int]:
        return [
            offset
            for one in partitions
            for batch in source.read(one)
            for offset in batch.column("offset").to_pylist()
        ]

    since = {"startingOffsets": "last-load", "table": str(tmp_path)}
    planned = reader(**since).partitions()
    early = reader().partitions()
    delete(node, topic, 15)
    lost = f"{topic}-0: 5 of the offsets 10 to 30 .*failOnDataLoss"
    with pytest.raises(OttlaError, match=lost):
        offsets(reader(**since), planned)
    with pytest.raises(OttlaError, match=f"{topic}-0: 15 of the offsets 0 to 30"):
        offsets(reader(), early)
    with pytest.raises(OttlaError, match=lost):
        reader(**since).partitions()
    accepting = reader(failOnDataLoss="false", **since)
    assert offsets(accepting, planned) == list(range(15, 30))
    assert offsets(accepting, accepting.partitions()) == list(range(15, 30))
    # What was deleted before the plan is none.
    assert offsets(reader(), reader().partitions()) == list(range(15, 30))
