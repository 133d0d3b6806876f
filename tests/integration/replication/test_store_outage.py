"""S33: the store is away. Leaders go on, acknowledgements stay true, and all is well afterwards."""

from random import Random

from ottla.base.errors import ErrorCode
from ottla.coordination.memory.faults import StoreFaults

from .scenes import play, values


def is_settled(scene):
    """All are in sync in what everybody knows, and the leader knows that it leads."""
    state = scene.cluster.state("a")
    if state is None or set(state.isr) != {1, 2, 3} or state.leader not in scene.cluster.brokers:
        return False
    leads = scene.cluster.brokers[state.leader]
    partition = scene.partition(state.leader, "a")
    return (
        leads.parts.cluster.fence.is_registered
        and partition.leader is not None
        and partition.leader.term.leader_epoch == state.leader_epoch
        and partition.closed is None
    )


def test_acks_all_stall_without_a_follower_while_the_store_is_away():
    """The ISR cannot shrink, so that nothing is acknowledged that only the leader has."""
    faults = {}

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        await scene.cluster.until(lambda: scene.marks("a") == {1: 1, 2: 1, 3: 1})
        before = scene.cluster.state("a")
        faults["store"].outage()
        assert (await scene.write(1, "a", b"y")).error_code == ErrorCode.NONE
        await scene.cluster.kill(3)
        answer = await scene.write(1, "a", b"z", timeout_ms=500)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert values(await scene.read(1, "a")) == [b"x", b"y"]
        faults["store"].restore()
        # The dead one leaves, and what waited is committed: by the leader there was.
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        await scene.cluster.until(lambda: scene.marks("a") == {1: 3, 2: 3})
        assert scene.cluster.state("a").leader_epoch == before.leader_epoch
        assert values(await scene.read(1, "a")) == [b"x", b"y", b"z"]

    play(scenario, 3, faults=lambda: faults.setdefault("store", StoreFaults(Random(3))))


def test_all_sessions_end_at_once_and_nothing_is_lost():
    """Everybody registers anew, somebody leads, and all replicas are in sync again."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        for number in range(3):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        brokers = scene.cluster.brokers
        epochs = {b: broker.parts.cluster.fence.broker_epoch for b, broker in brokers.items()}
        for broker in list(brokers.values()):
            broker.parts.cluster.membership.session.expire()
        await scene.cluster.until(
            lambda: all(
                b.parts.cluster.fence.is_registered
                and b.parts.cluster.fence.broker_epoch > epochs[i]
                for i, b in brokers.items()
            )
        )
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        # Those who have all lead; who that is may change once more while they come back.
        await scene.cluster.until(lambda: is_settled(scene))
        leader = scene.cluster.leader("a")
        assert values(await scene.read(leader, "a")) == [b"0", b"1", b"2"]
        assert (await scene.write(leader, "a", b"3")).error_code == ErrorCode.NONE
        await scene.cluster.until(lambda: scene.ends("a") == {1: 4, 2: 4, 3: 4})
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        assert scene.log(1, "a") == scene.log(2, "a") == scene.log(3, "a")

    play(scenario, 3)


def test_a_session_that_ends_while_a_role_begins_leaves_no_half_of_it():
    """S16, KAFKA-9307: the order is carried out wholly by the next registration, or not at all."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        for _ in range(3):
            stuck = scene.cluster.brokers[2]
            # The leader goes, and its successor's session with it, as the order arrives.
            await scene.cluster.kill(1)
            epoch = stuck.parts.cluster.fence.broker_epoch
            stuck.parts.cluster.membership.session.expire()
            await scene.cluster.until(
                lambda stuck=stuck, epoch=epoch: (
                    stuck.parts.cluster.fence.is_registered
                    and stuck.parts.cluster.fence.broker_epoch > epoch
                )
            )
            await scene.cluster.restart(1)
            await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        await scene.cluster.until(lambda: is_settled(scene))
        leader = scene.cluster.leader("a")
        assert (await scene.write(leader, "a", b"y")).error_code == ErrorCode.NONE
        assert values(await scene.read(leader, "a")) == [b"x", b"y"]

    play(scenario, 3)
