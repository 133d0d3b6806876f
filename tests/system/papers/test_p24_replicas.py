"""Replicas on several brokers: where they are placed, who is in sync, and what is announced."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster
from rig.wire_client import WireClient

import ottla.testing
from ottla.client import Producer, ProducerOptions
from ottla.testing.cluster import Cluster as InProcess
from ottla.testing.simulation.cluster import SimulatedCluster
from tests.system.cli.ottla_command import Command

from .clusters import Tree, active_controller, create, in_sync, until
from .raw import FETCH_VERSION, PRODUCE_VERSION, batch, fetch_request, produce, produce_request
from .test_p32_taking_office import Journal, journaling

NOT_LEADER = 6
DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_broker_tells_who_lives_and_leads_and_only_the_leader_takes_records(
    three: Cluster,
) -> None:
    """P5: one answer everywhere; a producer that goes straight to the leader is served."""
    create(three, "p5", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    told = [three.seen_by(number, ["p5"]) for number in three.members]
    assert told[0].ports == {number: member.port for number, member in three.members.items()}
    leaders = [{i: p.leader for i, p in seen.topics["p5"].items()} for seen in told]
    assert leaders == [{0: 1, 1: 2, 2: 3}] * 3
    assert [seen.ports for seen in told] == [told[0].ports] * 3
    with WireClient(three.members[1].port) as leader:
        assert produce(leader, "p5", batch(b"here")) == 0
    with WireClient(three.members[2].port) as follower:
        request = produce_request("p5", batch(b"not here"))
        answer = follower.call(request, PRODUCE_VERSION).responses[0].partition_responses[0]
        assert answer.error_code == NOT_LEADER


def test_readers_are_served_by_the_leader_unless_the_operator_says_otherwise(
    three: Cluster,
) -> None:
    """P28: by default no consumer is pointed elsewhere, and an old one is sent to the leader.

    Why is in the documents; reading from followers is an option (see integration/replication).
    """
    create(three, "p28", [[1, 2, 3]])
    with WireClient(three.members[1].port) as leader:
        produce(leader, "p28", batch(b"one"))
        request = fetch_request("p28", 0)
        request.rack_id = "elsewhere"
        answer = leader.call(request, FETCH_VERSION).responses[0].partitions[0]
        assert (answer.error_code, answer.preferred_read_replica) == (0, -1)
        assert b"one" in bytes(answer.records)
    with WireClient(three.members[2].port) as follower:
        answer = follower.call(fetch_request("p28", 0), 10).responses[0].partitions[0]
        assert answer.error_code == NOT_LEADER
    page = (DOCS / "explanation" / "durability.md").read_text()
    reasons = page.partition("## Reading from leaders only")[2].partition("\n## ")[0]
    for reason in ("the end of the log jump back", "every broker already serves its share"):
        assert reason in reasons
    assert "replica.selector.class" in reasons


def test_a_broker_that_lost_its_disk_is_in_sync_only_with_everything_again(
    local: Cluster,
) -> None:
    """P24: f + 1 replicas bear f failures; one comes back empty, and copies all before it joins."""
    create(local, "p24", [[1, 2, 3]], {"min.insync.replicas": "1"})
    with WireClient(local.members[1].port) as leader:
        for number in range(20):
            produce(leader, "p24", batch(b"%d" % number))
    local.members[3].kill()
    shutil.rmtree(local.members[3].logs)
    local.members[2].kill()
    until(lambda: in_sync(local, "p24") == (1,), "an ISR of one")
    with WireClient(local.members[1].port) as leader:
        assert produce(leader, "p24", batch(b"two of three are gone")) == 20
    local.members[3].start()
    local.members[2].start()
    local.wait_until_in_sync("p24")
    logs = [
        b"".join(file.read_bytes() for file in sorted((m.logs / "p24-0").glob("*.log")))
        for m in local.members.values()
    ]
    assert logs[0] == logs[1] == logs[2]
    local.members[1].kill()
    local.members[2].kill()
    until(lambda: in_sync(local, "p24") == (3,), "the one that lost its disk to lead")
    with WireClient(local.members[3].port) as leader:
        until(lambda: b"two of three are gone" in fetch_any(leader, "p24", 20), "its records")


def fetch_any(client: WireClient, topic: str, offset: int) -> bytes:
    """What a fetch brings; nothing while its leader is not ready."""
    answer = client.call(fetch_request(topic, offset), FETCH_VERSION)
    return bytes(answer.responses[0].partitions[0].records or b"")


def test_leaders_and_replicas_are_spread_and_leadership_returns(local: Cluster) -> None:
    """P26: each broker leads 4 of 12; after a death the others do; then those preferred."""
    admin = AdminClient({"bootstrap.servers": local.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("p26", 12, 2)])["p26"].result(90)
    local.wait_until_in_sync("p26")

    def leads() -> Counter[int]:
        running = local.running[0].number
        return Counter(p.leader for p in local.seen_by(running, ["p26"]).topics["p26"].values())

    seen = local.seen_by(1, ["p26"]).topics["p26"]
    assert leads() == {1: 4, 2: 4, 3: 4}
    assert Counter(number for p in seen.values() for number in p.replicas) == {1: 8, 2: 8, 3: 8}
    assert all(p.leader == p.replicas[0] for p in seen.values()), "the preferred one"
    local.members[3].kill()
    until(lambda: leads().keys() == {1, 2}, "the others to lead")
    assert sorted(leads().values()) in ([5, 7], [6, 6]), "its followers were spread, too"
    local.members[3].start()
    local.wait_until_in_sync("p26")
    Command(local.bootstrap)("partition", "elect", "--preferred", "--all")
    until(lambda: leads() == {1: 4, 2: 4, 3: 4}, "the preferred leaders")


def test_changes_are_collected_and_announced_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """P17: a leader of eight partitions that a follower joins again writes fewer notices."""
    journal: Journal = []
    monkeypatch.setattr("ottla.testing.cluster.MemoryStore", journaling(journal))

    async def scenario() -> None:
        async with InProcess(2) as cluster:
            await cluster.create_topic("t", assignments={index: [1, 2] for index in range(8)})
            await cluster.kill(2)
            await cluster.until(
                lambda: all((s := cluster.state("t", i)) and s.isr == (1,) for i in range(8))
            )
            journal.clear()
            await cluster.restart(2)
            await cluster.until(
                lambda: all((s := cluster.state("t", i)) and len(s.isr) == 2 for i in range(8))
            )
            notices = [what for _, what in journal if "/isr_change_" in what and "write" in what]
            assert 0 < len([w for w in notices if w.endswith("isr_change_")]) < 8

    asyncio.run(scenario())


def test_a_return_into_the_isr_is_announced_and_all_brokers_know(
    three: Cluster, tree: Tree
) -> None:
    """P17: a sequence node names the partitions whose states changed; the controller tells all."""
    away = next(number for number in three.members if number != active_controller(three))
    create(three, "p17", [sorted(three.members, key=lambda number: number == away)] * 3)
    announced: list[str] = []
    seen: set[str] = set()

    @tree.client.ChildrenWatch("/isr_change_notification")  # type: ignore[untyped-decorator]
    def look(names: list[str]) -> None:
        for name in names:
            if name not in seen:
                seen.add(name)
                announced.append(name)

    three.members[away].kill()
    until(lambda: all(away not in tree.state("p17", i)["isr"] for i in range(3)), "it to leave")
    three.members[away].start()
    three.wait_until_in_sync("p17")
    until(lambda: announced, "an announcement")
    assert all(name.startswith("isr_change_") for name in announced)
    until(lambda: tree.names("/isr_change_notification") == [], "all to be taken notice of")


LAG = {
    "replica.lag.time.max.ms": "10000",
    "broker.session.timeout.ms": "600000",
    "default.replication.factor": "3",
    "min.insync.replicas": "1",
}
IMPATIENT = ProducerOptions(request_timeout_ms=60_000, delivery_timeout_ms=600_000)


def states(cluster: SimulatedCluster) -> list[tuple[int, ...]]:
    """The ISR of both partitions, as every broker that runs has it."""
    world = cluster._world
    return [
        machine.broker.image.partition("t", index).isr
        for machine in world.machines.values()
        for index in (0, 1)
    ]


def test_a_stuck_follower_is_announced_out_within_half_the_limit_more() -> None:
    """P17, P16: both partitions' ISRs shrink after `replica.lag.time.max.ms`, at most 1.5 of it.

    In virtual time. The changes reach every broker by way of the controller.
    """

    @ottla.testing.simulated(seed=17)
    async def scenario() -> None:
        async with ottla.testing.simulate(3, LAG) as cluster:
            world = cluster._world
            await cluster.create_topic("t", partitions=2)
            async with Producer(cluster.bootstrap, **IMPATIENT) as producer:
                for index in (0, 1):
                    await producer.send_and_wait("t", b"all have it", partition=index)
                leaders = {world.leader_of(index).broker_id for index in (0, 1)}
                stuck = next(number for number in (1, 2, 3) if number not in leaders)
                cluster.pause(stuck)
                began_s = world.loop.time()
                sends = [
                    producer.send_and_wait("t", b"the others have it", partition=index)
                    for index in (0, 1)
                ]
                await asyncio.gather(*sends)
                took_s = world.loop.time() - began_s
            # Acknowledged once it is out, and not before.
            assert 9.0 < took_s < 15.5
            cluster.resume(stuck)
            await cluster.advance(seconds=20)
            assert {frozenset(isr) for isr in states(cluster)} == {frozenset({1, 2, 3})}

    scenario()


def test_a_topic_gets_the_default_number_of_replicas_and_the_lacking_are_listed(
    local: Cluster,
) -> None:
    """P33: `default.replication.factor` without a word; the partitions that lack one are listed.

    How many they are is the first number that health gives.
    """
    assert sorted(local.seen_by(1, ["p33"]).topics) == ["p33"]  # Asked for, and so created.
    local.wait_until_in_sync("p33")
    assert len(local.seen_by(1, ["p33"]).topics["p33"][0].replicas) == 3
    create(local, "p33-without", [[1, 2]])
    local.members[3].kill()
    until(lambda: 3 not in in_sync(local, "p33"), "it to leave")
    ask = Command(local.members[1].address)

    def listed() -> list[str]:
        rows = ask("topic", "describe", "--under-replicated", "-o", "json").json
        return [row["partition"] for row in rows if row["partition"].startswith("p33")]

    assert listed() == ["p33-0"]
    health = ask.try_to("cluster", "health")
    assert health.code == 1
    number = len(ask("topic", "describe", "--under-replicated", "-o", "json").json)
    assert f"{number} under-replicated, 0 offline" in health.out
    first = list(ask.try_to("cluster", "health", "-o", "json").json)
    counts = [name for name in first if name in ("under_replicated", "offline", "under_min_isr")]
    assert counts[0] == "under_replicated"
    local.members[3].start()
    local.wait_until_in_sync("p33")
    until(lambda: listed() == [], "nothing to list")


@pytest.mark.parametrize("copies", [1, 2])
def test_a_number_that_is_named_goes_before_the_default(three: Cluster, copies: int) -> None:
    """P33: the default is for topics that name no number of replicas."""
    admin = AdminClient({"bootstrap.servers": three.bootstrap, "log_level": 0})
    topic = f"p33-{copies}"
    admin.create_topics([NewTopic(topic, 1, copies)])[topic].result(90)
    three.wait_until_in_sync(topic)
    assert len(three.seen_by(1, [topic]).topics[topic][0].replicas) == copies
