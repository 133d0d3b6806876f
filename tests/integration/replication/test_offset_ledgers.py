"""Every offset is explained by whoever leads, whatever happened before, and to whom."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.ledger.history import StartCause
from ottla.ledger.removals import BEFORE_COPY

from .scenes import UNCLEAN, play
from .test_compacted_replicas import COMPACT, compact, write
from .test_delete_records import delete

PARTITION = TopicPartition("a", 0)
SMALL = {"internal_segment_bytes": "300"}


async def told(scene, start=0, end=None):
    """The leader's account."""
    ports = [broker.port for broker in scene.cluster.brokers.values()]
    async with Admin([f"127.0.0.1:{port}" for port in ports]) as admin:
        return await admin.logs.account(PARTITION, start, end)


def by_cause(account):
    counts = {}
    for one in account.deleted_by:
        for cause, count in one.counts.items():
            counts[cause] = counts.get(cause, 0) + count
    return counts


async def fill(scene, broker_id, count):
    for number in range(count):
        assert (await scene.write(broker_id, "a", b"%d" % number)).error_code == ErrorCode.NONE


async def lead(scene, broker_id, *gone):
    """Have `broker_id` lead, by the death of the others."""
    for other in gone:
        await scene.cluster.kill(other)
    await scene.cluster.until(lambda: scene.cluster.leader("a") == broker_id)
    await scene.cluster.until(lambda: scene.partition(broker_id, "a").leader is not None)
    # An account ends at the high watermark, which a new leader has to find first.
    partition = scene.partition(broker_id, "a")
    await scene.cluster.until(lambda: partition.high_watermark == partition.log_end_offset)


def test_each_leader_explains_its_own_compaction():
    """Passes are a replica's own: the next leader has others, and its account balances as well."""

    async def scenario(scene):
        await scene.create("a", 1, 2, **COMPACT)
        for number in range(30):
            await write(scene, 1, number)
        await scene.cluster.until(lambda: set(scene.marks("a").values()) == {30})
        await compact(scene, 1)
        first = await told(scene)
        assert (first.data, first.compacted, first.unexplained) == (4, 26, 0)
        assert [(one.number, one.count) for one in first.compacted_by] == [(1, 26)]
        await lead(scene, 2, 1)
        second = await told(scene)
        assert (second.broker_id, second.data, second.unexplained) == (2, 30, 0)
        await compact(scene, 2)
        third = await told(scene)
        assert (third.data, third.compacted, third.unexplained) == (4, 26, 0)

    play(scenario, settings={"min.insync.replicas": "1"})


def test_a_replica_that_was_copied_from_a_compacted_one_explains_its_holes():
    """It never had what its leader had removed; its leader told it so."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3, **COMPACT)
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        for number in range(40):
            await write(scene, 1, number)
        await compact(scene, 1)
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        await scene.cluster.until(lambda: set(scene.ends("a").values()) == {40})
        await lead(scene, 3, 1, 2)
        account = await told(scene)
        assert (account.broker_id, account.data, account.compacted) == (3, 4, 36)
        assert account.unexplained == 0
        assert [one.number for one in account.compacted_by] == [BEFORE_COPY]
        await write(scene, 3, 40)
        await compact(scene, 3)
        again = await told(scene)
        assert (again.data + again.compacted, again.unexplained) == (41, 0)
        await scene.cluster.kill(3)
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.cluster.leader("a") == 3)
        await scene.cluster.until(lambda: scene.partition(3, "a").high_watermark == 41)
        later = await told(scene)
        assert (later.data, later.compacted) == (again.data, again.compacted)

    play(scenario, settings={"min.insync.replicas": "1"})


def test_the_cause_of_a_deletion_travels_to_the_followers():
    """Whoever leads next knows that somebody deleted records, and when."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        await fill(scene, 1, 6)
        assert (await delete(scene, 1, 4)).low_watermark == 4
        before = await told(scene)
        assert (before.data, before.deleted, before.unexplained) == (2, 4, 0)
        await lead(scene, 2, 1)
        after = await told(scene)
        assert (after.data, after.deleted, after.unexplained) == (2, 4, 0)
        assert by_cause(after) == {StartCause.DELETE_RECORDS: 4}
        assert after.deleted_by == before.deleted_by

    play(scenario, settings={"min.insync.replicas": "1"})


def test_a_replica_made_anew_knows_why_its_log_begins_where_it_does():
    """It was away while retention passed by, and is emptied: the leader tells it why."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3, retention_ms="-1", retention_bytes="100", **SMALL)
        await fill(scene, 1, 3)
        await scene.cluster.until(lambda: set(scene.ends("a").values()) == {3})
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        await fill(scene, 1, 20)
        assert (await delete(scene, 1, 2)).error_code == ErrorCode.NONE
        await scene.cluster.brokers[1].parts.retention.apply_retention()
        start = scene.partition(1, "a").log_start_offset
        assert start > 10
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        await lead(scene, 3, 1, 2)
        account = await told(scene)
        assert (account.data, account.deleted, account.unexplained) == (23 - start, start, 0)
        assert by_cause(account) == {
            StartCause.DELETE_RECORDS: 2,
            StartCause.RETENTION_BYTES: start - 2,
        }

    play(scenario, settings={"min.insync.replicas": "1"})


def test_what_an_unclean_election_lost_is_told_by_the_new_leader():
    """The old one had committed it, cuts it off when it is back, and says so; then it is known.

    It counts as lost as long as the offsets are not written again, and is remembered as replaced
    from then on, also by a later leader.
    """

    async def scenario(scene):
        await scene.create("a", 1, 2, **UNCLEAN)
        await fill(scene, 1, 3)
        await scene.cluster.until(lambda: scene.ends("a") == {1: 3, 2: 3})
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: scene.partition(1, "a").image.isr == (1,))
        await fill(scene, 1, 5)
        await scene.cluster.kill(1)
        await scene.cluster.restart(2)
        await lead(scene, 2)
        epoch = scene.partition(2, "a").leader_epoch
        await scene.cluster.restart(1)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        history = scene.partition(2, "a").log.ledger.history
        await scene.cluster.until(lambda: len(history.lost) == 1)
        account = await told(scene, 0, 8)
        assert (account.broker_id, account.data, account.lost) == (2, 3, 5)
        assert account.unexplained == 0
        assert [(one.start, one.end) for one in account.lost_by] == [(3, 8)]
        await fill(scene, 2, 2)
        account = await told(scene, 0, 8)
        assert (account.data, account.lost, account.replaced) == (5, 3, 2)
        assert [one.leader_epoch for one in account.lost_by] == [epoch]
        await scene.cluster.until(lambda: scene.ends("a") == {1: 5, 2: 5})
        await lead(scene, 1, 2)
        account = await told(scene, 0, 8)
        assert (account.broker_id, account.data, account.lost) == (1, 5, 3)
        assert account.unexplained == 0

    play(scenario)


def test_an_election_that_loses_nothing_tells_of_no_loss():
    """What was never committed and is cut off was nobody's."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await fill(scene, 1, 3)
        await lead(scene, 2, 1)
        await fill(scene, 2, 2)
        await scene.cluster.restart(1)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        account = await told(scene)
        assert (account.data, account.lost_by, account.unexplained) == (5, (), 0)

    play(scenario, settings={"min.insync.replicas": "1"})
