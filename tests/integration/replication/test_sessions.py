"""What a follower and its leader say to each other, and who may say it."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, ReplicaState

from .scenes import play


def test_a_thousand_idle_partitions_are_not_named_again():
    """A fetch names what changed; an idle session is one small message each half second."""

    async def scenario(scene):
        names = [f"t{number}" for number in range(5)]
        for name in names:
            await scene.create(name, 1, 2)
        for name in names:
            await scene.write(1, name, b"x")
        await scene.cluster.until(lambda: all(scene.marks(n) == {1: 1, 2: 1} for n in names))
        leader = scene.cluster.brokers[1]
        sessions = leader.parts.replication.sessions
        assert len(sessions) == 1
        (session,) = sessions._sessions.values()
        await scene.cluster.until(lambda: all(e.asked for e in session.entries.values()))
        nonces = {entry.key: entry.nonce for entry in session.entries.values()}
        assert len(nonces) == 5
        await scene.write(1, "t3", b"y")
        await scene.cluster.until(lambda: scene.marks("t3") == {1: 2, 2: 2})
        changed = [e.key for e in session.entries.values() if e.nonce != nonces[e.key]]
        topic = leader.image.topics["t3"]
        assert changed == [(topic.id, 0)]

    play(scenario, 2, {"replica.fetch.wait.max.ms": "200"})


def test_client_cannot_pose_as_a_follower():
    """A fetch as a replica moves the high watermark: only a proven broker may (CVE-2018-1288)."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        client = await scene.client(1)
        request = FetchRequest(replica_state=ReplicaState(replica_id=2, replica_epoch=1))
        answer = await client.call(request, 17)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    play(scenario, 2)


def test_lost_connections_are_made_again():
    """The follower goes on from its end; nothing is doubled."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"0")
        for number in range(1, 4):
            for fetcher in scene.cluster.brokers[2].parts.replication._fetchers._fetchers.values():
                fetcher._link.connection._shell.transport.abort()
            answer = await scene.write(1, "a", b"%d" % number)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        assert scene.log(1, "a") == scene.log(2, "a")
        assert scene.ends("a") == {1: 4, 2: 4}

    play(scenario, 2)


def test_follower_waits_for_its_min_bytes():
    """replica.fetch.min.bytes: what is less waits for replica.fetch.wait.max.ms, or for more."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        sessions = scene.cluster.brokers[1].parts.replication.sessions._sessions
        # The first fetch of a session is answered at once; it is the next one that waits.
        await scene.cluster.until(
            lambda: (
                [e.asked for s in sessions.values() if s.waiting for e in s.entries.values()]
                == [True]
            )
        )
        assert (await scene.write(1, "a", b"x" * 100, acks=1)).error_code == ErrorCode.NONE
        for _ in range(100):
            await asyncio.sleep(0)
        assert scene.ends("a") == {1: 1, 2: 0}
        assert (await scene.write(1, "a", b"x" * 2000)).error_code == ErrorCode.NONE
        assert scene.ends("a") == {1: 2, 2: 2}

    long = {"replica.fetch.wait.max.ms": "600000", "replica.lag.time.max.ms": "900000"}
    play(scenario, 2, {"replica.fetch.min.bytes": "2000", **long})
