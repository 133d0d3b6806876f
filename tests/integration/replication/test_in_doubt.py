"""Leaders that cannot know whether they still lead, and changes of the ISR that were refused."""

from random import Random

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.coordination.memory.faults import StoreFaults
from ottla.metadata.decisions import DecisionKind

from .scenes import play, values

LEASE = {"broker.session.timeout.ms": "1200", "replica.lag.time.max.ms": "60000"}


def test_leader_cut_off_from_store_and_followers_stops():
    """S33: who may have been replaced takes no records and shows none, not even with acks=1."""
    faults = {}

    async def scenario(scene):
        await scene.create("a", 1, 2)
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        leader = scene.partition(1, "a")
        await scene.cluster.kill(2)
        faults["store"].cut("1")
        await scene.cluster.until(lambda: leader.closed is not None)
        assert (await scene.write(1, "a", b"y", acks=1)).error_code == (
            ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        assert (await scene.read(1, "a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        faults["store"].heal("1")
        # Registered anew, or confirmed in time: it may go on, and has lost nothing.
        await scene.cluster.until(lambda: scene.partition(1, "a").closed is None)
        assert values(await scene.read(1, "a")) == [b"x"]

    play(scenario, 2, LEASE, faults=lambda: faults.setdefault("store", StoreFaults(Random(7))))


def test_leader_cut_off_from_the_store_alone_goes_on():
    """S33: while all who could be elected follow it, nobody else leads."""
    faults = {}

    async def scenario(scene):
        await scene.create("a", 1, 2)
        leader = scene.partition(1, "a")
        replication = scene.cluster.brokers[1].parts.replication
        faults["store"].outage()
        await scene.cluster.until(lambda: not replication.roles.is_confirmed(now_ms(scene)))
        for number in range(5):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        assert leader.closed is None
        faults["store"].restore()
        await scene.cluster.until(lambda: replication.roles.is_confirmed(now_ms(scene)))
        assert values(await scene.read(1, "a")) == [b"0", b"1", b"2", b"3", b"4"]

    play(scenario, 2, LEASE, faults=lambda: faults.setdefault("store", StoreFaults(Random(7))))


def now_ms(scene):
    return scene.cluster.brokers[1].runtime.clock.monotonic_ms()


def test_refused_expansion_is_tried_again():
    """An idle follower joins though the store refused it first: the controller had changed."""

    async def scenario(scene):
        await scene.create("a", 2, 3)
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {2})
        await scene.cluster.restart(3)
        # The leader has written under this controller. Now there comes another.
        await scene.cluster.until(lambda: scene.isr("a") == {2, 3})
        assert scene.cluster.controller is scene.cluster.brokers[1]
        await scene.cluster.kill(1)
        await scene.cluster.until(lambda: scene.cluster.controller is not None)
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {2})
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {2, 3})
        refusals = scene.cluster.brokers[2].parts.controller.decisions.of(TopicPartition("a", 0))
        assert DecisionKind.ISR_REFUSED in [decision.kind for decision in refusals]

    play(scenario, 3)


def test_registration_whose_answer_was_lost_is_taken_up():
    """S15: whatever becomes of the answers, the broker leads again, and knows its epoch."""
    faults = {}

    async def scenario(scene):
        await scene.create("a", 1)
        broker = scene.cluster.brokers[1]
        before = broker.parts.cluster.fence.broker_epoch
        # Two attempts come to nothing, the third is made though nobody says so.
        for applied in (False, False, True):
            faults["store"].lose_next_answer("1", applied=applied)
        broker.parts.cluster.membership.session.expire()
        await scene.cluster.until(
            lambda: (
                broker.parts.cluster.fence.is_registered
                and broker.parts.cluster.fence.broker_epoch == before + 1
                and scene.partition(1, "a").closed is None
            )
        )
        assert broker.parts.replication.registration.broker_epoch == before + 1
        assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE

    play(scenario, 1, faults=lambda: faults.setdefault("store", StoreFaults(Random(7))))


def test_orders_that_are_faster_than_the_answer_of_the_store_are_not_lost():
    """S16: who does not know yet that it has registered drops no role that came with it."""
    faults = {}

    async def scenario(scene):
        await scene.create("a", 1, 2)
        broker = scene.cluster.brokers[2]
        before = broker.parts.cluster.fence.broker_epoch
        # The controller sees the registration, and the broker waits for an answer in vain.
        faults["store"].lose_next_answer("2", applied=True)
        broker.parts.cluster.membership.session.expire()
        await scene.cluster.until(
            lambda: (
                broker.parts.replication.registration.broker_epoch == before + 1
                and scene.partition(2, "a").follower is not None
                and scene.isr("a") == {1, 2}
            )
        )

    play(scenario, 2, faults=lambda: faults.setdefault("store", StoreFaults(Random(7))))
