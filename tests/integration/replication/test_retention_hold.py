"""Retention waits for named groups, wherever their coordinator is, and not for ever."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.ledger.history import StartCause
from ottla.metadata.decisions import DecisionKind

from .scenes import play

PARTITION = TopicPartition("a", 0)
# Each batch is a segment, and old as soon as it is written.
HELD = {
    "internal_segment_bytes": "100",
    "retention_ms": "1000",
    "ottla_retention_hold_groups": "audit,lake",
    # The records say that they are of 1970.
    "ottla_retention_hold_max_ms": str(10**15),
}


async def create(scene, **more):
    """A topic whose settings have dots where their own names do."""
    settings = {**HELD, **more}
    named = {name.replace("_", "."): value for name, value in settings.items()}
    await scene.cluster.create_topic("a", settings=named, assignments={0: [1, 2]})
    await scene.cluster.until(
        lambda: (
            scene.partition(1, "a").leader is not None
            and scene.partition(2, "a").follower is not None
        )
    )
    for number in range(10):
        assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
    await scene.cluster.until(lambda: set(scene.marks("a").values()) == {10})


def admin(scene):
    ports = [broker.port for broker in scene.cluster.brokers.values()]
    return Admin([f"127.0.0.1:{port}" for port in ports])


async def commit(scene, group, offset):
    async with admin(scene) as client:
        await client.groups.set_offsets(group, {PARTITION: offset})


async def apply(scene, *brokers):
    for broker_id in brokers:
        await scene.cluster.brokers[broker_id].parts.retention.apply_retention()


def starts(scene):
    return {b: scene.partition(b, "a").log_start_offset for b in scene.ends("a")}


def decisions(scene, broker_id):
    return [
        one
        for one in scene.cluster.brokers[broker_id].parts.controller.decisions.of(PARTITION)
        if one.kind is DecisionKind.DELETED_UNREAD
    ]


def test_what_a_named_group_has_not_read_stays():
    """The slowest of them decides; a follower deletes what its leader has deleted, no more."""

    async def scenario(scene):
        await create(scene)
        await apply(scene, 1, 2)
        assert starts(scene) == {1: 0, 2: 0}
        await commit(scene, "audit", 7)
        await apply(scene, 1, 2)
        assert starts(scene) == {1: 0, 2: 0}
        await commit(scene, "lake", 4)
        await apply(scene, 2, 1)
        assert starts(scene)[1] == 4
        await scene.cluster.until(lambda: starts(scene) == {1: 4, 2: 4})
        await apply(scene, 2)
        assert starts(scene) == {1: 4, 2: 4}
        async with admin(scene) as client:
            standing = await client.logs.retention(PARTITION, [4], group_id="lake")
        assert standing.readers == {"audit": 7, "lake": 4}
        assert standing.held_bytes > 0
        assert decisions(scene, 1) == []
        await commit(scene, "lake", 10)
        await apply(scene, 1)
        assert starts(scene)[1] == 7

    play(scenario, 3)


def test_the_bound_in_bytes_ends_the_wait_and_says_who_lost_what(caplog):
    """A line in the log and a decision for each group; the ledger says why the records went."""

    async def scenario(scene):
        await create(scene, ottla_retention_hold_max_bytes="300")
        await commit(scene, "audit", 2)
        await apply(scene, 1)
        start = starts(scene)[1]
        assert 2 < start < 10
        told = decisions(scene, 1)
        assert [one.cause for one in told] == [
            f"offsets 2 to {start} are deleted, which group audit has not read",
            f"offsets 0 to {start} are deleted, which group lake has not read",
        ]
        assert {one.setting for one in told} == {"ottla.retention.hold.max.bytes=300"}
        assert "which group audit has not read" in caplog.text
        async with admin(scene) as client:
            account = await client.logs.account(PARTITION)
        assert [one.counts for one in account.deleted_by] == [{StartCause.RETENTION_TIME: start}]
        assert account.unexplained == 0
        await apply(scene, 1)
        assert starts(scene)[1] == start

    play(scenario, 3)


def test_the_bound_in_time_ends_the_wait():
    """Records of long ago are over it at once."""

    async def scenario(scene):
        await create(scene, ottla_retention_hold_max_ms="1000")
        await apply(scene, 1)
        assert starts(scene)[1] == 10
        assert [one.setting for one in decisions(scene, 1)] == [
            "ottla.retention.hold.max.ms=1000",
            "ottla.retention.hold.max.ms=1000",
        ]

    play(scenario, 3)


def test_without_the_setting_nobody_is_waited_for():
    """What a group has not read is deleted as ever, and no decision tells of it."""

    async def scenario(scene):
        await create(scene, ottla_retention_hold_groups="")
        await commit(scene, "audit", 2)
        await apply(scene, 1)
        assert starts(scene)[1] == 10
        assert decisions(scene, 1) == []

    play(scenario, 3)
