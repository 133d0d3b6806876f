"""Fetch: what consumers and followers are given, and what they wait for."""

import random
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.handlers.fetch import Fetch
from ottla.broker.replication.replica_selector import RackAwareSelector
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.throttles import Throttles
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

from .replica_world import begin, call, play

T, U = UUID(int=1), UUID(int=2)
NAMES = {T: "t", U: "u"}
LONG_MS = 60_000


def fetching(world, *, racks=False):
    parts = FetchParts(
        world.settings,
        world.runtime,
        world.partitions,
        FetchSessions(10, 120_000, random.Random(1)),
        NewLeaders(world.view, world.partitions),
    )
    sessions = ReplicaSessions(
        world.partitions,
        world.roles,
        Throttles(world.settings, world.clock).leader,
        random.Random(2),
    )
    return Fetch(parts, sessions, RackAwareSelector(world.view) if racks else None)


def wanting(offsets, *, epoch=-1, nonce=0):
    """Topics with the offset wanted of partition 0 of each."""
    return [
        FetchTopic(
            topic=NAMES.get(topic_id, "none"),
            topic_id=topic_id,
            partitions=[
                FetchPartition(
                    partition=0,
                    fetch_offset=offset,
                    partition_max_bytes=1_000_000,
                    current_leader_epoch=epoch,
                    last_fetched_epoch=epoch if nonce and offset else -1,
                    nonce=nonce,
                )
            ],
        )
        for topic_id, offset in offsets.items()
    ]


def request(offsets, *, max_wait_ms=0, min_bytes=1, epoch=-1, **fields):
    return FetchRequest(
        topics=wanting(offsets, epoch=epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1_000_000,
        **fields,
    )


def given(answer):
    """Of each partition: its topic, the error, the high watermark, whether there are records."""
    return [
        (
            topic.topic or NAMES.get(topic.topic_id, "none"),
            ErrorCode(part.error_code).name,
            part.high_watermark,
            bool(part.records),
        )
        for topic in answer.responses
        for part in topic.partitions
    ]


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_a_consumer_is_given_what_is_committed(version):
    """By name, and from version 13 on by id; nothing beyond the end, and no wrong offset."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"a", b"b")
        handler = fetching(world)
        for offset, expected in (
            (0, ("t", "NONE", 2, True)),
            (2, ("t", "NONE", 2, False)),
            (3, ("t", "OFFSET_OUT_OF_RANGE", -1, False)),
        ):
            assert given(await call(handler, request({T: offset}), version)) == [expected]

    play(scenario)


def test_a_partition_that_cannot_be_read_does_not_hinder_the_others():
    """Its error is told at once, however long the client would wait."""

    async def scenario(world):
        await world.host("t", 1)
        answer = await call(fetching(world), request({T: 0, U: 0}, max_wait_ms=LONG_MS))
        assert given(answer) == [("t", "NONE", 0, False), ("u", "UNKNOWN_TOPIC_ID", -1, False)]
        fenced = await call(fetching(world), request({T: 0}, epoch=4, max_wait_ms=LONG_MS))
        assert given(fenced) == [("t", "FENCED_LEADER_EPOCH", -1, False)]

    play(scenario)


def test_a_consumer_waits_for_records():
    """Until there are as many bytes as it wants, or its time is up."""

    async def scenario(world):
        partition = await world.host("t", 1)
        handler = fetching(world)
        waiting = await begin(handler, request({T: 0}, max_wait_ms=LONG_MS))
        assert waiting.answers() == []
        world.append(partition, b"a")
        await waiting.line.answered.wait()
        assert [given(answer) for answer in waiting.answers()] == [[("t", "NONE", 1, True)]]
        short = await begin(handler, request({T: 1}, max_wait_ms=1))
        assert short.answers() == []
        world.clock.advance(1)
        await short.line.answered.wait()
        assert [given(answer) for answer in short.answers()] == [[("t", "NONE", 1, False)]]

    play(scenario)


def test_a_consumer_is_not_given_what_is_not_committed():
    """Broker 2 is in sync and has fetched nothing yet."""

    async def scenario(world):
        world.know(1, 2)
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a")
        answer = await call(fetching(world), request({T: 0}))
        assert given(answer) == [("t", "NONE", 0, False)]

    play(scenario)


def test_a_session_asks_and_answers_by_changes():
    """What did not change is left out; what is forgotten is read no more (KIP-227)."""

    async def scenario(world):
        first, second = await world.host("t", 1), await world.host("u", 2)
        handler = fetching(world)
        opened = await call(handler, request({T: 0, U: 0}, session_epoch=0))
        assert given(opened) == [("t", "NONE", 0, False), ("u", "NONE", 0, False)]
        number = opened.session_id
        assert number > 0
        world.append(first, b"a")
        changed = await call(handler, request({}, session_id=number, session_epoch=1))
        assert given(changed) == [("t", "NONE", 1, True)]
        world.append(second, b"a")
        forgetting = request({T: 1}, session_id=number, session_epoch=2)
        forgetting.forgotten_topics_data = [ForgottenTopic(topic_id=U, partitions=[0])]
        assert given(await call(handler, forgetting)) == []
        await call(handler, request({}, session_id=number, session_epoch=-1))
        gone = await call(handler, request({}, session_id=number, session_epoch=3))
        assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    play(scenario)


def test_a_session_remembers_only_partitions_that_exist():
    """Others are answered, and asked for in full each time: names cost a client nothing."""

    async def scenario(world):
        await world.host("t", 1)
        handler = fetching(world)
        sessions = handler.parts.sessions
        unknown = UUID(int=99)
        full = await call(handler, request({T: 0, unknown: 0}, session_epoch=0))
        assert [(e[0], e[1]) for e in given(full)] == [("t", "NONE"), ("none", "UNKNOWN_TOPIC_ID")]
        assert (full.session_id, len(sessions)) == (0, 0)
        number = (await call(handler, request({T: 0}, session_epoch=0))).session_id
        assert number > 0
        added = await call(handler, request({unknown: 0}, session_id=number, session_epoch=1))
        assert added.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert len(sessions) == 0

    play(scenario)


@pytest.mark.parametrize("name", ["u", "x" * 250])
def test_a_session_by_names_remembers_only_partitions_that_exist(name):
    """The same before topics had ids."""

    async def scenario(world):
        await world.host("t", 1)
        handler = fetching(world)
        asked = request({T: 0, U: 0}, session_epoch=0)
        asked.topics[1].topic = name
        full = await call(handler, asked, 11)
        assert given(full)[1][1] == "UNKNOWN_TOPIC_OR_PARTITION"
        assert (full.session_id, len(handler.parts.sessions)) == (0, 0)

    play(scenario)


def test_an_error_of_the_whole_request_is_on_every_partition_before_version_7():
    """There was no other place for it; a session epoch that is wrong is such an error."""

    async def scenario(world):
        await world.host("t", 1)
        handler = fetching(world)
        opened = await call(handler, request({T: 0}, session_epoch=0))
        wrong = request({}, session_id=opened.session_id, session_epoch=5)
        answer = await call(handler, wrong)
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert answer.responses == []

    play(scenario)
    code = ErrorCode.KAFKA_STORAGE_ERROR
    early = Fetch.on_error(request({T: 0, U: 0}), code, "why", 6)
    assert given(early) == [
        ("t", "KAFKA_STORAGE_ERROR", -1, False),
        ("u", "KAFKA_STORAGE_ERROR", -1, False),
    ]
    late = Fetch.on_error(request({T: 0}), code, "why", 7)
    assert (late.error_code, late.responses) == (code, [])


def test_a_consumer_is_pointed_to_a_replica_in_its_rack():
    """Where the selector is set, and the replica has what is wanted (KIP-392)."""

    async def scenario(world):
        world.know(1, 2)
        image = world.view.image
        near = BrokerImage(2, {"PLAINTEXT": Endpoint("host2", 9092)}, "near", epoch=2)
        world.view.replace(image.with_broker(near))
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a")
        handler = fetching(world, racks=True)
        await call(handler, following(world, {T: 1}), broker=2)
        for rack, preferred in (("near", 2), ("far", -1)):
            answer = await call(handler, request({T: 0}, rack_id=rack))
            (part,) = answer.responses[0].partitions
            assert (part.preferred_read_replica, bool(part.records)) == (preferred, preferred < 0)

    play(scenario)


def following(world, offsets, *, replica_id=2, max_wait_ms=0, session=(0, 0), nonce=1):
    """A fetch of broker 2, whose epoch is its id, in the leader epoch of `host`."""
    return FetchRequest(
        replica_id=replica_id,
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=replica_id),
        topics=wanting(offsets, epoch=5, nonce=nonce),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1_000_000,
        session_id=session[0],
        session_epoch=session[1],
    )


def test_a_follower_is_given_what_is_not_committed_and_commits_it_by_asking_for_the_next():
    """The high watermark follows the ends that followers in sync ask from."""

    async def scenario(world):
        world.know(1, 2)
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a", b"b")
        handler = fetching(world)
        first = await call(handler, following(world, {T: 0}), broker=2)
        assert given(first) == [("t", "NONE", 0, True)]
        assert partition.high_watermark == 0
        session = (first.session_id, 1)
        await call(handler, following(world, {T: 2}, session=session, nonce=2), broker=2)
        assert partition.high_watermark == 2

    play(scenario)


def test_a_follower_waits_for_records_and_a_later_fetch_ends_the_wait():
    """Each of its fetches is answered."""

    async def scenario(world):
        world.know(1, 2)
        partition = await world.host("t", 1, replicas=(1, 2))
        handler = fetching(world)
        opened = await call(handler, following(world, {T: 0}), broker=2)
        number = opened.session_id
        waits = {"max_wait_ms": LONG_MS}
        asking = following(world, {T: 0}, session=(number, 1), nonce=2, **waits)
        waiting = await begin(handler, asking, broker=2)
        assert waiting.answers() == []
        later = await begin(handler, following(world, {}, session=(number, 2), **waits), broker=2)
        assert [given(answer) for answer in waiting.answers()] == [[]]
        assert later.answers() == []
        world.append(partition, b"a")
        await later.line.answered.wait()
        assert [given(answer) for answer in later.answers()] == [[("t", "NONE", 0, True)]]

    play(scenario)


@pytest.mark.parametrize(
    ("broker", "version", "code"),
    [
        (None, 18, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (3, 18, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (2, 14, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_only_the_broker_itself_fetches_as_a_replica(broker, version, code):
    """A client that claims to be broker 2 would commit what is nowhere else."""

    async def scenario(world):
        world.know(1, 2, 3)
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a")
        answer = await call(fetching(world), following(world, {T: 1}), version, broker=broker)
        assert (answer.error_code, answer.responses) == (code, [])
        assert partition.high_watermark == 0

    play(scenario)
