"""A warning if records arrive that retention deletes soon because of their timestamps."""

import pytest

from ottla.broker.usage.table import PRODUCE, UsageTable, UseKey

from .handlers.replica_world import play
from .handlers.test_retention_standing import handler_of

DAY = 86_400_000


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if "just arrived" in record.message]


async def checked(world, keeper, age_ms, **configs):
    """What the keeper counts after records of this age arrive in a topic with these settings."""
    number = len(world.view.image.topics) + 1
    named = {name.replace("_", "."): value for name, value in configs.items()}
    partition = await world.host(f"t{number}", number, configs=named)
    before = keeper.status().born_expired
    await keeper.check_timestamps()
    world.append(partition, b"a", timestamps=[world.clock.now_ms() - age_ms])
    await keeper.check_timestamps()
    return keeper.status().born_expired - before


@pytest.mark.parametrize(
    ("age_ms", "configs", "count"),
    [
        (6 * DAY + 1, {}, 1),
        (6 * DAY, {}, 0),
        (40 * DAY, {}, 1),
        (0, {"retention_ms": "1000"}, 0),
        (501, {"retention_ms": "1000"}, 1),
        (40 * DAY, {"retention_ms": "-1"}, 0),
        (40 * DAY, {"cleanup_policy": "compact"}, 0),
        (40 * DAY, {"ottla_retention_by": "append"}, 0),
    ],
)
def test_records_that_would_go_within_their_first_day_are_counted(age_ms, configs, count):
    """Of a time shorter than two days, within the first half of it."""

    async def scenario(world):
        assert await checked(world, handler_of(world).retention, age_ms, **configs) == count

    play(scenario)


def test_the_warning_names_topic_client_and_remedy_and_is_not_repeated(caplog):
    """Though the count goes on; nothing is counted while nothing arrives."""

    async def scenario(world):
        keeper = handler_of(world).retention
        key = UseKey("t1", PRODUCE, "sensor", "User:a", "lib")
        users = keeper._users  # The table that the broker's parts share.
        assert isinstance(users, UsageTable)
        users.entry(key, 1).bytes += 1
        assert await checked(world, keeper, 40 * DAY) == 1
        await keeper.check_timestamps()
        assert keeper.status().born_expired == 1
        partition = world.partitions.get("t1", 0)
        world.append(partition, b"b", timestamps=[1])
        await keeper.check_timestamps()
        assert keeper.status().born_expired == 2
        (line,) = warnings(caplog)
        assert line.startswith("t1-0: ")
        assert "client 'sensor' (User:a)" in line
        assert "`ottla config set topic t1 ottla.retention.by=append`" in line

    play(scenario)
