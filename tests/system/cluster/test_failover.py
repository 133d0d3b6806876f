"""Several brokers and one store: who takes over when somebody dies."""

import asyncio

from ottla.testing.cluster import Cluster


def run(scenario):
    asyncio.run(scenario())


def test_every_broker_sees_the_same_cluster():
    """One controller; each topic is placed on all, and known to all."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", 3, 3)
            assert len([b for b in cluster.brokers.values() if b.parts.controller.is_active]) == 1
            await cluster.until(lambda: all(cluster.state("t", i) is not None for i in range(3)))
            assert {cluster.leader("t", index) for index in range(3)} == {1, 2, 3}

    run(scenario)


def test_a_dead_leader_is_replaced_from_the_isr():
    """P30: new leader, ISR without the dead, next epoch, told to everybody."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [3, 2, 1]})
            await cluster.until(lambda: cluster.state("t") is not None)
            before = cluster.state("t")
            await cluster.kill(3)
            await cluster.until(lambda: cluster.leader("t") == 2)
            after = cluster.state("t")
            assert after.leader_epoch == before.leader_epoch + 1
            assert after.isr == (2, 1)

    run(scenario)


def test_a_dead_controller_is_followed_by_another_with_a_higher_epoch():
    """P31; it knows what the first one knew, and goes on with what happened meanwhile."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [1, 2, 3], 1: [2, 3, 1]})
            first = cluster.controller
            epoch = first.parts.controller.epoch
            await cluster.kill(first.broker_id)
            await cluster.until(lambda: cluster.controller is not None)
            assert cluster.controller.parts.controller.epoch == epoch + 1
            await cluster.until(lambda: cluster.leader("t", 0) == 2)
            office = cluster.controller.broker_id
            await cluster.until(
                lambda: {b.image.controller_id for b in cluster.brokers.values()} == {office}
            )

    run(scenario)


def test_a_broker_that_comes_back_is_a_replica_again_in_a_new_registration():
    """Its epoch is higher, and it hears of all topics, also those it missed."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [2, 3]})
            epoch = cluster.brokers[2].parts.cluster.fence.broker_epoch
            await cluster.kill(2)
            await cluster.until(lambda: cluster.leader("t") == 3)
            await cluster.create_topic("u")
            back = await cluster.restart(2)
            assert back.parts.cluster.fence.broker_epoch > epoch
            await cluster.until(lambda: set(back.image.topics) == {"t", "u"})
            await cluster.until(lambda: all(2 in b.image.brokers for b in cluster.brokers.values()))

    run(scenario)


def test_a_broker_that_refuses_connections_is_dead_before_its_session_ends():
    """Epochs give safety, so that a suspicion is enough to elect; with ZooKeeper this is early."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller.broker_id
            dead, other = (i for i in cluster.brokers if i != office)
            await cluster.create_topic("t", assignments={0: [dead, other]})
            # Its listener goes and its connections break, its session stays.
            broker = cluster.brokers[dead]
            broker.parts.cluster.membership.retire()
            await broker.serving.listeners.stop()
            await cluster.until(lambda: cluster.controller.image.partition("t", 0).leader == other)
            assert not broker.parts.cluster.membership.session.expired

    run(scenario)


def test_a_broker_taken_for_dead_by_mistake_registers_anew():
    """It sees its node go, drops what it leads, and is a member again with a new epoch."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller
            wronged = next(b for b in cluster.brokers.values() if b is not office)
            await cluster.create_topic("t", assignments={0: [wronged.broker_id]})
            epoch = wronged.parts.cluster.fence.broker_epoch
            known = office.image.brokers[wronged.broker_id]
            await office.parts.controller._active.fence(known, "a test says so")
            await cluster.until(lambda: wronged.parts.cluster.fence.broker_epoch > epoch)
            await cluster.until(lambda: cluster.leader("t") == wronged.broker_id)
            assert cluster.state("t").leader_epoch > 0

    run(scenario)


def test_a_broker_that_hears_of_nobody_lets_others_lead():
    """It gives up its registration, comes back with a new epoch, and follows who leads now."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [3, 2, 1]})
            lonely = cluster.brokers[3]
            epoch = lonely.parts.cluster.fence.broker_epoch
            lonely.parts.cluster.isolated.emit()
            await cluster.until(lambda: cluster.leader("t") == 2)
            await cluster.until(lambda: lonely.parts.cluster.fence.broker_epoch > epoch)
            await cluster.until(
                lambda: cluster.state("t") is not None and set(cluster.state("t").isr) == {1, 2, 3}
            )
            assert cluster.leader("t") == 2

    run(scenario)


def test_a_controlled_shutdown_moves_leadership_before_the_broker_goes():
    """The leader changes while it still lives."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [3, 1]})
            await cluster.create_topic("u", assignments={0: [3]})
            await cluster.shut_down(3)
            await cluster.until(lambda: cluster.leader("t", 0) == 1)
            assert cluster.state("t", 0).leader_epoch == 1
            await cluster.until(lambda: cluster.state("u") is not None)
            await cluster.until(lambda: cluster.leader("u") is None)

    run(scenario)


def test_an_expired_session_costs_the_registration_and_it_comes_back():
    """S16: leadership is dropped, and a new epoch is had without a restart."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [2, 3]})
            broker = cluster.brokers[2]
            epoch = broker.parts.cluster.fence.broker_epoch
            dropped = []
            broker.parts.cluster.registration_lost.subscribe(lambda: dropped.append(True))
            broker.parts.cluster.membership.session.expire()
            await cluster.until(
                lambda: broker.parts.cluster.fence.broker_epoch > epoch and dropped == [True]
            )
            await cluster.until(
                lambda: all(
                    2 in b.image.brokers and b.image.brokers[2].epoch > epoch
                    for b in cluster.brokers.values()
                )
            )
            await cluster.until(lambda: cluster.leader("t") is not None)
            assert cluster.state("t").leader_epoch > 0

    run(scenario)


def test_a_controller_whose_session_expires_resigns():
    """Whoever wins begins a new term, and all brokers go on."""

    async def scenario():
        async with Cluster(3) as cluster:
            epoch = cluster.controller.parts.controller.epoch
            cluster.controller.parts.cluster.membership.session.expire()
            await cluster.until(
                lambda: (
                    cluster.controller is not None
                    and cluster.controller.parts.controller.epoch > epoch
                )
            )
            await cluster.until(
                lambda: (
                    len([b for b in cluster.brokers.values() if b.parts.controller.is_active]) == 1
                )
            )
            await cluster.create_topic("t", 1, 3)

    run(scenario)
