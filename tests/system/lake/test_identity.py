"""A table holds one topic: what another topic of the same name holds never comes into it."""

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.ranges import RangeClient
from ottla.lake import run_here
from ottla.lake.tables.opening import existing_table

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def topic_id(node: Node, topic: str) -> str:
    with RangeClient(node.bootstrap) as client:
        return str(client.topic(topic).topic_id)


def make_anew(node: Node, topic: str, produce: Produce) -> None:
    """Delete the topic and make another of its name, with as many records."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    before = topic_id(node, topic)
    admin.delete_topics([topic])[topic].result(30)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    while True:  # A broker learns of both a moment later.
        with contextlib.suppress(OttlaError):
            if topic_id(node, topic) != before:
                break
    produce(node, topic, 1000, 1050)


@pytest.mark.parametrize("step", ["planned", "files written"])
def test_a_topic_made_anew_during_a_load_is_refused(
    either: Node, step: str, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Before its offsets were read, or after: the error names both ids, nothing is committed."""
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 50)
    old_id = topic_id(either, topic)

    def interfere(now: str) -> None:
        if now == step:
            make_anew(either, topic, produce)

    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=either.bootstrap)
    with pytest.raises(OttlaError) as caught:
        load(runner=run_here, watch=ottla.lake.Observer(on_step=interfere))

    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert f"id was {old_id} and is {topic_id(either, topic)}" in caught.value.message
    assert existing_table(str(tmp_path)).latest() == (None, None)
    # The table held nothing yet, so that it may become the other topic's.
    assert load(runner=run_here).rows == 50


def test_identity_is_checked_at_the_commit_where_brokers_fetch_by_name(
    node: Node,
    make_topic: MakeTopic,
    produce: Produce,
    tmp_path: Path,
) -> None:
    """A worker that fetched by name read another topic; the commit finds out."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 50)

    def by_name(planned: Sequence[Any]) -> list[Any]:
        make_anew(node, topic, produce)
        return run_here([replace(t, wanted=replace(t.wanted, topic_id=None)) for t in planned])

    with pytest.raises(OttlaError, match=r"was deleted and created anew .*Nothing was committed"):
        ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=by_name)
    assert existing_table(str(tmp_path)).latest() == (None, None)


def test_a_deleted_topic_is_refused(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Between plan and read it went, and no other came."""
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 50)

    def interfere(step: str) -> None:
        if step == "planned":
            admin = AdminClient({"bootstrap.servers": either.bootstrap, "log_level": 0})
            admin.delete_topics([topic])[topic].result(30)

    with pytest.raises(OttlaError, match=re.escape(topic)):
        ottla.lake.load(
            topic,
            str(tmp_path),
            bootstrap=either.bootstrap,
            runner=run_here,
            watch=ottla.lake.Observer(on_step=interfere),
        )
    assert existing_table(str(tmp_path)).latest() == (None, None)


def test_the_data_source_refuses_a_topic_made_anew_after_its_plan(
    node: Node, make_topic: MakeTopic, produce: Produce
) -> None:
    """Its tasks fetch by the id of the topic that was planned."""
    from ottla.lake.edges.datasource import OttlaSource

    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 50)
    source = OttlaSource({"subscribe": topic, "kafka.bootstrap.servers": node.bootstrap})
    reader: Any = source.reader(None)
    (partition,) = reader.partitions()
    make_anew(node, topic, produce)

    with pytest.raises(OttlaError, match="was deleted and created anew"):
        list(reader.read(partition))
