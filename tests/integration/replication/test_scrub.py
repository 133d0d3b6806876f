"""A bit that turned over on one disk is found, not served, and made good by other replicas."""

import logging

from ottla.base.errors import ErrorCode
from ottla.metadata.image import NO_LEADER

from .scenes import play, values

OFTEN = {"log.scrub.interval.ms": "1", "min.insync.replicas": "2"}
SMALL = {"internal_segment_bytes": "200"}
WRITTEN = [b"%d" % number for number in range(8)]


def flip(scene, broker_id):
    """Turn a bit of the first segment over, behind the broker's back; its partition before."""
    flip_on(scene.cluster.brokers[broker_id].storage.filesystem)
    return scene.partition(broker_id, "a")


def flip_on(filesystem, bit=8 * 65):
    path = "/data/a-0/00000000000000000000.log"
    content = bytearray(filesystem.read_bytes(path))
    content[bit // 8] ^= 1 << bit % 8
    file = filesystem.open(path)
    file.truncate(0)
    file.append(content)


async def written(scene, *replicas):
    await scene.create("a", *replicas, **SMALL)
    for value in WRITTEN:
        assert (await scene.write(replicas[0], "a", value)).error_code == 0
    assert len(scene.partition(replicas[0], "a").log.segments) > 2


async def whole_again(scene, hit, before):
    """Wait until the replica of broker `hit` is another one, in sync, and the same bytes."""
    await scene.cluster.until(lambda: before.failure is not None)
    await scene.cluster.until(
        lambda: (
            (now := scene.cluster.brokers[hit].partitions.find("a", 0)) is not None
            and now is not before
            and scene.isr("a") == {1, 2, 3}
        )
    )
    await scene.cluster.until(lambda: len(set(scene.ends("a").values())) == 1)
    assert len({scene.log(broker_id, "a") for broker_id in (1, 2, 3)}) == 1


def test_a_damaged_follower_is_made_anew(caplog):
    """Out of the ISR, a fresh copy, and back; the log names file, position, cause and remedy."""

    async def scenario(scene):
        await written(scene, 1, 2, 3)
        before = flip(scene, 3)
        await whole_again(scene, 3, before)
        assert (await scene.write(1, "a", b"more")).error_code == 0

    with caplog.at_level(logging.ERROR):
        play(scenario, settings=OFTEN)
    (told,) = {r.getMessage() for r in caplog.records if "checksum" in r.getMessage()}
    assert told.startswith("/data/a-0/00000000000000000000.log: at byte 0, offset 0: ")
    assert "made anew from the leader" in told


def test_a_damaged_leader_lets_another_lead():
    """The damaged bytes are not served; who leads next has all records."""

    async def scenario(scene):
        await written(scene, 1, 2, 3)
        before = flip(scene, 1)
        await whole_again(scene, 1, before)
        leader = scene.cluster.state("a").leader
        found = []
        while len(found) < len(WRITTEN):
            found += values(await scene.read(leader, "a", len(found)))
        assert found == WRITTEN

    play(scenario, settings=OFTEN)


def test_a_damaged_leader_is_made_anew_once_others_have_its_records():
    """While it is eligible to lead, as the only other holder of committed records, it is kept."""

    async def scenario(scene):
        await written(scene, 1, 2, 3)
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 3})
        before = flip(scene, 1)
        await scene.cluster.until(lambda: scene.isr("a") == {3})
        assert scene.cluster.state("a").elr == (1,)
        assert scene.cluster.brokers[1].partitions.find("a", 0) is before
        await scene.cluster.restart(2)
        await whole_again(scene, 1, before)

    play(scenario, settings=OFTEN)


def test_damage_that_a_start_finds_is_made_good():
    """After a kill the log is read again: the broker serves, and copies that replica anew."""

    async def scenario(scene):
        await written(scene, 1, 2, 3)
        disk = scene.cluster.brokers[3].storage.filesystem
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        flip_on(disk)
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        await scene.cluster.until(lambda: len(set(scene.ends("a").values())) == 1)
        assert len({scene.log(broker_id, "a") for broker_id in (1, 2, 3)}) == 1

    play(scenario, settings={"min.insync.replicas": "2"})


def test_the_only_copy_is_taken_offline_and_kept():
    """Nobody else has the records: the partition says so, and its files stay."""

    async def scenario(scene):
        await written(scene, 1)
        before = flip(scene, 1)
        await scene.cluster.until(lambda: before.failure is not None)
        await scene.cluster.until(
            lambda: (state := scene.cluster.state("a")) is not None and state.leader == NO_LEADER
        )
        answer = await scene.read(1, "a")
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        filesystem = scene.cluster.brokers[1].storage.filesystem
        assert "00000000000000000000.log" in filesystem.listdir("/data/a-0")

    play(scenario, settings={"log.scrub.interval.ms": "1"})
