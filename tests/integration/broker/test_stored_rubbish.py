"""A broker whose internal topics were damaged on its disk starts, coordinates, and loses little.

`python -m tests.integration.broker.test_stored_rubbish --cases 1000 --seed 1` damages more of them.
"""

import argparse
import asyncio
import logging
import sys
from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.upkeep import Scrubber
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


def damage(filesystem, random):
    """Turn a bit over in a file of an internal topic."""
    paths = [
        f"/logs/{topic}-0/{name}"
        for topic in INTERNAL
        for name in filesystem.listdir(f"/logs/{topic}-0")
        if filesystem.size(f"/logs/{topic}-0/{name}")
    ]
    logs = [path for path in paths if path.endswith(".log")]
    path = random.choice(logs if random.random() < 0.7 else paths)
    content = filesystem._file(path).content  # A disk does not ask.
    place = random.randrange(len(content))
    content[place] ^= 1 << random.randrange(8)


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


def damaged_and_started(random, flips):
    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with running(SETTINGS, **parts) as broker:
            await filled(broker)
        for _ in range(flips):
            damage(parts["filesystem"], random)
        async with running(SETTINGS, **parts) as broker:
            first = await found(broker)
        # And again, with what the first start made of it.
        async with running(SETTINGS, **parts) as broker:
            second = await found(broker)
        assert second == (first[0], first[1] + 1, first[2])
        return first

    return asyncio.run(scenario())


def test_rubbish_among_the_records_costs_nothing():
    """Unknown kinds and versions, short and empty records."""
    assert damaged_and_started(Random(1), 0) == (len(GROUPS), len(IDS), len(KEYS))


@pytest.mark.parametrize("seed", range(12))
def test_a_bit_that_turned_over_costs_one_batch_at_most(seed):
    """In any file of an internal topic, the log's end and its small files included."""
    left = damaged_and_started(Random(seed), 1)
    assert len(GROUPS) + len(IDS) + len(KEYS) - sum(left) <= 1


@pytest.mark.parametrize("seed", range(6))
def test_coordinators_load_whatever_the_disk_has_done(seed):
    """Several bits at once, the same batch's perhaps."""
    damaged_and_started(Random(seed), 5)


def new_scrubber(broker):
    """One beside the broker's own, which sleeps."""
    return Scrubber(
        broker.settings,
        broker.runtime,
        broker.partitions,
        broker.storage.log_directories,
    )


def test_damage_that_a_scrub_finds_takes_no_coordinator_away(caplog):
    """It goes on with the only copy there is, and the next start salvages that."""

    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with running(SETTINGS, **parts) as broker:
            await filled(broker)
            path = f"/logs/{CONSUMER_OFFSETS}-0/{0:020d}.log"
            # The first commit's key.
            parts["filesystem"]._file(path).content[70] ^= 1
            scrubber = new_scrubber(broker)
            await scrubber.round()
            assert scrubber.damages == 1
            assert (await found(broker))[:2] == (len(GROUPS), len(IDS))
        async with running(SETTINGS, **parts) as broker:
            assert (await found(broker))[0] == len(GROUPS) - 1
            scrubber = new_scrubber(broker)
            await scrubber.round()
            assert scrubber.damages == 0

    asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert any("the checksum of the batch is wrong" in each and "in use" in each for each in lines)
    assert any(each.startswith(f"{CONSUMER_OFFSETS}-0 is salvaged") for each in lines)


def test_what_was_lost_is_told(caplog):
    """One line for the coordinator's partition, with place, cause and count."""
    with caplog.at_level(logging.WARNING):
        damaged_and_started(Random(1), 0)
    lines = [each.getMessage() for each in caplog.records if "cannot be read and" in each.message]
    assert any(line.startswith(f"{CONSUMER_OFFSETS}-0: 3 records and 0 batches") for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        try:
            test_a_bit_that_turned_over_costs_one_batch_at_most(seed)
            test_coordinators_load_whatever_the_disk_has_done(seed)
        except BaseException:
            sys.stderr.write(f"seed {seed}\n")
            raise
    sys.stdout.write(f"{2 * chosen.cases} broken brokers\n")
