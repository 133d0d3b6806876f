"""Topics of several brokers: created anywhere, deleted for good, grown, set, moved."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.broker.configs.configs import ResourceType
from ottla.broker.controller.requests import ElectionType
from ottla.metadata import paths
from ottla.metadata.topic_plan import RequestedTopic
from ottla.testing.cluster import Cluster
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.broker.broker_client import Client


def run(scenario):
    asyncio.run(scenario())


def test_any_broker_creates_grows_and_deletes_topics():
    """The one that is asked writes; the controller tells; the answer waits for its own image."""

    async def scenario():
        async with Cluster(3) as cluster:
            other = next(b for b in cluster.brokers.values() if not b.parts.controller.is_active)
            (outcome,) = await other.parts.metadata.topics.create([RequestedTopic("t", 2, 3)])
            assert outcome.error is None
            assert len(other.image.topics["t"].partitions) == 2
            await other.parts.metadata.topics.grow("t", 5)
            await cluster.until(lambda: cluster.state("t", 4) is not None)
            (outcome,) = await other.parts.metadata.topics.delete([other.image.topics["t"]])
            assert outcome.error is None
            await cluster.until(
                lambda: not any("t" in b.image.topics for b in cluster.brokers.values())
            )
            (outcome,) = await other.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
            assert outcome.error is None

    run(scenario)


def test_an_internal_topic_made_while_a_broker_is_away_has_all_its_replicas():
    """They are out of sync until it is back: nothing is left with fewer copies for ever."""

    async def scenario():
        async with Cluster(3) as cluster:
            away = next(i for i, b in cluster.brokers.items() if not b.parts.controller.is_active)
            await cluster.kill(away)
            await cluster.until(lambda: away not in cluster.any.image.brokers)
            topic = await cluster.any.parts.metadata.topics.auto_create("__consumer_offsets")
            here = {1, 2, 3} - {away}
            assert [set(p.replicas) for p in topic.partitions] == [{1, 2, 3}] * 4
            assert [set(p.isr) for p in topic.partitions] == [here] * 4
            assert {p.leader for p in topic.partitions} <= here
            await cluster.restart(away)
            await cluster.until(
                lambda: all(
                    (state := cluster.state("__consumer_offsets", index)) and len(state.isr) == 3
                    for index in range(4)
                )
            )

    run(scenario)


def test_topics_are_made_while_a_broker_is_away():
    """As in Kafka: it gets replicas outside the ISR, and joins it when it is back."""

    async def scenario():
        async with Cluster(3) as cluster:
            away = next(i for i, b in cluster.brokers.items() if not b.parts.controller.is_active)
            here = sorted({1, 2, 3} - {away})
            await cluster.create_topic("old", 1, 3)
            await cluster.kill(away)
            await cluster.until(lambda: away not in cluster.any.image.brokers)
            asked = cluster.brokers[here[0]]
            new = [RequestedTopic("t", 4, 3), RequestedTopic("u", 4, 2)]
            new.append(RequestedTopic("v", assignments={0: [away, here[1]]}))
            outcomes = await asked.parts.metadata.topics.create(new)
            assert [outcome.error for outcome in outcomes] == [None] * 3
            await asked.parts.metadata.topics.grow("old", 2)
            seen = asked.image.partition
            for name, index in [*(("t", n) for n in range(4)), ("old", 1)]:
                state = seen(name, index)
                assert (set(state.replicas), set(state.isr)) == ({1, 2, 3}, set(here))
                assert state.replicas[2] == away
            assert all(away not in seen("u", n).replicas for n in range(4))
            assert seen("v", 0).isr == (here[1],)
            await cluster.restart(away)
            every = [("t", 0), ("t", 3), ("old", 0), ("old", 1), ("v", 0)]
            await cluster.until(
                lambda: all(
                    (state := cluster.state(*name)) and set(state.isr) == set(state.replicas)
                    for name in every
                )
            )

    run(scenario)


def test_a_move_to_a_broker_that_is_away_waits_for_it():
    """As in Kafka: it is under way, and ends when the broker has caught up."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller
            other, third = (i for i in cluster.brokers if i != office.broker_id)
            await cluster.create_topic("t", assignments={0: [other]})
            await cluster.kill(third)
            await cluster.until(lambda: third not in office.image.brokers)
            name = TopicPartition("t", 0)
            assert await office.parts.controller.reassign({name: [third]}) == {name: None}
            await cluster.until(lambda: office.image.partition("t", 0).replicas == (third, other))
            assert office.image.partition("t", 0).leader == other
            await cluster.restart(third)
            await cluster.until(lambda: (s := cluster.state("t")) and s.replicas == (third,))
            assert cluster.leader("t") == third

    run(scenario)


def test_the_last_leader_is_remembered_after_a_shutdown_in_order():
    """As Kafka tells with DescribeTopicPartitions: no ISR, the ELR, and the last leader."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller
            first, second = (i for i in cluster.brokers if i != office.broker_id)
            await cluster.create_topic("one", assignments={0: [first]})
            two = {"min.insync.replicas": "2"}
            await cluster.create_topic("two", settings=two, assignments={0: [first, second]})
            await cluster.shut_down(first)
            await cluster.until(lambda: told(office, "one") == ((), (first,), (first,)))
            await cluster.until(lambda: told(office, "two") == ((second,), (first,), ()))
            await cluster.shut_down(second)
            await cluster.until(lambda: told(office, "two") == ((), (first, second), (second,)))
            await cluster.restart(first)
            await cluster.until(lambda: cluster.leader("one") == cluster.leader("two") == first)

    def told(broker, topic):
        state = broker.image.partition(topic, 0)
        return state.isr, state.elr, state.last_known_elr

    run(scenario)


def test_clients_of_metadata_0_are_given_only_replicas_that_live():
    """With REPLICA_NOT_AVAILABLE; from version 1 on all replicas are told, without an error."""

    async def scenario():
        async with Cluster(2) as cluster:
            await cluster.create_topic("t", assignments={0: [1, 2]})
            await cluster.kill(2)
            await cluster.until(lambda: cluster.state("t").isr == (1,))
            client = await Client.connect(cluster.any.port)
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            told = []
            for version in (0, 1):
                (topic,) = (await client.call(request, version)).topics
                told += [(p.error_code, p.replica_nodes, p.isr_nodes) for p in topic.partitions]
            assert told == [(ErrorCode.REPLICA_NOT_AVAILABLE, [1], [1]), (0, [1, 2], [1])]

    run(scenario)


def test_two_that_create_the_same_topic_make_one():
    """One is told that it exists; automatic creation gives both the same."""

    async def scenario():
        async with Cluster(2) as cluster:
            topics = [broker.parts.metadata.topics for broker in cluster.brokers.values()]
            outcomes = await asyncio.gather(
                *(t.create([RequestedTopic("t", 1, 1)]) for t in topics)
            )
            codes = sorted(o.error.code if o.error else 0 for (o,) in outcomes)
            assert codes == [0, ErrorCode.TOPIC_ALREADY_EXISTS]
            first, second = await asyncio.gather(*(t.auto_create("u") for t in topics))
            assert first.id == second.id

    run(scenario)


def test_a_deletion_waits_for_a_dead_replica_and_ends_when_it_is_back():
    """Clients lose sight of the topic at once; the store forgets it when all replicas are gone."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [1, 2, 3]})
            dead = next(i for i, b in cluster.brokers.items() if not b.parts.controller.is_active)
            await cluster.kill(dead)
            await cluster.until(lambda: dead not in cluster.any.image.brokers)
            topic = cluster.any.image.topics["t"]
            (outcome,) = await cluster.any.parts.metadata.topics.delete([topic])
            assert outcome.error is None
            assert paths.topic("t") in cluster.tree.entries
            epoch = cluster.controller.parts.controller.epoch
            cluster.controller.parts.cluster.membership.session.expire()
            await cluster.until(
                lambda: (
                    cluster.controller is not None
                    and cluster.controller.parts.controller.epoch > epoch
                )
            )
            await cluster.restart(dead)
            await cluster.until(lambda: paths.topic("t") not in cluster.tree.entries)
            assert paths.topic_mark(topic.id) not in cluster.tree.entries
            assert paths.topic_deletion("t") not in cluster.tree.entries

    run(scenario)


def test_settings_of_a_topic_hold_on_all_brokers_at_once():
    """Through /config/changes, wherever they were changed."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", 1, 3)
            change = [Alteration("min.insync.replicas", AlterOperation.SET, "2")]
            asked = cluster.brokers[3].parts.configs.configs
            await asked.alter(ResourceType.TOPIC, "t", change, validate_only=False)
            await cluster.until(
                lambda: all(
                    b.image.topics["t"].configs.get("min.insync.replicas") == "2"
                    for b in cluster.brokers.values()
                )
            )

    run(scenario)


def test_allowing_unclean_elections_elects_at_once():
    """A partition that is offline gets a leader when the setting lets it; it is counted."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller
            others = [i for i in cluster.brokers if i != office.broker_id]
            await cluster.create_topic("t", assignments={0: [*others, office.broker_id]})
            await isolate(cluster, office, others)
            change = [Alteration("unclean.leader.election.enable", AlterOperation.SET, "true")]
            await office.parts.configs.configs.alter(
                ResourceType.TOPIC, "t", change, validate_only=False
            )
            await cluster.until(lambda: cluster.leader("t") == office.broker_id)
            assert cluster.state("t").isr == (office.broker_id,)
            decisions = office.parts.controller.decisions.of(TopicPartition("t", 0))
            assert decisions[-1].setting == "unclean.leader.election.enable"

    async def isolate(cluster, office, others):
        """The office's replica out of the ISR, the others dead."""
        state = cluster.tree.entries[paths.partition_state("t", 0)]
        ids = ",".join(map(str, others))
        state.data = state.data.replace(
            f'"isr":[{ids},{office.broker_id}]'.encode(), f'"isr":[{ids}]'.encode()
        )
        office.parts.controller.on_rules_changed()
        # At once, because a new leader would take the office's replica into its ISR again.
        await asyncio.gather(*(cluster.kill(broker_id) for broker_id in others))
        await cluster.until(lambda: cluster.leader("t") is None and cluster.state("t").isr == ())

    run(scenario)


def test_a_preferred_leader_takes_its_place_by_command():
    """KIP-183; where it leads already the election is not needed."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [1, 2]})
            name = TopicPartition("t", 0)
            await cluster.until(lambda: cluster.state("t") is not None)
            state = cluster.state("t")
            office = cluster.controller.parts.controller
            outcomes = await office.elect(ElectionType.PREFERRED, [name])
            assert outcomes[name].code is ErrorCode.ELECTION_NOT_NEEDED
            await office.reassign({name: [2, 1]})
            await cluster.until(lambda: cluster.state("t") not in (None, state))
            assert cluster.leader("t") == 1
            assert await office.elect(ElectionType.PREFERRED, None) == {name: None}
            await cluster.until(lambda: cluster.leader("t") == 2)

    run(scenario)


def test_a_move_survives_the_death_of_the_controller():
    """What moves stands in the topic; the next controller ends it when the new ones are in sync."""

    async def scenario():
        async with Cluster(3) as cluster:
            office = cluster.controller
            other, third = (i for i in cluster.brokers if i != office.broker_id)
            await cluster.create_topic("t", assignments={0: [other]})
            name = TopicPartition("t", 0)
            # `third` cannot catch up while it is dead.
            await cluster.kill(third)
            await cluster.until(lambda: third not in office.image.brokers)
            outcomes = await office.parts.controller.reassign({name: [9]})
            assert outcomes[name].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert await office.parts.controller.reassign({name: [third]}) == {name: None}
            await cluster.restart(third)
            await cluster.kill(office.broker_id)
            await cluster.until(lambda: cluster.controller is not None)
            node = cluster.tree.entries[paths.topic("t")]
            assert b'"adding_replicas":{"0":' in node.data or b'"0":[%d]' % third in node.data

    run(scenario)


def test_a_controller_of_the_past_is_refused():
    """S14, P31: its writes fail in the store, its messages at the brokers; it resigns."""

    async def scenario():
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", assignments={0: [1, 2, 3]})
            zombie = cluster.controller
            name = TopicPartition("t", 0)
            # Another takes office behind its back: it has not heard of it yet.
            zombie.parts.controller._watch.cancel()
            entry = cluster.tree.entries[paths.CONTROLLER_EPOCH]
            entry.version += 1
            with pytest.raises(OttlaError) as raised:
                await zombie.parts.controller.reassign({name: [3, 2, 1]})
            assert raised.value.code is ErrorCode.NOT_CONTROLLER
            assert not zombie.parts.controller.is_active
            stale = zombie.parts.cluster.fence.controller_epoch
            zombie.parts.cluster.fence.check(2, stale + 1, -1)
            with pytest.raises(OttlaError) as raised:
                zombie.parts.cluster.fence.check(1, stale, -1)
            assert raised.value.code is ErrorCode.STALE_CONTROLLER_EPOCH

    run(scenario)
