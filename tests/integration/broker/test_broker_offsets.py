"""ListOffsets, DeleteRecords, OffsetForLeaderEpoch and ApiVersions over loopback."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.integration.broker.broker_client import (
    batch,
    connected,
    fetch,
    fetched,
    produce,
    produced,
)


def run(coroutine):
    return asyncio.run(coroutine)


async def offset_at(client, timestamp, version, *, topic="a", epoch=-1, isolation_level=0):
    """(error, offset, timestamp, leader epoch) of the only partition."""
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(timestamp=timestamp, current_leader_epoch=epoch)],
            )
        ],
    )
    part = (await client.call(request, version)).topics[0].partitions[0]
    return ErrorCode(part.error_code), part.offset, part.timestamp, part.leader_epoch


async def fill(client):
    """Offsets 0 to 2 at the times 1000, 3000, 2000."""
    for timestamp in (1000, 3000, 2000):
        answer = produced(await client.call(produce("a", batch(b"x", timestamp=timestamp)), 9))
        assert answer.error_code == 0


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_of_a_log(version):
    """-1 is the high watermark, -2 the log start."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client)
            _, latest, _, latest_epoch = await offset_at(client, -1, version)
            _, earliest, _, _ = await offset_at(client, -2, version)
            assert (earliest, latest) == (0, 3)
            assert latest_epoch == (0 if version >= 4 else -1)

    run(scenario())


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms"),
    [(0, 0, 1000), (1000, 0, 1000), (1001, 1, 3000), (3000, 1, 3000), (3001, -1, -1)],
)
def test_the_first_record_not_older_than_a_time(timestamp, offset, found_ms):
    """By record timestamps, whatever their order; -1 where there is none."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client)
            code, found, at_ms, epoch = await offset_at(client, timestamp, 7)
            assert (code, found, at_ms) == (ErrorCode.NONE, offset, found_ms)
            assert epoch == (0 if offset >= 0 else -1)

    run(scenario())


def test_the_record_with_the_greatest_timestamp():
    """KIP-734: -3 from version 7 on."""

    async def scenario():
        async with connected() as (_, client):
            assert await offset_at(client, -3, 7) == (ErrorCode.NONE, -1, -1, -1)
            await fill(client)
            assert (await offset_at(client, -3, 7))[:3] == (ErrorCode.NONE, 1, 3000)

    run(scenario())


@pytest.mark.parametrize(
    ("timestamp", "version", "code"),
    [
        (-3, 6, ErrorCode.UNSUPPORTED_VERSION),
        (-4, 7, ErrorCode.UNSUPPORTED_VERSION),
        (-4, 8, ErrorCode.NONE),
        (-5, 9, ErrorCode.NONE),
        (-6, 11, ErrorCode.NONE),
        (-7, 11, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_special_times_have_a_first_version(timestamp, version, code):
    """A version that does not know a special time refuses it."""

    async def scenario():
        async with connected() as (_, client):
            assert (await offset_at(client, timestamp, version))[0] == code

    run(scenario())


def test_offsets_of_what_is_not_there():
    """Unknown topics and wrong epochs have their codes; a partition named twice is no request."""

    async def scenario():
        async with connected() as (_, client):
            code = (await offset_at(client, -1, 5, topic="nowhere"))[0]
            assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert (await offset_at(client, -1, 5, epoch=4))[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
            twice = ListOffsetsRequest(
                topics=[
                    ListOffsetsTopic(
                        name="a", partitions=[ListOffsetsPartition(timestamp=-1) for _ in "12"]
                    )
                ]
            )
            answers = (await client.call(twice, 5)).topics[0].partitions
            assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_REQUEST}

    run(scenario())


def test_latest_is_what_a_reader_may_see():
    """Never beyond the high watermark, so that it never goes back."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client)
            broker.parts.replication.flusher.mark_dirty = lambda partition: None
            await client.call(produce("a", batch(b"x"), acks=1), 9)
            assert (await offset_at(client, -1, 5))[1] == 3
            assert (await offset_at(client, -1, 5, isolation_level=1))[1] == 3

    run(scenario())


async def delete_before(client, offset, *, topic="a", version=2):
    """(error, low watermark) of the only partition."""
    request = DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ],
    )
    part = (await client.call(request, version)).topics[0].partitions[0]
    return ErrorCode(part.error_code), part.low_watermark


@pytest.mark.parametrize("version", [0, 1, 2])
def test_deleting_records_moves_the_log_start(version):
    """KIP-107: what lies before is out of range from then on; going back changes nothing."""

    async def scenario():
        async with connected() as (_, client):
            await fill(client)
            assert await delete_before(client, 2, version=version) == (ErrorCode.NONE, 2)
            assert await delete_before(client, 1, version=version) == (ErrorCode.NONE, 2)
            assert (await offset_at(client, -2, 5))[1] == 2
            old = fetched(await client.call(fetch("a", 1), 11))
            assert old.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert await delete_before(client, -1) == (ErrorCode.NONE, 3)
            assert fetched(await client.call(fetch("a", 3), 11)).log_start_offset == 3

    run(scenario())


def test_deletions_that_may_not_be():
    """Beyond the end, of compacted topics, of the broker's own topics."""

    async def scenario():
        async with connected({"log.cleanup.policy": "compact"}, topics=("a",)) as (broker, client):
            assert (await delete_before(client, 0))[0] == ErrorCode.POLICY_VIOLATION
            assert (await delete_before(client, 0, topic="nowhere"))[0] == (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            code, low_watermark = await delete_before(client, 0, topic="__consumer_offsets")
            assert (code, low_watermark) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        async with connected() as (_, client):
            assert (await delete_before(client, 1))[0] == ErrorCode.OFFSET_OUT_OF_RANGE
            assert (await delete_before(client, -2))[0] == ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario())


async def end_of_epoch(client, leader_epoch, *, current=-1, version=4):
    """(error, epoch, end offset) of the only partition."""
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic="a",
                partitions=[
                    OffsetForLeaderPartition(
                        leader_epoch=leader_epoch, current_leader_epoch=current
                    )
                ],
            )
        ],
    )
    part = (await client.call(request, version)).topics[0].partitions[0]
    return ErrorCode(part.error_code), part.leader_epoch, part.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_where_the_terms_of_leaders_ended(version):
    """KIP-101, KIP-279: the largest epoch not above the one asked for, and where it ended."""

    async def scenario():
        async with connected() as (broker, client):
            await fill(client)
            broker.partitions.get("a", 0).leader_epoch = 4
            await client.call(produce("a", batch(b"x")), 9)
            told = [await end_of_epoch(client, epoch, version=version) for epoch in (0, 2, 4, 5)]
            assert told == [
                (ErrorCode.NONE, 0, 3),
                (ErrorCode.NONE, 0, 3),
                (ErrorCode.NONE, 4, 4),
                (ErrorCode.NONE, -1, -1),
            ]
            fenced = await end_of_epoch(client, 0, current=3, version=version)
            assert fenced[0] == ErrorCode.FENCED_LEADER_EPOCH

    run(scenario())


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_api_versions_lists_what_is_served(version):
    """Every API once; Produce from 0 as Kafka has it; the features clients switch on."""

    async def scenario():
        async with connected() as (_, client):
            request = ApiVersionsRequest(client_software_name="t", client_software_version="1.0")
            response = await client.call(request, version)
            listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
            assert response.error_code == 0
            assert len(listed) == len(response.api_keys)
            assert (listed[0], listed[1], listed[18]) == ((0, 13), (4, 18), (0, 4))
            assert (listed[76], listed[78], listed[79]) == ((1, 1), (1, 2), (1, 2))
            # Telemetry is not collected; share state is a matter between brokers.
            assert not {71, 72, 83, 84, 85, 86, 87} & listed.keys()
            features = sorted(
                (each.name, each.max_version_level) for each in response.finalized_features
            )
            known = [
                *(("eligible.leader.replicas.version", 1), ("group.version", 1)),
                *(("share.version", 1), ("transaction.version", 2)),
            ]
            assert features == (known if version >= 3 else [])

    run(scenario())


@pytest.mark.parametrize("name", ["", "-x", "x y", "x\n"])
def test_a_client_names_its_software_properly(name):
    """KIP-511's pattern."""

    async def scenario():
        async with connected() as (_, client):
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            assert (await client.call(request, 3)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario())


def test_api_versions_of_the_future_is_answered_in_version_0():
    """KIP-511: error 35 and the ranges, so that the client can ask again."""

    async def scenario():
        async with connected() as (_, client):
            client.writer.write(bytes.fromhex("0000000d 0012 7fff 00000007 ffff 00 00 00"))
            frame = await client.receive_frame()
            assert frame[:6] == bytes.fromhex("00000007 0023")
            assert int.from_bytes(frame[6:10], "big") * 6 == len(frame) - 10 > 100

    run(scenario())
