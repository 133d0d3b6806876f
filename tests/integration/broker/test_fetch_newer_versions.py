"""The fast path of Fetch follows the declared messages, also those of a version to come."""

from typing import Any
from uuid import UUID

import pytest

from ottla.broker.fetch import known
from ottla.broker.handlers.fetch import Fetch
from ottla.broker.requests.handler import Versions
from ottla.wire.messages import fetch as declared
from ottla.wire.notation import (
    Message,
    array,
    batches,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)
from ottla.wire.parts import Records
from tests.integration.broker.test_fetch_shortcut import World, framed, joined, with_world

NEWER = 19


class NewerPartition(Message):
    """As declared, with more fields: before the offset, behind it, and a tagged one."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    oldest_ms: int = int64("19+", default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    priority: int = int16("19+")
    note: str = string("19+", tag=5)
    nonce: int = int64("15+", tag=10000)
    lost: list[declared.LostOffsets] = array(declared.LostOffsets, "15+", tag=10001)


class NewerTopic(Message):
    """As declared."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[NewerPartition] = array(NewerPartition)


class NewerRequest(Message, api_key=1, versions="4-19", flexible="12+"):
    """As declared, with more fields in its partitions."""

    replica_id: int = int32("0-14", default=-1)
    replica_state: declared.ReplicaState = struct(declared.ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[NewerTopic] = array(NewerTopic)
    forgotten_topics_data: list[declared.ForgottenTopic] = array(declared.ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


class NewerData(Message):
    """As declared, with one field more among the numbers of the answer."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    oldest_ms: int = int64("19+")
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    aborted_transactions: list[declared.AbortedTransaction] | None = array(
        declared.AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: Records = batches(nullable="0+")


class NewerAnswer(Message):
    """As declared."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[NewerData] = array(NewerData)


class NewerResponse(Message, api_key=1, versions="4-19", flexible="12+"):
    """As declared."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    responses: list[NewerAnswer] = array(NewerAnswer)


def newer(world: World, offset: int, **more: Any) -> NewerRequest:
    """A request of the newer version for the partition of `world`."""
    known_fields = world.fetch(offset, NEWER, **more)
    (topic,) = known_fields.topics
    (asked,) = topic.partitions
    return NewerRequest(
        max_wait_ms=known_fields.max_wait_ms,
        min_bytes=known_fields.min_bytes,
        max_bytes=known_fields.max_bytes,
        isolation_level=known_fields.isolation_level,
        session_epoch=known_fields.session_epoch,
        topics=[
            NewerTopic(
                topic_id=topic.topic_id,
                partitions=[
                    NewerPartition(
                        fetch_offset=asked.fetch_offset,
                        partition_max_bytes=asked.partition_max_bytes,
                        oldest_ms=77,
                        priority=3,
                    )
                ],
            )
        ],
    )


@pytest.fixture
def declares_newer(monkeypatch):
    """The newer version is declared, served, and answered as the one before it."""
    monkeypatch.setattr(Fetch.api, "request", NewerRequest)
    monkeypatch.setattr(Fetch.api, "versions", Versions(4, NEWER))
    monkeypatch.setattr(declared.FetchResponse, "__versions__", (4, NEWER))
    yield
    for made in (declared.FetchResponse.__encoders__, declared.FetchResponse.__decoders__):
        made.pop(NEWER, None)


def test_a_newer_version_is_answered_as_by_the_slow_path(declares_newer):
    """Fields that the fast path does not know are among the bytes that are repeated."""

    async def scenario(world):
        world.learn(newer(world, 0), NEWER)
        for offset in range(6):
            request = newer(world, offset)
            parts = world.serve(request, NEWER, 70 + offset)
            assert joined(parts) == await world.general(request, NEWER, 70 + offset)
        other = newer(world, 0)
        other.topics[0].partitions[0].priority = 4
        assert world.serve(other, NEWER) is None

    with_world(scenario)


def test_a_fetch_of_a_newer_version_waits(declares_newer):
    """With records the fast path answers it; when its time is over, the slow one."""

    async def scenario(world):
        request = newer(world, 6, max_wait_ms=30)
        world.learn(request, NEWER)
        assert world.serve(request, NEWER, 55) == []
        answer = await world.client.receive_frame()
        assert await world.general(request, NEWER, 55) == framed(answer)
        longer = newer(world, 6, max_wait_ms=120_000)
        world.learn(longer, NEWER)
        assert world.serve(longer, NEWER, 56) == []
        await world.produce_elsewhere()
        answer = await world.client.receive_frame()
        assert await world.general(longer, NEWER, 56) == framed(answer)

    with_world(scenario)


def test_an_answer_of_another_shape_is_left_to_the_slow_path(declares_newer, monkeypatch):
    """The fast path needs high watermark, last stable offset and log start offset in a row."""

    async def scenario(world):
        monkeypatch.setattr(known, "PartitionData", NewerData)
        monkeypatch.setattr(known, "FetchableTopicResponse", NewerAnswer)
        monkeypatch.setattr(known, "FetchResponse", NewerResponse)
        request = newer(world, 0)
        world.learn(request, NEWER)
        assert world.serve(request, NEWER) is None
        older = world.fetch(0, 18)
        world.learn(older, 18)
        assert world.serve(older, 18) is not None

    with_world(scenario)


def test_an_answer_that_is_not_declared_is_left_to_the_slow_path(monkeypatch):
    """A request may be declared in a version before its answer is."""

    async def scenario(world):
        request = newer(world, 0)
        world.learn(request, NEWER)
        assert world.serve(request, NEWER) is None

    monkeypatch.setattr(Fetch.api, "request", NewerRequest)
    with_world(scenario)
