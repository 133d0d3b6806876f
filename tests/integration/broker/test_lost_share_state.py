"""A share group whose state was lost on the disk is served again (KIP-932)."""

import asyncio
import logging

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.configs.configs import ResourceType
from ottla.broker.share.persister import AssignmentLookup
from ottla.coordination.memory.memory import MemoryStore
from ottla.record.header import read_header
from ottla.share.records import ShareKey
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.broker_client import Client, connected, running, until
from tests.integration.broker.share_member import ACCEPT, FOR_EVER_MS, ONE_OF_EACH, Member, write
from tests.integration.broker.two_brokers import two

STATE_LOG = f"/logs/__share_group_state-0/{0:020d}.log"


def flip_a_bit(filesystem, numbers):
    """Damage the batches of these numbers of the share state's log."""
    content = filesystem._file(STATE_LOG).content  # A disk does not ask.
    position = number = 0
    while position < len(content):
        if number in numbers:
            content[position + 70] ^= 1
        position += read_header(memoryview(bytes(content[position:]))).size
        number += 1


def written_damaged_and_fetched(reset, numbers):
    """What a group that accepted `one` and left `two` gets when `three` was written after."""

    async def scenario():
        parts = {"filesystem": MemoryFileSystem(), "store": MemoryStore()}
        async with connected(ONE_OF_EACH, **parts) as (broker, client):
            await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            settings = {"share.auto.offset.reset": reset}
            await broker.parts.configs.configs.replace(
                ResourceType.GROUP, "workers", settings, validate_only=False
            )
            member = Member(broker, client)
            await member.join()
            # Its partition is loaded with the first fetch.
            assert await member.fetch(min_bytes=1, max_wait_ms=1) == []
            await write(client, b"one", b"two")
            await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS)
            said = member.request(min_bytes=1, max_wait_ms=1, said=[(0, 0, ACCEPT)])
            answer = await client.call(said, 2)
            assert answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.NONE
        flip_a_bit(parts["filesystem"], numbers)
        async with running(ONE_OF_EACH, **parts) as broker:
            await until(lambda: broker.partitions.find("a", 0) is not None)
            client = await Client.connect(broker.port)
            again = Member(broker, client)
            await again.join()
            found = []
            while not any(served.core for served in broker.parts.share.sharing._served.values()):
                found += await again.fetch(min_bytes=1, max_wait_ms=200)
            await write(client, b"three")
            while b"three" not in found:
                found += await again.fetch(min_bytes=1, max_wait_ms=200)
            client.close()
            return found

    return asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_lost_snapshot_costs_a_group_nothing_that_its_updates_say(reset, caplog):
    """The group goes on where it was, and one line names the partition."""
    with caplog.at_level(logging.WARNING):
        assert written_damaged_and_fetched(reset, {0}) == [b"two", b"three"]
    lines = [each.getMessage() for each in caplog.records]
    (line,) = [each for each in lines if "was lost" in each and "starts again" in each]
    assert line.startswith("the share state of group workers, topic a, partition 0 was lost")
    assert "may be delivered again" in line
    assert not [each for each in lines if each.startswith("cannot serve")]


@pytest.mark.parametrize(
    ("reset", "given"), [("earliest", [b"one", b"two", b"three"]), ("latest", [b"three"])]
)
def test_a_group_of_whose_state_nothing_is_left_begins_where_it_wants_to(reset, given, caplog):
    """As a group that never read the partition; the line says from which offset."""
    with caplog.at_level(logging.WARNING):
        assert written_damaged_and_fetched(reset, range(99)) == given
    offset = 2 if reset == "latest" else 0
    told = f"starts again at offset {offset}, by share.auto.offset.reset"
    assert [each for each in caplog.records if told in each.getMessage()]


def test_a_fetch_of_no_member_begins_no_state():
    """Its group may have been deleted: nothing of it comes back."""

    async def scenario():
        async with connected(ONE_OF_EACH) as (broker, client):
            await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            member = Member(broker, client)
            await member.join()
            stranger = Member(broker, client)
            asked = stranger.request(min_bytes=1, max_wait_ms=1000)
            asked.group_id = "others"
            response = await client.call(asked, 2)
            (part,) = response.responses[0].partitions
            assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            (shard,) = broker.parts.share.states.shards()
            assert {key.group_id for key in shard.coordinator.states} == {"workers"}

    asyncio.run(asyncio.wait_for(scenario(), 60))


class Coordinated:
    """Groups that one broker coordinates; None: nowhere."""

    def __init__(self, broker_id):
        self._broker_id = broker_id

    def coordinator_of(self, _group_id):
        return self._broker_id


def test_the_leader_asks_the_groups_coordinator_at_another_broker():
    """Over brokers' own connection: the epoch where a member has the partition, else None."""

    async def scenario():
        async with two(ONE_OF_EACH) as (one, other):
            await other.parts.metadata.topics.auto_create("a")
            await other.parts.metadata.topics.auto_create("__consumer_offsets")
            client = await Client.connect(other.port)
            await Member(other, client).join()
            topic_id = other.image.topics["a"].id
            asked = AssignmentLookup(1, Coordinated(other.broker_id), one.peers)
            assert await asked.epoch_of(ShareKey("workers", topic_id, 0)) > 0
            assert await asked.epoch_of(ShareKey("workers", topic_id, 1)) is None
            assert await asked.epoch_of(ShareKey("others", topic_id, 0)) is None
            nowhere = AssignmentLookup(1, Coordinated(None), one.peers)
            with pytest.raises(OttlaError, match="has no coordinator"):
                await nowhere.epoch_of(ShareKey("workers", topic_id, 0))
            client.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))
