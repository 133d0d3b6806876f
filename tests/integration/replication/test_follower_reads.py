"""Consumers that read from a replica nearby (KIP-392)."""

from ottla.base.errors import ErrorCode

from .scenes import play, values

NEAR = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "replica.fetch.wait.max.ms": "20000",
}
RACKS = {1: "here", 2: "there"}


def test_consumer_is_pointed_to_its_own_rack_and_served_there():
    """The leader names the replica; that one answers what is committed, as soon as it knows."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        pointed = await scene.read(1, "a", rack_id="there")
        assert (pointed.preferred_read_replica, values(pointed)) == (2, [])
        # Long before the follower's next fetch is due: new marks are told at once here.
        await scene.cluster.until(lambda: scene.marks("a")[2] == 1)
        assert values(await scene.read(2, "a", rack_id="there")) == [b"x"]
        at_home = await scene.read(1, "a", rack_id="here")
        assert (at_home.preferred_read_replica, values(at_home)) == (-1, [b"x"])

    play(scenario, 2, NEAR, racks=RACKS)


def test_follower_holds_back_what_it_does_not_know_to_be_committed():
    """S20: beyond its high watermark it asks for patience; nobody is told to reset."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"x")
        await scene.cluster.until(lambda: scene.marks("a")[2] == 1)
        assert (await scene.read(2, "a", 1)).error_code == ErrorCode.NONE
        assert (await scene.read(2, "a", 2)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert (await scene.read(2, "a", 0, version=10)).error_code == (
            ErrorCode.NOT_LEADER_OR_FOLLOWER
        )

    play(scenario, 2, NEAR, racks=RACKS)


def test_without_a_selector_everyone_reads_from_the_leader():
    """P28: the default, whatever rack a consumer names."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"x")
        answer = await scene.read(1, "a", rack_id="there")
        assert (answer.preferred_read_replica, values(answer)) == (-1, [b"x"])

    play(scenario, 2, racks=RACKS)
