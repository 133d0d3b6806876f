"""Replication from end to end: brokers over real connections, disks in memory."""

from ottla.base.errors import ErrorCode

from .scenes import play, values


def test_what_is_acknowledged_is_on_every_replica():
    """Byte for byte: a follower's log is the leader's (P15, P24)."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        for number in range(20):
            answer = await scene.write(1, "a", b"%d" % number)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        assert scene.ends("a") == {1: 20, 2: 20, 3: 20}
        assert len(scene.log(1, "a")) > 20 * 61
        assert scene.log(1, "a") == scene.log(2, "a") == scene.log(3, "a")

    play(scenario)


def test_high_watermark_travels_with_the_next_fetch():
    """P15, as 000 has it: the leader learns an end from a fetch, the follower the mark after it."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        assert scene.ends("a") == {1: 1, 2: 1}
        assert scene.marks("a")[1] == 1, "acknowledged, so committed"
        assert scene.marks("a")[2] in (0, 1), "the follower hears of it by its next answer"
        await scene.cluster.until(lambda: scene.marks("a") == {1: 1, 2: 1})

    play(scenario, 2)


def test_consumers_see_only_what_is_committed():
    """P15: what only the leader has is read by nobody."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"both")
        leader = scene.partition(1, "a")
        await scene.cluster.kill(2)
        answer = await scene.write(1, "a", b"one", acks=1)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)
        if set(leader.image.isr) == {1, 2}:
            assert values(await scene.read(1, "a")) == [b"both"]
        # Without its follower the leader is alone in sync, and commits by itself.
        await scene.cluster.until(lambda: set(leader.image.isr) == {1})
        await scene.cluster.until(lambda: leader.high_watermark == 2)
        assert values(await scene.read(1, "a")) == [b"both", b"one"]

    play(scenario, 2)


def test_too_few_in_sync_refuse_acks_all_alone():
    """P25: rather refused than acknowledged without being safe."""

    async def scenario(scene):
        await scene.create("a", 1, 2, min_insync_replicas="2")
        await scene.write(1, "a", b"x")
        await scene.cluster.kill(2)
        leader = scene.partition(1, "a")
        await scene.cluster.until(lambda: leader.under_min_isr)
        assert (await scene.write(1, "a", b"y")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await scene.write(1, "a", b"z", acks=1)).error_code == ErrorCode.NONE
        assert leader.high_watermark == 1, "nothing is committed by too few (S18)"
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        assert (await scene.write(1, "a", b"y")).error_code == ErrorCode.NONE
        assert scene.log(1, "a") == scene.log(2, "a")

    play(scenario, 2)


def test_killed_follower_returns_into_the_isr():
    """P16 to P18: it leaves with its session, and joins when it has reached the high watermark."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        await scene.write(1, "a", b"x")
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        for number in range(5):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        assert (await scene.write(1, "a", b"y")).error_code == ErrorCode.NONE
        assert scene.log(1, "a") == scene.log(2, "a") == scene.log(3, "a")

    play(scenario, 3)
