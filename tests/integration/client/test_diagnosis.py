"""Programs diagnose and change a cluster without the command line; nothing is printed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import Admin
from ottla.client.admin.configs import ConfigResourceType
from ottla.diagnosis import cluster
from ottla.diagnosis.cluster import ClusterHealth
from ottla.operations.group_offsets import OffsetTarget, apply, planned
from ottla.operations.placement import plan_balance, plan_drain
from ottla.operations.settings import change_settings
from ottla.operations.topics import create_topic, delete_topics

from .conftest import unique

Result = TypeVar("Result")
_PATIENCE_S = 120.0


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        async with Admin(bootstrap) as admin:
            return await work(admin)

    return asyncio.run(main())


async def once(
    look: Callable[[], Awaitable[Result]], condition: Callable[[Result], bool]
) -> Result:
    """What `look` finds when `condition` holds: Kafka shows a change after confirming it."""
    deadline_s = time.monotonic() + _PATIENCE_S
    found = await look()
    while not condition(found) and time.monotonic() < deadline_s:
        await asyncio.sleep(0.05)
        found = await look()
    return found


def test_a_program_asks_for_the_health_of_a_cluster(
    bootstrap: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A value with what was found and from what; of Kafka the cleaners are not known."""

    async def work(admin: Admin) -> ClusterHealth:
        name = unique("healthy")
        await create_topic(admin, name, 2, 1, {"file.delete.delay.ms": "30000"})
        found = await once(lambda: cluster.health(admin), lambda seen: not seen.findings)
        assert (await delete_topics(admin, [name])).delay_ms == 30_000
        return found

    found = with_admin(bootstrap, work)
    assert found.findings == ()
    assert found.controller in found.live
    assert found.partition_count >= 2
    assert set(found.counts.values()) == {0}
    assert capfd.readouterr() == ("", "")


def test_a_program_plans_before_it_changes(bootstrap: str) -> None:
    """A drain of the only broker is refused; its load is even; a group is moved by a plan."""

    async def work(admin: Admin) -> None:
        name, group = unique("planned"), unique("group")
        created = await create_topic(admin, name, 1, 1, {"retention.ms": "60000"})
        assert created.is_new
        assert created.brokers_down == ()
        assert not (await plan_balance(admin)).moves.plan
        with pytest.raises(OttlaError) as refused:
            await plan_drain(admin, created.live[0], only_leaders=False)
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        plan = await once(
            lambda: planned(admin, group, OffsetTarget(latest=True), [(name, [])]),
            lambda seen: bool(seen.moves),
        )
        (move,) = plan.moves
        assert (move.place, move.old, move.new) == (TopicPartition(name, 0), None, 0)
        await apply(admin, group, plan)
        assert (await admin.groups.offsets(group))[TopicPartition(name, 0)].offset == 0
        await admin.groups.delete([group])
        done = await change_settings(
            admin, ConfigResourceType.TOPIC, name, {"segment.ms": "120000"}, ["segment.ms"]
        )
        (change,) = done.changes
        assert change.after is not None
        assert change.after.value == "120000"
        assert done.notes[0].startswith("segment.ms=120000 is above retention.ms=60000")
        await delete_topics(admin, [name])

    with_admin(bootstrap, work)
