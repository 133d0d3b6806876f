"""Undo on clusters that lose power: settings, quotas, rewinds, and deleted topics."""

from contextlib import suppress

import pytest

import ottla.testing
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Admin, AdminOptions, Consumer, Producer, ProducerOptions, TopicPartition
from ottla.client.admin.undo import RecordedChange
from ottla.metadata.quota_entity import QuotaEntity
from ottla.operations.undo import carry_out_undo, effect, plan_undo, subject, undoable

FAST = ProducerOptions(request_timeout_ms=1_000, retry_backoff_ms=20)
TOOL = AdminOptions(client_id="ottla-cli", request_timeout_ms=5_000)
PLACE = TopicPartition("orders", 0)
ALICE = QuotaEntity(user="alice")


async def newest(admin: Admin) -> RecordedChange:
    return (await undoable(admin))[0]


async def undo(admin: Admin, change: RecordedChange, *, force: bool = False) -> None:
    await carry_out_undo(admin, await plan_undo(admin, change.id), force=force)


async def retention(admin: Admin) -> str | None:
    found = await admin.configs.describe("topic", "orders", ["retention.ms"])
    return found["retention.ms"].value


async def send(bootstrap: list[str], *values: bytes) -> None:
    async with Producer(bootstrap, **FAST) as producer:
        for value in values:
            await producer.send_and_wait("orders", value)


async def values(bootstrap: list[str], count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer(bootstrap, request_timeout_ms=1_000) as consumer:
        await consumer.assign([PLACE])
        while len(found) < count:
            for records in (await consumer.poll(1)).by_partition:
                found += [record.value for record in records.records]
    return found


@ottla.testing.simulated(seed=1)
async def test_a_setting_goes_back_and_the_undo_can_be_undone() -> None:
    """An undo is a change like every other."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders", settings={"retention.ms": "7000"})
        await admin.configs.alter("topic", "orders", {"retention.ms": "1000"})
        change = await newest(admin)
        assert subject(change) == "settings of topic orders"
        assert effect(change) == "sets retention.ms=7000"
        assert change.client_id == "ottla-cli"
        await undo(admin, change)
        assert await retention(admin) == "7000"
        await undo(admin, await newest(admin))
        assert await retention(admin) == "1000"


@ottla.testing.simulated(seed=2)
async def test_a_setting_that_was_changed_since_is_undone_by_force_only() -> None:
    """Otherwise an undo would also undo the later change."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders")
        await admin.configs.alter("topic", "orders", {"retention.ms": "1000"})
        first = await newest(admin)
        await admin.configs.alter("topic", "orders", {"retention.ms": "2000"})
        with pytest.raises(OttlaError, match=r"changed again since: retention\.ms"):
            await undo(admin, first)
        assert await retention(admin) == "2000"
        await undo(admin, first, force=True)
        assert await retention(admin) == "604800000"


@ottla.testing.simulated(seed=3)
async def test_settings_of_all_brokers_and_quotas_go_back() -> None:
    """A value that was not set is removed."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await admin.configs.alter("broker", "", {"log.retention.ms": "1000"})
        await undo(admin, await newest(admin))
        assert "log.retention.ms" not in await admin.configs.describe("broker", "")
        await admin.quotas.alter(ALICE, {"producer_byte_rate": 1024.0})
        await admin.quotas.alter(ALICE, {"producer_byte_rate": 2048.0})
        change = await newest(admin)
        assert subject(change) == "quotas of user alice"
        await undo(admin, change)
        assert (await admin.quotas.all())[ALICE] == {"producer_byte_rate": 1024.0}


@ottla.testing.simulated(seed=4)
async def test_a_rewind_goes_back_even_when_the_group_was_deleted() -> None:
    """Deleted offsets are set again."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"one", b"two", b"three")
        await admin.groups.set_offsets("readers", {PLACE: 3})
        await admin.groups.set_offsets("readers", {PLACE: 0})
        change = await newest(admin)
        assert subject(change) == "committed offsets of group readers"
        await undo(admin, change)
        assert (await admin.groups.offsets("readers"))[PLACE].offset == 3
        await admin.groups.delete(["readers"])
        await undo(admin, await newest(admin))
        assert (await admin.groups.offsets("readers"))[PLACE].offset == 3


@ottla.testing.simulated(seed=5)
async def test_consumers_without_a_group_leave_no_changes() -> None:
    """They commit all the time; only a commit that goes back is a rewind."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"one", b"two", b"three")
        async with Admin(cluster.bootstrap, client_id="flink") as program:
            for offset in (1, 2, 3):
                await program.groups.set_offsets("readers", {PLACE: offset})
            assert await undoable(admin) == []
            await program.groups.set_offsets("readers", {PLACE: 1})
        assert (await newest(admin)).values == (("orders:0", "3", "1"),)


@ottla.testing.simulated(seed=6)
async def test_a_deleted_topic_comes_back_with_all_it_had() -> None:
    """Its id, settings, records and committed offsets, after a power cut, too."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders", settings={"retention.ms": "7000000"})
        await send(cluster.bootstrap, b"one", b"two")
        await admin.groups.set_offsets("readers", {PLACE: 1})
        before = await admin.topics.describe("orders")
        await admin.topics.delete("orders")
        assert PLACE not in await admin.groups.offsets("readers")
        await cluster.crash(1, power=True)
        await cluster.start(1)
        change = await newest(admin)
        assert (subject(change), change.partitions) == ("deletion of topic orders", 1)
        await undo(admin, change)
        after = await admin.topics.describe("orders")
        assert after.topic_id == before.topic_id
        assert await retention(admin) == "7000000"
        assert await values(cluster.bootstrap, 2) == [b"one", b"two"]
        assert (await admin.groups.offsets("readers"))[PLACE].offset == 1
        await send(cluster.bootstrap, b"three")
        assert await values(cluster.bootstrap, 3) == [b"one", b"two", b"three"]


@ottla.testing.simulated(seed=7)
async def test_a_new_topic_of_the_name_sees_nothing_of_the_deleted_one() -> None:
    """Neither its records nor its committed offsets; and it is in the way of an undo."""
    async with ottla.testing.simulate() as cluster, Admin(cluster.bootstrap, **TOOL) as admin:
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"one", b"two")
        await admin.groups.set_offsets("readers", {PLACE: 2})
        await admin.topics.delete("orders")
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"new")
        assert PLACE not in await admin.groups.offsets("readers")
        assert await values(cluster.bootstrap, 1) == [b"new"]
        deleted = next(one for one in await undoable(admin) if one.kind == "deleted_topic")
        with pytest.raises(OttlaError, match="a new topic is named orders"):
            await undo(admin, deleted)
        with pytest.raises(OttlaError) as refused:
            await admin.undo.restore_topic(deleted.topic_id, "orders")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


@ottla.testing.simulated(seed=8)
async def test_after_an_hour_a_deleted_topic_is_gone() -> None:
    """Also for a broker that was away when its time was over."""
    async with ottla.testing.simulate(brokers=3) as cluster, Admin(cluster.bootstrap) as admin:
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"one")
        await admin.topics.delete("orders")
        assert len(await undoable(admin)) == 1
        await cluster.crash(2, power=True)
        await cluster.advance(hours=2)
        await cluster.start(2)
        await cluster.advance(minutes=1)
        assert await undoable(admin) == []


@pytest.mark.parametrize("away", [1, 2, 3])
def test_a_broker_that_was_away_during_the_undo_follows_again(away: int) -> None:
    """The others lead with all records; the one that comes back takes its log out of the trash."""

    @ottla.testing.simulated(seed=20 + away)
    async def scenario() -> None:
        async with (
            ottla.testing.simulate(brokers=3) as cluster,
            Admin(cluster.bootstrap, **TOOL) as admin,
        ):
            await cluster.create_topic("orders")
            await send(cluster.bootstrap, b"one", b"two")
            await admin.topics.delete("orders")
            await cluster.crash(away, power=True)
            await undo(admin, await newest(admin))
            await send(cluster.bootstrap, b"three")
            await cluster.start(away)
            await cluster.advance(minutes=1)
            topic = await admin.topics.describe("orders")
            assert sorted(topic.partitions[0].isr) == [1, 2, 3]
            for other in {1, 2, 3} - {away}:
                await cluster.crash(other)
            await cluster.start(away % 3 + 1)
            assert await values(cluster.bootstrap, 3) == [b"one", b"two", b"three"]

    scenario()


@ottla.testing.simulated(seed=30)
async def test_a_broker_that_was_away_during_the_deletion_keeps_its_log_for_the_undo() -> None:
    """The deletion waits for it, and the name with it."""
    async with (
        ottla.testing.simulate(brokers=3) as cluster,
        Admin(cluster.bootstrap, **TOOL) as admin,
    ):
        await cluster.create_topic("orders")
        await send(cluster.bootstrap, b"one", b"two")
        await cluster.crash(3, power=True)
        with suppress(OttlaError):
            await admin.topics.delete("orders")
        assert await undoable(admin) == []
        await cluster.start(3)
        await cluster.advance(minutes=1)
        await undo(admin, await newest(admin))
        await cluster.advance(minutes=1)
        assert await values(cluster.bootstrap, 2) == [b"one", b"two"]
        topic = await admin.topics.describe("orders")
        assert sorted(topic.partitions[0].isr) == [1, 2, 3]
