"""Fetches answered without decoding: the same bytes as by the general way, or none at all."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.fetch.shortcut import FetchShortcut
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.wire.api import ApiKey
from ottla.wire.frames import FileRegion, encode_request
from ottla.wire.messages.fetch import ForgottenTopic
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    fetch,
    fetched,
    produce,
    until,
)

_VERSIONS = range(7, 19)
_COMMITTED = 1


def run(coroutine):
    asyncio.run(asyncio.wait_for(coroutine, 300))


class World:
    """A broker with three batches of two records in `a`, and a shortcut beside its connection."""

    def __init__(self, broker, client):
        self.broker = broker
        self.client = client
        # What waits is answered on the client's connection.
        (self.connection,) = broker.serving.listeners.open[0].connections
        use = broker.parts.usage.of(self.connection)
        self.shortcut = FetchShortcut(broker.serving.fetch, self.connection, "PLAINTEXT", use)
        self.partition = broker.partitions.get("a", 0)

    @classmethod
    async def filled(cls, broker, client):
        for number in range(3):
            records = batch(b"%d" % number * 300, b"x")
            await client.call(produce("a", records), 9)
        return cls(broker, client)

    def fetch(self, offset, version, **more):
        request = fetch("a", offset, **{"session_epoch": -1, **more})
        if version >= 13:
            request.topics[0].topic_id = self.broker.image.topics["a"].id
        return request

    def learn(self, request, version):
        self.shortcut.learn(self.frame(request, version), version, request, "test")

    def frame(self, request, version, correlation_id=5):
        encoded = b"".join(map(bytes, encode_request(request, version, correlation_id, "test")))
        return memoryview(encoded[4:])

    def serve(self, request, version, correlation_id=5):
        return self.shortcut.serve(self.frame(request, version, correlation_id))

    async def produce_elsewhere(self, first=b"y"):
        """Two records more, on another connection."""
        client = await Client.connect(self.broker.port)
        await client.call(produce("a", batch(first, b"z")), 9)
        client.close()

    async def general(self, request, version, correlation_id):
        """The whole frame of the general way's answer: a connection that has learnt nothing."""
        self.client.correlation_id = correlation_id - 1
        self.client.send(request, version)
        return framed(await self.client.receive_frame())


def framed(answer):
    return len(answer).to_bytes(4, "big") + answer


def joined(parts):
    return b"".join(bytes(part) for part in parts)


def with_world(scenario, **parts):
    async def play():
        async with connected(**parts) as (broker, client):
            await scenario(await World.filled(broker, client))

    run(play())


@pytest.mark.parametrize("isolation_level", [0, _COMMITTED])
@pytest.mark.parametrize("version", _VERSIONS)
def test_the_answer_is_the_one_of_the_general_way(version, isolation_level):
    """Whatever the offset, inside of a batch or at its start, and however little is wanted."""

    async def scenario(world):
        for partition_max_bytes in (1 << 20, 900, 1):
            more = {
                "isolation_level": isolation_level,
                "partition_max_bytes": partition_max_bytes,
            }
            world.learn(world.fetch(0, version, **more), version)
            for offset in range(6):
                request = world.fetch(offset, version, **more)
                parts = world.serve(request, version, 77 + offset)
                assert joined(parts) == await world.general(request, version, 77 + offset)

    with_world(scenario)


def test_files_are_answered_as_regions(tmp_path):
    """Nothing is read to answer: the connection reads what it sends."""

    async def scenario(world):
        world.learn(world.fetch(0, 16), 16)
        head, region, tail = world.serve(world.fetch(2, 16), 16)
        assert isinstance(region, FileRegion)
        answer = await world.general(world.fetch(2, 16), 16, 5)
        assert answer[: len(head)] == head
        assert answer[-len(tail) :] == tail
        assert len(answer) == len(head) + region.size + len(tail)

    with_world(scenario, settings={"log.dirs": str(tmp_path / "logs")}, filesystem=OsFileSystem())


@pytest.mark.parametrize(
    ("offset", "more"),
    [(7, {}), (-1, {}), (2**62, {}), (6, {}), (4, {"min_bytes": 100_000})],
)
def test_what_fails_or_may_not_wait_goes_the_general_way(offset, more):
    """Outside of the log; at its end, or with less than is wanted, and no time to wait."""

    async def scenario(world):
        world.learn(world.fetch(0, 16, **more), 16)
        assert world.serve(world.fetch(offset, 16, **more), 16) is None

    with_world(scenario)


@pytest.mark.parametrize("isolation_level", [0, _COMMITTED])
@pytest.mark.parametrize("version", _VERSIONS)
def test_a_fetch_at_the_end_waits_for_records(version, isolation_level):
    """The answer is the one of the general way, and comes with the next batch."""

    async def scenario(world):
        more = {"max_wait_ms": 120_000, "isolation_level": isolation_level}
        request = world.fetch(6, version, **more)
        world.learn(request, version)
        assert world.serve(request, version, 55) == []
        assert world.connection.unanswered == 1
        waiting = asyncio.ensure_future(world.client.receive_frame())
        await world.produce_elsewhere()
        answer = await waiting
        assert await world.general(request, version, 55) == framed(answer)

    with_world(scenario)


def test_a_fetch_waits_until_there_is_as_much_as_it_wants():
    """Also where there are some records already."""

    async def scenario(world):
        request = world.fetch(4, 16, max_wait_ms=120_000, min_bytes=900)
        world.learn(request, 16)
        assert world.serve(request, 16) == []
        await world.produce_elsewhere(b"x" * 100)
        assert world.connection.unanswered == 1
        await world.produce_elsewhere(b"x" * 700)
        answer = framed(await world.client.receive_frame())
        assert await world.general(request, 16, 5) == answer

    with_world(scenario)


@pytest.mark.parametrize("offset", [6, 4])
def test_a_fetch_that_waited_in_vain_is_answered_with_what_there_is(offset):
    """By the general way, when its time is over."""

    async def scenario(world):
        more = {"min_bytes": 100_000}
        request = world.fetch(offset, 16, max_wait_ms=30, **more)
        world.learn(request, 16)
        assert world.serve(request, 16) == []
        answer = framed(await world.client.receive_frame())
        assert await world.general(request, 16, 5) == answer
        assert not world.partition.waiters

    with_world(scenario)


def test_a_session_counts_a_fetch_that_waits():
    """At once; its answer tells what is new, or nothing of a partition without news."""

    async def scenario(world):
        def incremental(offset, epoch):
            more = {"session_id": opened.session_id, "session_epoch": epoch}
            return world.fetch(offset, 16, max_wait_ms=30, **more)

        opened = await world.client.call(world.fetch(0, 16, session_epoch=0), 16)
        await world.client.call(incremental(6, 1), 16)
        world.learn(incremental(6, 1), 16)
        assert world.serve(incremental(6, 2), 16) == []
        assert world.serve(incremental(6, 2), 16) is None
        in_vain = await world.client.receive(ApiKey.FETCH, 16)
        assert in_vain.responses == []
        longer = incremental(6, 3)
        longer.max_wait_ms = 120_000
        world.learn(longer, 16)
        assert world.serve(longer, 16) == []
        await world.produce_elsewhere()
        answer = await world.client.receive(ApiKey.FETCH, 16)
        assert (answer.session_id, fetched(answer).high_watermark) == (opened.session_id, 8)
        again = await world.client.call(incremental(8, 4), 16)
        assert (again.error_code, again.responses) == (ErrorCode.NONE, [])

    with_world(scenario)


def test_a_fetch_that_waits_is_told_when_the_partition_moves():
    """The general way knows the error."""

    async def scenario(world):
        request = world.fetch(6, 16, max_wait_ms=120_000)
        world.learn(request, 16)
        assert world.serve(request, 16) == []
        world.partition.close_to_clients("it moved")
        world.partition.wake_all()
        answer = await world.client.receive(ApiKey.FETCH, 16)
        assert fetched(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not world.partition.waiters

    with_world(scenario)


def test_aborted_transactions_are_told_to_a_fetch_that_waited():
    """By the general way, which knows them."""

    async def scenario(world):
        world.partition.log.segments.active.transactions.append(AbortedTransaction(9, 2, 9, 9))
        request = world.fetch(6, 16, max_wait_ms=120_000, isolation_level=_COMMITTED)
        world.learn(request, 16)
        assert world.serve(request, 16) == []
        await world.produce_elsewhere()
        answer = fetched(await world.client.receive(ApiKey.FETCH, 16))
        assert [aborted.producer_id for aborted in answer.aborted_transactions] == [9]
        assert answer.records

    with_world(scenario)


def test_a_fetch_that_waits_is_forgotten_with_its_connection():
    """Nothing of it is left in the partition."""

    async def scenario(world):
        request = world.fetch(6, 16, max_wait_ms=120_000)
        world.learn(request, 16)
        assert world.serve(request, 16) == []
        assert len(world.partition.waiters) == 1
        world.client.close()
        await until(lambda: not world.partition.waiters)

    with_world(scenario)


def test_another_request_is_not_taken_for_the_known_one():
    """One byte is enough: other limits, another term, another version, another length."""

    async def scenario(world):
        world.learn(world.fetch(0, 16), 16)
        assert world.serve(world.fetch(0, 16), 16) is not None
        for other in ({"max_bytes": 5}, {"isolation_level": 1}, {"current_leader_epoch": 1}):
            assert world.serve(world.fetch(0, 16, **other), 16) is None
        assert world.serve(world.fetch(0, 15), 15) is None
        assert world.shortcut.serve(world.frame(world.fetch(0, 16), 16)[:-1]) is None

    with_world(scenario)


@pytest.mark.parametrize(
    "more",
    [
        {"rack_id": "r"},
        {"replica_id": 2},
        {"last_fetched_epoch": 0},
        {"session_epoch": 0},
        {"session_id": 12345, "session_epoch": 3},
        {"forgotten_topics_data": [ForgottenTopic(topic="b", partitions=[0])]},
    ],
    ids=str,
)
def test_unusual_requests_are_not_learnt(more):
    """Followers, racks, the begin of a session, and sessions that are not there."""

    async def scenario(world):
        request = world.fetch(0, 12, **more)
        world.learn(request, 12)
        assert world.serve(request, 12) is None

    with_world(scenario)


def test_a_session_counts_on_whichever_way_is_taken():
    """Each number is good for one request; the general way goes on where the shortcut was."""

    async def scenario(world):
        def incremental(offset, epoch):
            return world.fetch(offset, 16, session_id=opened.session_id, session_epoch=epoch)

        opened = await world.client.call(world.fetch(0, 16, session_epoch=0), 16)
        await world.client.call(incremental(2, 1), 16)
        world.learn(incremental(2, 1), 16)
        assert world.serve(incremental(4, 1), 16) is None
        taken = world.serve(incremental(4, 2), 16)
        assert taken is not None
        assert world.serve(incremental(4, 2), 16) is None
        answer = await world.general(incremental(4, 3), 16, 5)
        assert joined(taken) == answer
        # What was asked last is remembered: a request without partitions goes on from it.
        silent = incremental(0, 4)
        silent.topics = []
        response = await world.client.call(silent, 16)
        assert joined(taken).endswith(bytes(fetched(response).records) + b"\0\0\0")
        stale = await world.client.call(incremental(4, 4), 16)
        assert stale.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    with_world(scenario)


def test_a_session_of_several_partitions_goes_the_general_way():
    """Its answer is about all of them."""

    async def scenario(world):
        full = world.fetch(0, 11, session_epoch=0)
        full.topics += fetch("b", 0).topics
        opened = await world.client.call(full, 11)
        assert opened.session_id != 0
        request = world.fetch(2, 11, session_id=opened.session_id, session_epoch=1)
        world.learn(request, 11)
        assert world.serve(request, 11) is None

    with_world(scenario, topics=("a", "b"))


def test_a_session_that_gains_a_partition_is_no_longer_known():
    """What was learnt of one partition does not answer for two."""

    async def scenario(world):
        def incremental(epoch):
            return world.fetch(2, 11, session_id=opened.session_id, session_epoch=epoch)

        opened = await world.client.call(world.fetch(0, 11, session_epoch=0), 11)
        world.learn(incremental(1), 11)
        assert world.serve(incremental(1), 11) is not None
        more = incremental(2)
        more.topics += fetch("b", 0).topics
        await world.client.call(more, 11)
        assert world.serve(incremental(3), 11) is None

    with_world(scenario, topics=("a", "b"))


def test_aborted_transactions_are_told_by_the_general_way():
    """Readers of committed records are given their list; others need none."""

    async def scenario(world):
        world.partition.log.segments.active.transactions.append(AbortedTransaction(9, 2, 3, 4))
        for isolation_level, is_taken in ((0, True), (_COMMITTED, False)):
            request = world.fetch(2, 16, isolation_level=isolation_level)
            world.learn(request, 16)
            assert (world.serve(request, 16) is not None) == is_taken

    with_world(scenario)


def test_a_partition_that_is_not_led_is_not_read():
    """Who leads it now is told by the general way."""

    async def scenario(world):
        world.learn(world.fetch(0, 16), 16)
        world.partition.close_to_clients("it moved")
        assert world.serve(world.fetch(0, 16), 16) is None

    with_world(scenario)
