"""Brokers that the controller does not reach though the store does, in virtual time.

The session is three seconds. A broker's fate is decided within it, and a second is left for the
rest: for looking, for electing, for clients that have to find the new leader.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

import ottla.testing
from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client import Admin, NewTopic, Producer, ProducerOptions
from ottla.client.admin.partitions import ElectionKind

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",
}
FAST = ProducerOptions(
    request_timeout_ms=500, connect_timeout_ms=500, retry_backoff_ms=20, retry_backoff_max_ms=200
)
BOUND_S = 4.0
PARTITION = TopicPartition("t", 0)


class Scene:
    """Three brokers, one of them in office; one partition, and clients that no cut hits."""

    def __init__(self, cluster, producer, admin):
        self.cluster = cluster
        self.office = self.controller
        self.one, self.other = sorted({1, 2, 3} - {self.office})
        self._producer = producer
        self._admin = admin

    @property
    def brokers(self):
        """Those that run, by id."""
        machines = self.cluster._world.machines
        return {number: m.broker for number, m in machines.items() if m.is_ready}

    @property
    def controller(self):
        """The id of the broker in office, as the store has it."""
        found = self.cluster._world.controller()
        return None if found is None else found.broker_id

    @property
    def state(self):
        """The partition, as the broker in office shows it."""
        broker = self.brokers.get(self.controller)
        return None if broker is None else broker.image.partition("t", 0)

    async def create(self, *replicas):
        """Make the partition, the first replica leads; return when all are in sync."""
        await self._admin.topics.create_all([NewTopic(name="t", assignments=(replicas,))])
        await self.until(lambda: self.state is not None and len(self.state.isr) == 3)
        await self.write()

    async def tell_everybody_something(self):
        """Whatever it is: a new topic is told to all brokers."""
        topic = NewTopic(name="something", assignments=((self.office,),))
        await self._admin.topics.create_all([topic])

    async def elect_preferred(self):
        """What the election says of the partition; None if it was held."""
        found = await self._admin.partitions.elect_leaders(ElectionKind.PREFERRED, [PARTITION])
        return found[PARTITION] and found[PARTITION].code

    async def until(self, condition, within_s=60.0):
        async with asyncio.timeout(within_s):
            while not condition():  # noqa: ASYNC110  # Nothing tells of every change.
                await asyncio.sleep(0.01)

    async def write(self):
        """Have a record acknowledged by all in sync; how many virtual seconds that took."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await self._producer.send_and_wait("t", b"x")
        return loop.time() - began_s


@asynccontextmanager
async def scene(**settings):
    """Three brokers, with settings whose names have underscores for dots."""
    chosen = {name.replace("_", "."): value for name, value in settings.items()}
    async with (
        ottla.testing.simulate(3, {**SETTINGS, **chosen}) as cluster,
        Admin(cluster.bootstrap) as admin,
        Producer(cluster.bootstrap, **FAST) as producer,
    ):
        yield Scene(cluster, producer, admin)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("reaches_clients", [True, False])
def test_a_controller_that_leads_and_is_cut_off_makes_way(reaches_clients, seed):
    """It reaches the store, so that no session ends: it gives up leadership and office both.

    Clients that still reach it are not told for ever what it knew before.
    """

    @ottla.testing.simulated(seed=seed)
    async def story():
        async with scene() as s:
            await s.create(s.office, s.one, s.other)
            s.cluster.partition(s.office, s.one)
            s.cluster.partition(s.office, s.other)
            if not reaches_clients:
                s.cluster.partition(s.office, "clients")
            assert await s.write() <= BOUND_S
            assert s.controller in (s.one, s.other)
            assert s.state.leader in (s.one, s.other)
            s.cluster.heal()
            await s.until(lambda: len(s.state.isr) == 3)

    story()


@ottla.testing.simulated(seed=2)
async def test_a_leader_that_is_cut_off_makes_way():
    """The same where another is in office."""
    async with scene() as s:
        await s.create(s.one, s.other, s.office)
        s.cluster.partition(s.one, s.office)
        s.cluster.partition(s.one, s.other)
        assert await s.write() <= BOUND_S
        assert s.controller == s.office
        s.cluster.heal()
        await s.until(lambda: len(s.state.isr) == 3)


@ottla.testing.simulated(seed=3)
async def test_a_follower_that_is_cut_off_is_waited_for_no_longer_than_a_session():
    """What is acknowledged has to be with all in sync; then it is not in sync any more."""
    async with scene() as s:
        await s.create(s.one, s.other, s.office)
        s.cluster.partition(s.other, s.office)
        s.cluster.partition(s.other, s.one)
        assert await s.write() <= BOUND_S
        assert s.state.leader == s.one


@ottla.testing.simulated(seed=4)
async def test_a_controller_that_leads_nothing_and_is_cut_off_gives_the_office_up():
    """As soon as it has something to tell, and nobody can be told."""
    async with scene() as s:
        await s.create(s.one, s.other, s.office)
        s.cluster.partition(s.office, s.one)
        s.cluster.partition(s.office, s.other)
        await s.write()
        await s.until(lambda: s.controller in (s.one, s.other), 10.0)


@ottla.testing.simulated(seed=5)
async def test_who_cannot_be_told_that_it_leads_holds_its_partition_up_no_longer_than_a_session():
    """What the controller sends it is lost, what it sends arrives: another is elected."""
    async with scene(min_insync_replicas="1") as s:
        await s.create(s.one, s.other, s.office)
        s.cluster.partition(s.office, s.other, both_ways=False)
        await s.cluster.crash(s.one)
        assert await s.write() <= BOUND_S
        assert s.state.leader == s.office
        causes = [
            decision.cause
            for decision in s.brokers[s.office].parts.controller.decisions.of(PARTITION)
        ]
        assert f"broker {s.other} cannot be reached by the controller" in causes
        s.cluster.heal()
        await s.until(lambda: set(s.state.isr) == {s.office, s.other})


@ottla.testing.simulated(seed=6)
async def test_who_does_not_answer_the_controller_is_not_preferred():
    """It is asked before: nobody waits for a leader that does not know of it."""
    async with scene() as s:
        await s.create(s.one, s.other, s.office)
        await s.cluster.stop(s.one)
        await s.cluster.start(s.one)
        await s.until(lambda: len(s.state.isr) == 3)
        s.cluster.partition(s.office, s.one, both_ways=False)
        assert await s.elect_preferred() is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert s.state.leader == s.other
        assert await s.write() < 1.0
        s.cluster.heal()
        assert await s.elect_preferred() is None
        await s.until(lambda: s.state.leader == s.one)


@ottla.testing.simulated(seed=7)
async def test_who_does_not_answer_the_controller_is_not_given_back_what_it_led():
    """Nor by the timer that returns leaders home."""
    async with scene(
        auto_leader_rebalance_enable="true", leader_imbalance_check_interval_seconds="1"
    ) as s:
        await s.create(s.one, s.other, s.office)
        await s.cluster.stop(s.one)
        s.cluster.partition(s.office, s.one, both_ways=False)
        await s.cluster.start(s.one)
        await s.cluster.advance(seconds=10)
        assert s.state.leader == s.other
        assert await s.write() < 1.0
        s.cluster.heal()
        await s.until(lambda: s.state.leader == s.one)


@ottla.testing.simulated(seed=8)
async def test_who_leads_and_is_silent_to_the_controller_leads_on():
    """It knows that it leads, and is followed: there is nothing to mend by taking it away."""
    async with scene() as s:
        await s.create(s.one, s.other, s.office)
        s.cluster.partition(s.office, s.one, both_ways=False)
        await s.tell_everybody_something()
        # The one in office cannot follow, either.
        assert await s.write() <= BOUND_S
        for _ in range(10):
            await s.cluster.advance(seconds=1)
            assert await s.write() < 1.0
        assert s.state.leader == s.one
        assert s.state.leader_epoch == 0
        s.cluster.heal()
        await s.until(lambda: "something" in s.brokers[s.one].image.topics)


@ottla.testing.simulated(seed=9)
async def test_leaders_return_only_where_all_in_sync_can_be_told():
    """Who cannot be told does not follow the new leader, which would wait for it in vain."""
    async with scene(
        auto_leader_rebalance_enable="true", leader_imbalance_check_interval_seconds="30"
    ) as s:
        await s.create(s.one, s.other, s.office)
        await s.cluster.stop(s.one)
        await s.cluster.start(s.one)
        await s.until(lambda: len(s.state.isr) == 3)
        assert s.state.leader == s.other, "nothing has returned yet"
        s.cluster.partition(s.office, s.other, both_ways=False)
        # The one in office cannot follow, either.
        assert await s.write() <= BOUND_S
        for _ in range(20):
            await s.cluster.advance(seconds=2)
            assert await s.write() < 1.0
        assert s.state.leader == s.other
        s.cluster.heal()
        await s.until(lambda: s.state.leader == s.one)
