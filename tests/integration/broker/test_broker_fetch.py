"""Fetch over loopback: visibility, sizes, long polls, sessions, epochs."""

import asyncio
import gc
import time
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.fetch.delayed import DelayedFetch
from ottla.record.reader import batches, records
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    fetch,
    fetched,
    produce,
    produced,
    until,
)


def run(coroutine):
    return asyncio.run(coroutine)


def values_in(buffer):
    return [
        record.value
        for position, header in batches(bytes(buffer))
        for record in records(bytes(buffer), position, header)
    ]


async def fill(client, *values, topic="a"):
    """One batch per value."""
    for value in values:
        assert produced(await client.call(produce(topic, batch(value)), 9)).error_code == 0


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_gives_the_records(version):
    """What was produced is fetched, from the start and from the middle."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client, b"1", b"2", b"3")
            answer = fetched(await client.call(fetch("a", 1), version))
            assert values_in(answer.records) == [b"2", b"3"]
            assert (answer.error_code, answer.high_watermark) == (0, 3)
            assert answer.last_stable_offset == 3
            if version >= 5:
                assert answer.log_start_offset == 0

    run(scenario())


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_named_by_id_from_version_13_on(version):
    """KIP-516; an unknown id is told apart from an unknown name."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client, b"1")
            request = fetch("", 0)
            request.topics[0].topic_id = broker.image.topics["a"].id
            response = await client.call(request, version)
            assert response.responses[0].topic_id == broker.image.topics["a"].id
            assert values_in(fetched(response).records) == [b"1"]
            request.topics[0].topic_id = UUID(int=99)
            unknown = fetched(await client.call(request, version))
            assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario())


def test_files_are_served_like_memory(tmp_path):
    """The same bytes through the page cache as from memory, batches unchanged (P2)."""

    async def scenario():
        settings = {"log.dirs": str(tmp_path / "logs")}
        async with connected(settings, filesystem=OsFileSystem()) as (_, client):
            sent = batch(b"1", b"2")
            await client.call(produce("a", sent), 9)
            answer = fetched(await client.call(fetch("a", 0), 11))
            # Base offset (0) and leader epoch (0) are the broker's, all else the producer's.
            assert bytes(answer.records)[16:] == sent[16:]
            big = [b"%d" % i + b"x" * 100_000 for i in range(40)]
            await fill(client, *big)
            answer = fetched(
                await client.call(fetch("a", 2, max_bytes=5 << 20, partition_max_bytes=5 << 20), 11)
            )
            assert values_in(answer.records) == big

    run(scenario())


def test_small_records_of_many_partitions_need_no_descriptor_each(tmp_path):
    """They are read at once; larger ones wait in their files, in few partitions of an answer.

    A consumer may fetch ten thousand partitions at once, and a process has few descriptors.
    """

    def of_all(offset):
        request = fetch("a", offset, max_bytes=1 << 30)
        (asked,) = request.topics[0].partitions
        request.topics[0].partitions = [
            FetchPartition(
                partition=index,
                fetch_offset=asked.fetch_offset,
                partition_max_bytes=asked.partition_max_bytes,
            )
            for index in range(1_010)
        ]
        return request

    async def scenario():
        settings = {"num.partitions": "1010", "log.flush.policy": "os"}
        settings["log.dirs"] = str(tmp_path / "logs")
        async with connected(settings, filesystem=OsFileSystem()) as (_, client):
            for offset, value, readable in ((0, b"small", 1_010), (1, bytes(2_000), 1_000)):
                for index in range(1_010):
                    request = produce("a", batch(value), partition=index, acks=1)
                    assert produced(await client.call(request, 9)).error_code == 0
                answer = await client.call(of_all(offset), 12)
                found = [part.records for part in answer.responses[0].partitions]
                assert [values_in(records) for records in found] == [[value]] * readable + [[]] * (
                    1_010 - readable
                )

    run(scenario())


def test_a_batch_is_never_cut_and_the_first_is_always_sent():
    """KIP-74: progress is possible with any limit; limits hold for all after the first."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client, b"a" * 1000, b"b" * 1000, b"c" * 1000)
            small = fetched(await client.call(fetch("a", 0, partition_max_bytes=10), 11))
            assert [value[:1] for value in values_in(small.records)] == [b"a"]
            two = fetched(await client.call(fetch("a", 0, partition_max_bytes=2300), 11))
            assert [value[:1] for value in values_in(two.records)] == [b"a", b"b"]

    run(scenario())


def test_max_bytes_hold_over_all_partitions():
    """The first partition with records takes what there is; others wait their turn."""

    async def scenario():
        async with connected(topics=("a", "b")) as (_, client):
            await fill(client, b"a" * 1000)
            await fill(client, b"b" * 1000, topic="b")
            request = fetch("a", 0, max_bytes=100)
            request.topics += fetch("b", 0).topics
            first, second = (t.partitions[0] for t in (await client.call(request, 11)).responses)
            assert len(first.records) > 1000
            assert len(second.records or b"") == 0
            assert second.high_watermark == 1

    run(scenario())


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_outside_of_the_log_is_told_at_once(offset):
    """OFFSET_OUT_OF_RANGE, without waiting for more records."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client, b"1", b"2", b"3")
            answer = fetched(await client.call(fetch("a", offset, max_wait_ms=3_600_000), 11))
            assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario())


def test_records_are_visible_once_they_are_committed():
    """Only what lies below the high watermark is read (P15); the end of the log is no error."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client, b"1")
            mark_dirty = broker.parts.replication.flusher.mark_dirty
            held = []
            broker.parts.replication.flusher.mark_dirty = held.append
            await client.call(produce("a", batch(b"2"), acks=1), 9)
            assert values_in(fetched(await client.call(fetch("a", 0), 11)).records) == [b"1"]
            at_end = fetched(await client.call(fetch("a", 2), 11))
            assert (at_end.error_code, at_end.high_watermark) == (0, 1)
            for partition in held:
                mark_dirty(partition)
            await broker.parts.replication.flusher.settle()
            assert len(values_in(fetched(await client.call(fetch("a", 0), 11)).records)) == 2

    run(scenario())


def test_a_long_poll_is_answered_when_records_arrive():
    """P10: asks for at least N bytes, and is told as soon as they are there."""

    async def scenario():
        async with connected() as (broker, client):
            reader = await Client.connect(broker.port)
            # Far longer than this test may take: it is the records that end the wait.
            reader.send(fetch("a", 0, max_wait_ms=3_600_000, min_bytes=300), 11)
            await fill(client, b"x" * 100)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.reader.read(1), 0.05)
            reader.send(fetch("a", 0), 11)
            await fill(client, b"y" * 200)
            answer = fetched(await reader.receive(1, 11))
            assert len(values_in(answer.records)) == 2
            reader.close()

    run(scenario())


def test_a_long_poll_ends_in_time_with_what_there_is():
    """max_wait_ms; nobody is left waiting, and nothing is left registered."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client, b"x")
            began = time.monotonic()
            request = fetch("a", 0, max_wait_ms=60, min_bytes=10_000)
            answer = fetched(await client.call(request, 11))
            assert time.monotonic() - began >= 0.05
            assert values_in(answer.records) == [b"x"]
            assert not broker.partitions.get("a", 0).waiters
            assert len(broker.runtime.purgatory) == 1  # The groups' own.

    run(scenario())


def test_a_long_poll_that_is_over_leaves_nothing_to_the_garbage_collector():
    """However it ends. Thousands of cycles of them stopped the broker for 50 ms now and then."""

    def waiting():
        return [each for each in gc.get_objects() if type(each) is DelayedFetch]

    async def scenario():
        async with connected() as (broker, client):
            reader = await Client.connect(broker.port)
            reader.send(fetch("a", 0, max_wait_ms=3_600_000), 11)
            await until(waiting)
            await fill(client, b"x")
            await reader.receive(1, 11)
            reader.send(fetch("a", 1, max_wait_ms=1), 11)
            await reader.receive(1, 11)
            reader.send(fetch("a", 1, max_wait_ms=3_600_000), 11)
            await until(waiting)
            reader.close()
            await until(lambda: not waiting())

    gc.collect()
    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


def test_a_long_poll_learns_that_its_topic_is_deleted():
    """Whoever waits is told at once."""

    async def scenario():
        async with connected() as (broker, client):
            client.send(fetch("a", 0, max_wait_ms=3_600_000), 11)
            await until(lambda: broker.partitions.get("a", 0).waiters)
            await broker.parts.metadata.topics.delete([broker.image.topics["a"]])
            answer = fetched(await client.receive(1, 11))
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


def test_epochs_of_leaders_are_checked():
    """KIP-320: fenced below, unknown above, served at the right one."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client, b"1")
            broker.partitions.get("a", 0).leader_epoch = 5
            codes = [
                fetched(await client.call(fetch("a", 0, current_leader_epoch=e), 11)).error_code
                for e in (4, 5, 6, -1)
            ]
            assert codes == [
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.NONE,
            ]

    run(scenario())


def test_a_diverging_fetcher_is_told_where_to_go_back_to():
    """KIP-595: the last fetched epoch ended before the fetch offset."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client, b"1", b"2")
            broker.partitions.get("a", 0).leader_epoch = 3
            await fill(client, b"3")
            request = fetch("a", 3, last_fetched_epoch=0, max_wait_ms=3_600_000)
            answer = fetched(await client.call(request, 12))
            assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2)
            agreeing = fetched(await client.call(fetch("a", 2, last_fetched_epoch=0), 12))
            assert values_in(agreeing.records) == [b"3"]

    run(scenario())


def test_a_client_may_not_fetch_as_a_replica():
    """Followers' fetches move high watermarks; clients have no business with that."""

    async def scenario():
        async with connected() as (_, client):
            response = await client.call(fetch("a", 0, replica_id=2), 11)
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            old = await client.call(fetch("a", 0, replica_id=2), 4)
            assert fetched(old).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario())


def session_request(session_id, epoch, *partitions, forgotten=(), max_wait_ms=0):
    """Topic `a`: (partition, offset) each."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="a",
                partitions=[
                    FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20)
                    for p, o in partitions
                ],
            )
        ]
        if partitions
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="a", partitions=list(forgotten))]
        if forgotten
        else [],
    )


def told(response):
    """Which partitions a response speaks of."""
    return [part.partition_index for topic in response.responses for part in topic.partitions]


def test_a_session_tells_only_what_is_new():
    """KIP-227, step by step: full, nothing, one partition, forgotten."""

    async def scenario():
        settings = {"num.partitions": "2"}
        async with connected(settings) as (broker, client):
            full = await client.call(session_request(0, 0, (0, 0), (1, 0)), 11)
            assert told(full) == [0, 1]
            assert full.session_id > 0
            nothing = await client.call(session_request(full.session_id, 1), 11)
            assert (told(nothing), nothing.session_id) == ([], full.session_id)
            await client.call(produce("a", batch(b"x"), partition=1), 9)
            news = await client.call(session_request(full.session_id, 2), 11)
            assert told(news) == [1]
            again = await client.call(session_request(full.session_id, 3, (1, 1)), 11)
            assert told(again) == []
            await client.call(produce("a", batch(b"x"), partition=1), 9)
            forgot = await client.call(session_request(full.session_id, 4, forgotten=(1,)), 11)
            assert told(forgot) == []
            ended = await client.call(session_request(full.session_id, -1, (0, 0)), 11)
            assert (told(ended), ended.session_id) == ([0], 0)
            gone = await client.call(session_request(full.session_id, 5), 11)
            assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert len(broker.serving.fetch.sessions) == 0

    run(scenario())


def test_a_session_wakes_for_partitions_it_was_not_asked_for_again():
    """A long poll in a session waits for all its partitions."""

    async def scenario():
        async with connected() as (broker, client):
            writer = await Client.connect(broker.port)
            full = await client.call(session_request(0, 0, (0, 0)), 11)
            client.send(session_request(full.session_id, 1, max_wait_ms=3_600_000), 11)
            await until(lambda: broker.partitions.get("a", 0).waiters)
            await fill(writer, b"x")
            assert told(await client.receive(1, 11)) == [0]
            writer.close()

    run(scenario())


def test_a_session_out_of_step_is_refused():
    """INVALID_FETCH_SESSION_EPOCH, above all partitions."""

    async def scenario():
        async with connected() as (_, client):
            full = await client.call(session_request(0, 0, (0, 0)), 11)
            wrong = await client.call(session_request(full.session_id, 7), 11)
            assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
            assert wrong.responses == []

    run(scenario())
