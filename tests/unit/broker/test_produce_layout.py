"""The fast path of Produce follows the declared messages, also those of a version to come."""

from typing import Any
from uuid import UUID

import pytest

from ottla.broker.handlers.produce import Produce
from ottla.broker.produce.layout import Layout, layout
from ottla.broker.requests.handler import Versions
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.notation import Message, array, batches, int16, int32, int64, string, uuid
from ottla.wire.parts import Records
from tests.unit.broker.produce_scenes import scenes
from tests.unit.broker.produce_world import counted, play, slow_path_only

NEWER = 14
FIXED, COMPACT, BY_ID = Layout(False, False), Layout(True, False), Layout(True, True)


class TopicBeforeRecords(Message):
    """As declared, and a field more before the partitions."""

    topic_id: UUID = uuid("13+", ignorable=True)
    name: str = string("0-12", ignorable=True)
    urgency: int = int16("14+")
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class MoreBeforeRecords(Message, api_key=0, versions="3-14", flexible="9+"):
    """A request with more fields before the records."""

    transactional_id: str | None = string("3+", nullable="3+")
    acks: int = int16()
    timeout_ms: int = int32()
    deadline_ms: int = int64("14+", default=-1)
    topic_data: list[TopicBeforeRecords] = array(TopicBeforeRecords)


class PartitionWithMore(Message):
    """As declared, and a field more behind the records."""

    index: int = int32()
    records: Records = batches(nullable="0+")
    checksum: int = int32("14+")


class TopicOfMore(Message):
    """As declared."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_data: list[PartitionWithMore] = array(PartitionWithMore)


class MoreBehindRecords(Message, api_key=0, versions="3-14", flexible="9+"):
    """A request whose records are not its last field any more."""

    transactional_id: str | None = string("3+", nullable="3+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicOfMore] = array(TopicOfMore)


class PartitionWithTag(Message):
    """As declared, and a tagged field more."""

    index: int = int32()
    records: Records = batches(nullable="0+")
    checksum: int = int32("14+", tag=0)


class TopicOfTagged(Message):
    """As declared."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_data: list[PartitionWithTag] = array(PartitionWithTag)


class TaggedBehindRecords(Message, api_key=0, versions="3-14", flexible="9+"):
    """A request with one tagged field more, which no frame has that does not set it."""

    transactional_id: str | None = string("3+", nullable="3+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicOfTagged] = array(TopicOfTagged)


def request_of(declared: Any, topic: Any, partition: Any) -> Any:
    return declared(topic_data=[topic(partition_data=[partition()])])


DECLARED = request_of(ProduceRequest, TopicProduceData, PartitionProduceData)
BEFORE = request_of(MoreBeforeRecords, TopicBeforeRecords, PartitionProduceData)
BEHIND = request_of(MoreBehindRecords, TopicOfMore, PartitionWithMore)
TAGGED = request_of(TaggedBehindRecords, TopicOfTagged, PartitionWithTag)


def test_the_layout_of_each_version_is_read_off_the_declaration():
    """Before version 5 an answer has no log start offset; 9 is flexible, 13 has topic ids."""
    found = {version: layout(DECLARED, version) for version in range(3, NEWER + 1)}
    assert found == {
        **dict.fromkeys((3, 4), None),
        **dict.fromkeys((5, 6, 7, 8), FIXED),
        **dict.fromkeys((9, 10, 11, 12), COMPACT),
        13: BY_ID,
        NEWER: None,
    }


@pytest.fixture
def answers_newer(monkeypatch):
    """The answer is declared for the newer version, too, as it is."""
    monkeypatch.setattr(ProduceResponse, "__versions__", (3, NEWER))
    yield
    ProduceResponse.__encoders__.pop(NEWER, None)


@pytest.mark.parametrize(
    ("request_message", "expected"), [(BEFORE, BY_ID), (BEHIND, None), (TAGGED, BY_ID)]
)
def test_a_newer_version_is_served_if_records_still_end_it(
    answers_newer, request_message, expected
):
    """A field before the records is a part of what is repeated; one behind them is not."""
    assert layout(request_message, NEWER) == expected
    assert layout(request_message, 9) == COMPACT
    assert layout(request_message, 8) == FIXED


@pytest.mark.parametrize(
    ("declared", "is_served"),
    [(MoreBeforeRecords, True), (MoreBehindRecords, False), (TaggedBehindRecords, True)],
)
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_both_paths_do_the_same_in_a_newer_version(
    monkeypatch, answers_newer, declared, is_served, together
):
    """The fast path adapts to a newer declaration, or leaves its requests to the slow path."""
    monkeypatch.setattr(Produce.api, "request", declared)
    monkeypatch.setattr(Produce.api, "versions", Versions(0, NEWER))
    played = [
        scene
        for scene in scenes(NEWER, -1, learnt=True, together=together)
        if not scene.name.startswith("requests: all versions")
    ]
    with slow_path_only():
        slow = play(played)
    with counted() as taken:
        fast = play(played)
    assert fast == slow
    assert (taken.alone > 100) == is_served
    assert (taken.together > 30) == (is_served and together)
