"""Kafka's own command-line tools (4.3) on three brokers, of which some die."""

import itertools
import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig import tools as t
from rig.clusters import Cluster
from rig.metadata import Seen
from rig.tools import Tools

Run = Callable[..., t.Ran]
MakeTopic = Callable[..., str]
_numbers = itertools.count(1)


@pytest.fixture
def run(jvm: Tools, whole: Cluster) -> Run:
    """Run a tool against those brokers that run: `run(t.TOPICS, "--list")`."""

    def tool(name: str, *arguments: object) -> t.Ran:
        bootstrap = ",".join(member.address for member in whole.running)
        return jvm.run(name, "--bootstrap-server", bootstrap, *arguments)

    return tool


@pytest.fixture
def make_topic(whole: Cluster) -> Iterator[MakeTopic]:
    """Creates a topic: `make_topic([1, 2], [3])` has two partitions on these brokers."""
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    made = []

    def make(*replicas: list[int], **configs: str) -> str:
        name = f"spread-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = NewTopic(name, len(replicas), replica_assignment=list(replicas), config=settings)
        admin.create_topics([new])[name].result(120)
        whole.wait_until_in_sync(name)
        made.append(name)
        return name

    yield make
    for future in admin.delete_topics(made).values():
        future.result(120)


def state(cluster: Cluster, topic: str, index: int = 0) -> tuple[int, set[int]]:
    """Leader and ISR of a partition, as one of the brokers sees them."""
    seen = cluster.seen_by(cluster.running[0].number, [topic]).topics[topic][index]
    return seen.leader, set(seen.isr)


def wait_for(
    cluster: Cluster, topic: str, replicas: set[int], *, leader: int | None = None
) -> None:
    """Wait until all brokers see that the first partition has these replicas, all in sync.

    A tool asks any of them; each hears of a change in its own time, as with Kafka.
    """

    def there(seen: Seen) -> bool:
        partition = seen.topics[topic][0]
        return set(partition.replicas) == set(partition.isr) == replicas and leader in (
            None,
            partition.leader,
        )

    cluster.wait_until(lambda: cluster.agree(there, [topic]), f"{topic} on {replicas}")


def end(cluster: Cluster, number: int, topic: str, leader: int, *others: str) -> None:
    """Kill a broker, and wait until all see who leads the first partition then.

    And that the broker leads no partition of `others`.
    """

    def settled(seen: Seen) -> bool:
        first = seen.topics[topic][0]
        led = [p.leader for other in others for p in seen.topics[other].values()]
        return first.leader == leader and number not in first.isr and number not in led

    cluster.members[number].send(signal.SIGKILL)
    cluster.wait_until(lambda: not cluster.members[number].alive(), f"the end of broker {number}")
    cluster.wait_until(lambda: cluster.agree(settled, [topic, *others]), f"{topic} led by {leader}")


def bring_back(cluster: Cluster, number: int, *topics: str) -> None:
    cluster.members[number].start()
    for topic in topics:
        cluster.wait_until_in_sync(topic)


def reassignment(path: Path, topic: str, *replicas: list[int]) -> Path:
    partitions = [{"topic": topic, "partition": i, "replicas": r} for i, r in enumerate(replicas)]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def codes_of_large(cluster: Cluster, topic: str, partitions: int) -> set[int | None]:
    """What the leaders answer to a record of 5,000 bytes; None where it is taken."""
    codes: list[int | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0, "acks": 1})
    for index in range(partitions):
        producer.produce(
            topic,
            b"x" * 5000,
            partition=index,
            on_delivery=lambda error, _message: codes.append(error.code() if error else None),
        )
    assert producer.flush(120) == 0
    assert len(codes) == partitions
    return set(codes)


def test_topic_tool_tells_what_lacks_replicas_and_what_nobody_leads(
    whole: Cluster, run: Run, make_topic: MakeTopic
) -> None:
    """Each filter names the partitions concerned, and none once the broker is back."""
    spread = make_topic([1, 2, 3], min_insync_replicas="3")
    lonely = make_topic([3], min_insync_replicas="1")
    filters = (
        "--under-replicated-partitions",
        "--under-min-isr-partitions",
        "--unavailable-partitions",
    )

    def lacking(which: str) -> set[str]:
        return set(re.findall(r"Topic: (\S+)", run(t.TOPICS, "--describe", which).ok()))

    assert [lacking(which) & {spread, lonely} for which in filters] == [set(), set(), set()]
    end(whole, 3, spread, 1, lonely)
    told = [lacking(which) & {spread, lonely} for which in filters]
    bring_back(whole, 3, spread, lonely)

    assert spread in told[0]
    assert spread in told[1]
    assert told[2] == {lonely}
    assert [lacking(which) & {spread, lonely} for which in filters] == [set(), set(), set()]


def test_partitions_are_planned_moved_and_verified(
    whole: Cluster, run: Run, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """kafka-reassign-partitions: generate, execute what was generated, verify, list."""
    topic = make_topic([1, 2])
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))

    planned = run(
        t.REASSIGN, "--topics-to-move-json-file", wanted, "--broker-list", "3", "--generate"
    )
    assert planned.exit_code == 1
    assert "replication factor of 2 cannot be reached" in planned.out + planned.err
    plan = run(
        t.REASSIGN, "--topics-to-move-json-file", wanted, "--broker-list", "2,3", "--generate"
    ).ok()
    file = tmp_path / "plan.json"
    file.write_text(plan.strip().splitlines()[-1])
    assert (
        "Successfully started"
        in run(t.REASSIGN, "--reassignment-json-file", file, "--execute").ok()
    )
    wait_for(whole, topic, {2, 3})
    verified = run(t.REASSIGN, "--reassignment-json-file", file, "--verify").ok()

    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "No partition reassignments found." in run(t.REASSIGN, "--list").ok()


def test_move_that_cannot_end_is_cancelled(
    whole: Cluster, run: Run, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The only replica is on a dead broker: the move waits for it, is told of, and taken back."""
    spread, lonely = make_topic([1, 2, 3]), make_topic([3])
    end(whole, 3, spread, 1, lonely)
    file = reassignment(tmp_path / "move.json", lonely, [1])

    run(t.REASSIGN, "--reassignment-json-file", file, "--execute").ok()
    during = run(t.REASSIGN, "--list").ok()
    cancelled = run(t.REASSIGN, "--reassignment-json-file", file, "--cancel").ok()
    after = run(t.REASSIGN, "--list").ok()
    bring_back(whole, 3, spread)
    wait_for(whole, lonely, {3}, leader=3)

    assert re.search(rf"{lonely}-0: replicas: 1,3\. adding: 1\. removing: 3\.", during), during
    assert "Successfully cancelled" in cancelled
    assert "No partition reassignments found." in after


def test_a_broker_that_is_gone_is_unregistered(
    whole: Cluster, jvm: Tools, make_topic: MakeTopic
) -> None:
    """kafka-cluster unregister: a second time there is nothing to forget; it may come back."""
    topic = make_topic([1, 2, 3])
    end(whole, 3, topic, 1)

    def unregister() -> t.Ran:
        bootstrap = whole.running[0].address
        return jvm.run(t.CLUSTER, "unregister", "--bootstrap-server", bootstrap, "--id", 3)

    first, second = unregister(), unregister()
    bring_back(whole, 3, topic)

    assert "Broker 3 is no longer registered." in first.ok()
    assert second.exit_code == 1
    assert "Broker ID 3 is not registered" in second.err


def test_leaders_are_elected_preferred_and_unclean(
    whole: Cluster, run: Run, make_topic: MakeTopic
) -> None:
    """kafka-leader-election: back to the first replica; and one that lacks records, when asked."""
    topic, other = make_topic([2, 1]), make_topic([3, 2], min_insync_replicas="1")
    where = ("--topic", topic, "--partition", 0)
    end(whole, 2, topic, 1)
    whole.wait_until(lambda: state(whole, other) == (3, {3}), "3 alone in sync")
    producer = Producer({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    producer.produce(other, b"3 alone has this")
    assert producer.flush(120) == 0
    end(whole, 3, other, -1)
    bring_back(whole, 2, topic)
    preferred = run(t.LEADER_ELECTION, "--election-type", "preferred", *where).ok()
    whole.wait_until(lambda: state(whole, topic)[0] == 2, "2 leads again")
    unclean = run(
        t.LEADER_ELECTION, "--election-type", "unclean", "--topic", other, "--partition", 0
    ).ok()
    whole.wait_until(lambda: state(whole, other)[0] == 2, "2 elected, though it lacks a record")
    again = run(t.LEADER_ELECTION, "--election-type", "preferred", *where)
    bring_back(whole, 3, topic, other)

    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in (
        preferred
    )
    assert f"Successfully completed leader election (UNCLEAN) for partitions {other}-0" in unclean
    assert "Valid replica already elected" in again.out + again.err


def test_settings_changed_once_hold_on_all_brokers(
    whole: Cluster, run: Run, make_topic: MakeTopic
) -> None:
    """kafka-configs for a topic, and for all brokers by default: every leader obeys."""
    topic, plain = (make_topic([1], [2], [3]) for _ in range(2))
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    of_brokers = ("--entity-type", "brokers", "--entity-default")

    # A tool asks any broker: one that has not heard of a change describes what was, as with Kafka.
    refused, taken = {KafkaError.MSG_SIZE_TOO_LARGE}, {None}
    run(t.CONFIGS, *of_topic, "--alter", "--add-config", "max.message.bytes=2000").ok()
    whole.wait_until(
        lambda: codes_of_large(whole, topic, 3) == refused, "the topic's limit on all brokers"
    )
    described = run(t.CONFIGS, *of_topic, "--describe").ok()
    assert codes_of_large(whole, plain, 3) == taken
    run(t.CONFIGS, *of_brokers, "--alter", "--add-config", "message.max.bytes=3000").ok()
    whole.wait_until(
        lambda: codes_of_large(whole, plain, 3) == refused, "the default on all brokers"
    )
    defaults = run(t.CONFIGS, *of_brokers, "--describe").ok()
    run(t.CONFIGS, *of_brokers, "--alter", "--delete-config", "message.max.bytes").ok()
    whole.wait_until(lambda: codes_of_large(whole, plain, 3) == taken, "the default taken back")

    assert "max.message.bytes=2000" in described
    assert "message.max.bytes=3000" in defaults


def test_every_broker_is_told_of(
    whole: Cluster, run: Run, jvm: Tools, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Versions, endpoints, log directories, offsets, deleted records: of leaders anywhere."""
    topic = make_topic([1, 2], [2, 3], [3, 1])
    fill(whole, topic, 3)
    file = tmp_path / "offsets.json"
    wanted = [{"topic": topic, "partition": i, "offset": i + 1} for i in range(3)]
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))

    versions = run(t.API_VERSIONS).ok()
    endpoints = jvm.run(t.CLUSTER, "list-endpoints", "--bootstrap-server", whole.bootstrap).ok()
    disks = json.loads(run(t.LOG_DIRS, "--describe", "--topic-list", topic).lines()[-1])
    latest = run(t.OFFSETS, "--topic", topic).ok().split()
    run(t.DELETE_RECORDS, "--offset-json-file", file).ok()
    earliest = run(t.OFFSETS, "--topic", topic, "--time", "earliest").ok().split()

    ports = [member.port for member in whole.members.values()]
    assert [port for port in ports if f":{port} (id: " not in versions] == []
    assert [port for port in ports if not re.search(rf"\b{port}\b", endpoints)] == []
    held = {
        broker["broker"]: sorted(
            partition["partition"]
            for folder in broker["logDirs"]
            for partition in folder["partitions"]
        )
        for broker in disks["brokers"]
    }
    assert held == {
        1: [f"{topic}-0", f"{topic}-2"],
        2: [f"{topic}-0", f"{topic}-1"],
        3: [f"{topic}-1", f"{topic}-2"],
    }
    assert sorted(latest) == [f"{topic}:{i}:10" for i in range(3)]
    assert sorted(earliest) == [f"{topic}:{i}:{i + 1}" for i in range(3)]


def test_groups_are_told_of_and_changed_wherever_they_are_coordinated(
    whole: Cluster, run: Run, make_topic: MakeTopic
) -> None:
    """kafka-consumer-groups: groups of all brokers; what one remembers survives its coordinator."""
    topic = make_topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
    fill(whole, topic, 3)
    groups = [f"{topic}-group-{number}" for number in range(5)]
    for offset, group in enumerate(groups):
        place = ("--reset-offsets", "--topic", topic, "--to-offset", offset, "--execute")
        run(t.GROUPS, "--group", group, *place).ok()

    listed = run(t.GROUPS, "--list").ok().split()
    described = run(t.GROUPS, "--describe", "--all-groups", "--offsets").ok()
    assert set(groups) <= set(listed)
    assert [places(described, group, topic) for group in groups] == [
        [(index, offset, 10) for index in range(3)] for offset in range(5)
    ]

    lasting, going = groups[3:]
    dead = coordinator(run, lasting)
    other, third = (number for number in whole.members if number != dead)
    watched = make_topic([dead, other, third])
    end(whole, dead, watched, other, topic)
    after = run(t.GROUPS, "--describe", "--group", lasting, "--offsets").ok()
    successor = coordinator(run, lasting)
    run(t.GROUPS, "--delete-offsets", "--group", lasting, "--topic", f"{topic}:1").ok()
    kept = run(t.GROUPS, "--describe", "--group", lasting, "--offsets").ok()
    run(t.GROUPS, "--delete", "--group", going).ok()
    left = run(t.GROUPS, "--list").ok().split()
    bring_back(whole, dead, watched, topic)

    assert places(after, lasting, topic) == [(index, 3, 10) for index in range(3)]
    assert successor in (other, third)
    assert places(kept, lasting, topic) == [(0, 3, 10), (2, 3, 10)]
    assert going not in left
    assert set(groups) - {going} <= set(left)


def fill(cluster: Cluster, topic: str, partitions: int) -> None:
    """Write ten records to each partition."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(10 * partitions):
        producer.produce(topic, b"value", partition=number % partitions)
    assert producer.flush(120) == 0


def places(described: str, group: str, topic: str) -> list[tuple[int, int, int]]:
    """Partition, committed offset and log end of each row of a group."""
    found = re.findall(rf"^{group}\s+{topic}\s+(\d+)\s+(\d+)\s+(\d+)", described, re.MULTILINE)
    return sorted((int(index), int(offset), int(end)) for index, offset, end in found)


def coordinator(run: Run, group: str) -> int:
    """The broker that the tool says coordinates a group."""
    told = run(t.GROUPS, "--describe", "--group", group, "--state").ok()
    found = re.search(rf"^{group}\s+\S+\s+\((\d+)\)", told, re.MULTILINE)
    assert found is not None, told
    return int(found[1])
