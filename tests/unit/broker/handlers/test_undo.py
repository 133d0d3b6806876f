"""DescribeUndo and RestoreTopic: what can be undone is listed, and deleted topics come back."""

import asyncio

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.alter import Alteration
from ottla.broker.handlers.undo import DescribeUndo, RestoreTopic
from ottla.broker.undo.changes import changed_values
from ottla.broker.undo.trash import TrashKeeper
from ottla.metadata.undo import Author
from ottla.wire.messages.undo import DescribeUndoRequest, RestoreTopicRequest

from .cluster_world import call, play

ALICE = Author("User:alice", "adminclient-1", "10.0.0.7")
HOUR_MS = 3_600_000


def keeper(world, forgotten=None):
    return TrashKeeper(
        world.settings,
        world.runtime,
        world.view,
        world.store,
        world.directories,
        world.removals,
        (forgotten if forgotten is not None else []).append,
    )


async def changes(world):
    handler = DescribeUndo(world.configs.changes, keeper(world))
    return (await call(handler, DescribeUndoRequest(), 0)).changes


async def restore(world, topic_id, name):
    request = RestoreTopicRequest(topic_id=topic_id, name=name, timeout_ms=60_000)
    try:
        return (await call(RestoreTopic(world.topics), request, 0)).error_code
    except OttlaError as error:
        return error.code


async def delete(world, name):
    (outcome,) = await world.topics.delete([world.view.image.topics[name]], ALICE)
    assert outcome.error is None, outcome.error


def write(world, name, count):
    world.append(world.partitions.get(name, 0), *[b"x"] * count)


def folders(world):
    return [
        name for name in world.filesystem.listdir(world.settings.log_dirs[0]) if "orders" in name
    ]


def test_a_change_of_a_setting_is_recorded_with_its_author_and_both_values():
    """A setting that was not set has no value before."""

    async def scenario(world):
        await world.make("orders")
        wanted = [Alteration("retention.ms", 0, "1000")]
        await world.configs.alter(2, "orders", wanted, ALICE, validate_only=False)
        (change,) = await changes(world)
        (value,) = change.values
        assert (change.kind, change.name, change.principal) == ("topic", "orders", "User:alice")
        assert (value.name, value.before, value.after) == ("retention.ms", None, "1000")

    play(scenario)


def test_secrets_are_not_recorded():
    """Undoing them would need their old values."""
    before = {"ssl.key.password": "old", "num.io.threads": "8"}
    after = {"ssl.key.password": "new", "num.io.threads": "4"}
    assert changed_values(before, after) == {"num.io.threads": ("8", "4")}


def test_only_the_last_changes_are_kept():
    """The store does not grow with each change."""

    async def scenario(world):
        await world.make("orders")
        for number in range(1, 201):
            wanted = [Alteration("retention.ms", 0, str(number))]
            await world.configs.alter(2, "orders", wanted, ALICE, validate_only=False)
        found = await changes(world)
        assert 100 <= len(found) <= 120
        assert found[-1].values[0].after == "200"

    play(scenario)


def test_a_deleted_topic_is_restored_with_its_id_settings_and_records():
    """Its name is free at once; the undo takes it out of the trash."""

    async def scenario(world):
        topic_id = await world.make("orders", partitions=2, retention_ms="1000")
        write(world, "orders", 3)
        await delete(world, "orders")
        assert "orders" not in world.view.image.topics
        (change,) = await changes(world)
        assert (change.kind, change.partitions) == ("deleted_topic", 2)
        assert change.until_ms - change.at_ms == HOUR_MS
        assert change.size_bytes > 0
        assert await restore(world, topic_id, "orders") == ErrorCode.NONE
        topic = world.view.image.topics["orders"]
        assert (topic.id, topic.configs) == (topic_id, {"retention.ms": "1000"})
        assert world.partitions.get("orders", 0).log_end_offset == 3
        assert await changes(world) == []
        assert await restore(world, topic_id, "orders") == ErrorCode.UNKNOWN_TOPIC_ID

    play(scenario)


def test_a_topic_whose_name_is_used_again_is_not_restored():
    """The new topic stays as it is; once it is deleted, either can be restored."""

    async def scenario(world):
        old = await world.make("orders")
        write(world, "orders", 3)
        await delete(world, "orders")
        new = await world.make("orders")
        assert await restore(world, old, "orders") == ErrorCode.TOPIC_ALREADY_EXISTS
        write(world, "orders", 5)
        await delete(world, "orders")
        assert await restore(world, old, "orders") == ErrorCode.NONE
        assert world.partitions.get("orders", 0).log_end_offset == 3
        await delete(world, "orders")
        assert await restore(world, new, "orders") == ErrorCode.NONE
        assert world.partitions.get("orders", 0).log_end_offset == 5

    play(scenario)


def test_after_its_time_a_deleted_topic_is_gone_with_its_space():
    """Its committed offsets are forgotten, too."""

    async def scenario(world):
        forgotten = []
        trash = keeper(world, forgotten)
        topic_id = await world.make("orders")
        write(world, "orders", 3)
        await delete(world, "orders")
        await trash.check()
        assert trash.status().topics == 1
        assert len(folders(world)) == 1
        world.clock.advance(HOUR_MS)
        await trash.check()
        await asyncio.sleep(0.01)
        assert folders(world) == []
        assert forgotten == [topic_id]
        assert await restore(world, topic_id, "orders") == ErrorCode.UNKNOWN_TOPIC_ID

    play(scenario)


def test_a_disk_that_needs_room_gets_the_space_back_at_once():
    """The oldest deleted topic goes first, and no more than are needed."""

    async def scenario(world):
        trash = keeper(world)
        for name in ("orders1", "orders2"):
            await world.make(name)
            write(world, name, 3)
            await delete(world, name)
            world.clock.advance(1)
        await trash.check()
        assert trash.status().topics == 2
        world.filesystem.capacity_bytes = 1 << 20
        taken = (1 << 20) - world.filesystem.free_bytes("/")
        # One byte less than a half is free.
        world.filesystem.capacity_bytes = 2 * taken - 2
        await trash.check()
        await asyncio.sleep(0.01)
        assert [change.name for change in await changes(world)] == ["orders2"]

    play(scenario, {"delete.topic.trash.min.free.percent": "50"})


def test_with_a_time_of_zero_nothing_is_kept():
    """As in Kafka."""

    async def scenario(world):
        topic_id = await world.make("orders")
        write(world, "orders", 3)
        await delete(world, "orders")
        assert await changes(world) == []
        assert await restore(world, topic_id, "orders") == ErrorCode.UNKNOWN_TOPIC_ID

    play(scenario, {"delete.topic.trash.ms": "0"})
