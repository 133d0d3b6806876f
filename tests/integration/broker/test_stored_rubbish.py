"""A broker with rubbish in its internal topics, or damage, starts and coordinates."""

import asyncio
import logging
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.topics.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from ottla.coordination.memory.memory import MemoryStore
from ottla.share.records import ShareKey, ShareState, SnapshotRecord, encode
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from ottla.wire.messages.transactions import InitProducerIdRequest
from tests.integration.broker.broker_client import Client, running, until

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
GROUPS = range(6)
IDS = range(4)
KEYS = range(4)
RUBBISH = [(b"\x7f\xff?", b"rubbish"), (b"\x00\x01", b"\x00\x63"), (b"", b""), (b"\x00\x02", None)]


async def coordinated(broker):
    """Wait for the coordinators of all three kinds."""

    kinds = broker.parts.groups, broker.parts.transactions.coordinator, broker.parts.share.states

    def shards():
        return [shard for kind in kinds for shard in kind.shards()]

    await until(lambda: len(shards()) == 3 and all(s.coordinator is not None for s in shards()))
    return shards()


async def filled(broker):
    """Write into all three topics: what coordinators know, and rubbish between it."""
    for topic in ("a", *INTERNAL):
        await broker.parts.metadata.topics.auto_create(topic)
    await until(lambda: all(broker.partitions.find(topic, 0) for topic in INTERNAL))
    client = await Client.connect(broker.port)
    for kind in (0, 1):
        await client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 4)
    await coordinated(broker)
    for number in GROUPS:
        commit = OffsetCommitRequest(
            group_id=f"group{number}",
            topics=[
                OffsetCommitRequestTopic(
                    name="a",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
                    ],
                )
            ],
        )
        await client.call(commit, 8)
    for number in IDS:
        begun = InitProducerIdRequest(transactional_id=f"id{number}", transaction_timeout_ms=60_000)
        await client.call(begun, 4)
    for number in KEYS:
        key, value = encode(SnapshotRecord(ShareKey("g", UUID(int=1), number), ShareState(1, 0)))
        broker.partitions.get(SHARE_GROUP_STATE, 0).append_internal([(key, value)])
    for topic in INTERNAL:
        for each in RUBBISH:
            broker.partitions.get(topic, 0).append_internal([each])
    client.close()


async def found(broker):
    """How many groups, transactional ids and share states there are."""
    _, transactions, share = await coordinated(broker)
    client = await Client.connect(broker.port)
    wanted = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=f"group{number}",
                topics=[OffsetFetchRequestTopic(name="a", partition_indexes=[0])],
            )
            for number in GROUPS
        ]
    )
    answer = await client.call(wanted, 8)
    assert [each.error_code for each in answer.groups] == [ErrorCode.NONE] * len(GROUPS)
    offsets = [each.topics[0].partitions[0].committed_offset for each in answer.groups]
    assert all(offset in (number, -1) for number, offset in zip(GROUPS, offsets, strict=True))
    # It goes on with what it has.
    again = InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=60_000)
    known = len(transactions.coordinator.transactions)
    assert (await client.call(again, 4)).error_code == ErrorCode.NONE
    client.close()
    return sum(offset >= 0 for offset in offsets), known, len(share.coordinator.states)


def filled_and_started():
    """What a second start finds, and a third one."""

    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with running(SETTINGS, **parts) as broker:
            await filled(broker)
        async with running(SETTINGS, **parts) as broker:
            first = await found(broker)
        async with running(SETTINGS, **parts) as broker:
            second = await found(broker)
        assert second == (first[0], first[1] + 1, first[2])
        return first

    return asyncio.run(scenario())


def test_rubbish_among_the_records_costs_nothing():
    """Unknown kinds and versions, short and empty records."""
    assert filled_and_started() == (len(GROUPS), len(IDS), len(KEYS))


def test_a_damaged_log_goes_offline_and_the_other_coordinators_serve(caplog):
    """The only copy stays as it is; the broker's log names file, place, cause and remedy."""
    path = f"/logs/{CONSUMER_OFFSETS}-0/{0:020d}.log"

    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with running(SETTINGS, **parts) as broker:
            await filled(broker)
        # The first commit's key.
        parts["filesystem"]._file(path).content[70] ^= 1
        before = parts["filesystem"].read_bytes(path)
        async with running(SETTINGS, **parts) as broker:
            partition = broker.partitions.find(CONSUMER_OFFSETS, 0)
            await until(lambda: partition.failure is not None)
            client = await Client.connect(broker.port)
            again = InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=60_000)
            await until(lambda: broker.partitions.find(TRANSACTION_STATE, 0).leader is not None)
            answer = await client.call(again, 4)
            while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0.01)
                answer = await client.call(again, 4)
            assert answer.error_code == ErrorCode.NONE
            client.close()
        assert parts["filesystem"].read_bytes(path) == before

    asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    wanted = f"{path}: at byte 0, offset 0: the checksum of the batch is wrong. Restore the file"
    assert any(line.startswith(wanted) for line in lines)


def test_what_was_lost_is_told(caplog):
    """One line for the coordinator's partition, with place, cause and count."""
    with caplog.at_level(logging.WARNING):
        filled_and_started()
    lines = [each.getMessage() for each in caplog.records if "cannot be read and" in each.message]
    assert any(line.startswith(f"{CONSUMER_OFFSETS}-0: 3 records and 0 batches") for line in lines)
