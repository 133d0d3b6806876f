"""The scenes of docs/complaints.toml: each makes a complaint come true before its command runs."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as OffsetOf

import ottla.testing
from ottla.client import TopicPartition, sync
from ottla.record.dead_letters import DeadLetter, letter_headers
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.cluster import Cluster
from tests.system.cli.command_here import CommandHere
from tests.system.cli.threaded_cluster import ThreadedCluster

_PATIENCE_S = 120
# Each record is a segment, and too many as soon as it is written.
_SMALL = {"internal.segment.bytes": "100", "retention.ms": "-1", "retention.bytes": "0"}


@dataclass
class Scene:
    """A broker, three others, and a folder that is the current one."""

    broker: ottla.testing.Broker
    cluster: ThreadedCluster
    folder: Path
    # What has to be undone after the command.
    until_answered: ExitStack = field(default_factory=ExitStack)
    # The broker of a single complaint.
    own: ottla.testing.Broker | None = None

    @property
    def run(self) -> CommandHere:
        return CommandHere(self.broker.bootstrap)

    def topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self.broker.create_topic(name, partitions, named)

    def send(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        with sync.Producer(self.broker.bootstrap) as producer:
            for value in values:
                producer.send(topic, value, key, partition=0)
                producer.flush()

    def stand(self, group: str, topic: str, offset: int) -> None:
        with sync.Admin(self.broker.bootstrap) as admin:
            admin.groups.set_offsets(group, {TopicPartition(topic, 0): offset})

    def begun(self, topic: str, transactional_id: str) -> Producer:
        """A producer with a record in an open transaction."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "transactional.id": transactional_id,
                "log_level": 0,
            }
        )
        producer.init_transactions(_PATIENCE_S)
        producer.begin_transaction()
        producer.produce(topic, b"open", partition=0)
        assert producer.flush(_PATIENCE_S) == 0
        return producer

    def load(self, topic: str, count: int, *words: str) -> None:
        """Send so many records, and load them into lake/TOPIC."""
        self.send(topic, *(b"%d" % number for number in range(count)))
        self.run("lake", "load", topic, "--to", f"lake/{topic}", "--here", *words)


# What the command gets on its standard input.
Given = bytes | None
SCENES: dict[int, Callable[[Scene], Given]] = {}
# The complaints of clusters: the command talks to the three brokers.
OF_CLUSTER = {15, 18, 19, 40, 45}


def scene(*numbers: int) -> Callable[[Callable[[Scene], Given]], Callable[[Scene], Given]]:
    """Enter a function as the scene of these complaints."""

    def enter(function: Callable[[Scene], Given]) -> Callable[[Scene], Given]:
        SCENES.update(dict.fromkeys(numbers, function))
        return function

    return enter


@scene(2, 17, 20, 32)
def nothing(_: Scene) -> Given:
    """The complaint is about any broker, or about none."""
    return None


@scene(64)
def agent(_: Scene) -> Given:
    """An agent that connects."""
    client = {"name": "agent", "version": "1"}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    return f"{json.dumps(message)}\n".encode()


@scene(1)
def fast_test(s: Scene) -> Given:
    (s.folder / "test_fast.py").write_text(
        "from ottla.client.sync import Producer\n\n"
        "def test_it(ottla_broker):\n"
        "    with Producer(ottla_broker.bootstrap) as producer:\n"
        "        producer.send('greetings', b'hello')\n"
    )
    return None


@scene(31)
def test_without_sleep(s: Scene) -> Given:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "test-your-program.md"
    block = page.read_text().split("```python test_adder.py\n")[1].split("```")[0]
    (s.folder / "test_no_sleep.py").write_text(block)
    return None


def _member(s: Scene, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": s.broker.bootstrap,
            "group.id": group,
            "partition.assignment.strategy": "range",
            "log_level": 0,
        }
    )


def _settle(members: Sequence[Consumer]) -> None:
    while not all(member.assignment() for member in members):
        for member in members:
            member.poll(0.05)


@scene(4)
def rebalances(s: Scene) -> Given:
    s.topic("stormy", 2)
    first, second = _member(s, "storm"), _member(s, "storm")
    first.subscribe(["stormy"])
    _settle([first])
    second.subscribe(["stormy"])
    _settle([first, second])
    second.close()
    while len(first.assignment()) < 2:
        first.poll(0.05)
    first.close()
    return None


@scene(5)
def lag(s: Scene) -> Given:
    s.topic("late", internal_segment_bytes="100", retention_ms="86400000")
    s.send("late", *[b"value"] * 4)
    s.stand("laggard", "late", 1)
    return None


@scene(6)
def committed(s: Scene) -> Given:
    s.topic("rewind")
    s.send("rewind", *[b"value"] * 4)
    s.stand("rewound", "rewind", 3)
    return None


@scene(7)
def held(s: Scene) -> Given:
    s.topic("held", ottla_retention_hold_groups="slow", **_SMALL)
    s.send("held", *[b"value"] * 4)
    s.stand("slow", "held", 1)
    s.broker.apply_retention()
    return None


@scene(8)
def gaps(s: Scene) -> Given:
    s.topic("gaps")
    s.begun("gaps", "gaps").abort_transaction(_PATIENCE_S)
    s.send("gaps", b"value")
    return None


@scene(9, 58)
def table(s: Scene) -> Given:
    s.load("exact", 20)
    return None


@scene(10)
def loaded_before(s: Scene) -> Given:
    s.load("clock", 3)
    return None


@scene(11)
def small_files(s: Scene) -> Given:
    for _ in range(2):
        s.load("small", 3)
    return None


@scene(12)
def dead_letters(s: Scene) -> Given:
    s.topic("tasks")
    s.topic("dlq.tasks")
    s.send("tasks", b"work")
    letter = DeadLetter("tasks", 0, 0, "workers", "Offset rejected by client.")
    with sync.Producer(s.broker.bootstrap) as producer:
        producer.send("dlq.tasks", None, partition=0, headers=letter_headers(letter))
    return None


@scene(13)
def other_schema(s: Scene) -> Given:
    s.send("typed", b'{"n": 1}', b'{"n": "one"}')
    return None


@scene(14)
def compacted(s: Scene) -> Given:
    s.topic("planes", cleanup_policy="compact")
    s.send("planes", b"value", key=b"key")
    return None


@scene(15)
def full_disk(s: Scene) -> Given:
    def limit(capacity_bytes: int | None) -> None:
        def set_limit(cluster: Cluster) -> bool:
            disk = cluster.brokers[3].storage.filesystem
            assert isinstance(disk, MemoryFileSystem)
            disk.capacity_bytes = capacity_bytes
            return True

        s.cluster.until(set_limit)

    limit(1000)
    s.until_answered.callback(limit, None)
    return None


@scene(21)
def endless(s: Scene) -> Given:
    s.send("endless", b"value")
    return None


@scene(16)
def stuck(s: Scene) -> Given:
    s.topic("stuck")
    _kept.append(s.begun("stuck", "stuck-job"))
    return None


@scene(44)
def dead_job(s: Scene) -> Given:
    s.topic("dead")
    s.stand("held-back", "dead", 0)
    _kept.append(s.begun("dead", "dead-job"))
    return None


# Producers whose transactions stay open.
_kept: list[Producer] = []


@scene(3)
def unreachable(s: Scene) -> Given:
    address = "PLAINTEXT://no-such-host.invalid:9092"
    s.own = ottla.testing.Broker(settings={"advertised.listeners": address})
    s.until_answered.enter_context(s.own)
    return None


@scene(37)
def hung(s: Scene) -> Given:
    """A member that may not reset, at an offset that the log does not have."""
    s.topic("hanging")
    s.send("hanging", b"value")
    s.stand("hung", "hanging", 999)
    member = Consumer(
        {
            "bootstrap.servers": s.broker.bootstrap,
            "group.id": "hung",
            "client.id": "adder",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    s.until_answered.callback(member.close)
    member.subscribe(["hanging"])
    while (message := member.poll(0.1)) is None:
        pass
    assert message.error() is not None
    return None


@scene(40)
def refused(s: Scene) -> Given:
    """A producer whose records time out, because a replica is down."""
    s.cluster.create_topic("billing", [1, 3], settings={"min.insync.replicas": "2"})
    s.cluster.kill(3)
    s.until_answered.callback(s.cluster.restart, 3)
    producer = Producer(
        {
            "bootstrap.servers": s.cluster.bootstrap,
            "client.id": "billing",
            "message.timeout.ms": 3000,
            "log_level": 0,
        }
    )
    producer.produce("billing", b"value")
    assert producer.flush(_PATIENCE_S) == 0
    return None


@scene(46)
def used(s: Scene) -> Given:
    s.topic("used")
    s.send("used", b"value")
    reader = Consumer(
        {
            "bootstrap.servers": s.broker.bootstrap,
            "client.id": "reporting",
            "group.id": "reports",
            "log_level": 0,
        }
    )
    reader.assign([OffsetOf("used", 0, 0)])
    while reader.poll(0.1) is None:
        pass
    reader.close()
    return None


@scene(18)
def uneven(s: Scene) -> Given:
    s.cluster.create_topic("uneven", [1, 2], [1, 2], [1, 2])
    return None


@scene(19)
def alone(s: Scene) -> Given:
    s.cluster.create_topic("alone", [3])
    return None


@scene(45)
def halved(s: Scene) -> Given:
    s.cluster.create_topic("halved", [1, 2])
    s.cluster.kill(2)
    return None


@scene(22)
def quick(s: Scene) -> Given:
    s.send("quick", *[b"value"] * 10)
    return None


@scene(23)
def tight(s: Scene) -> Given:
    s.topic("tight", max_message_bytes="1000")
    return b"x" * 2000


@scene(24)
def skipped(s: Scene) -> Given:
    s.topic("gone", **_SMALL)
    s.send("gone", *[b"value"] * 4)
    s.stand("skipped", "gone", 1)
    s.broker.apply_retention()
    return None


@scene(25)
def words(s: Scene) -> Given:
    s.topic("words")
    s.send("words", b"hay", b"needle", b"hay")
    return None


@scene(28)
def behind(s: Scene) -> Given:
    s.load("behind", 3)
    s.send("behind", *[b"value"] * 5)
    return None


@scene(29)
def erased(s: Scene) -> Given:
    s.topic("people", cleanup_policy="compact")
    s.send("people", b"Prague", key=b"max")
    s.run("produce", "people", "-K", "=", "--null", "-", stdin="max=-\n")
    return None


@scene(50)
def tombstones(s: Scene) -> Given:
    s.topic("tombs", cleanup_policy="compact")
    s.send("tombs", b"value", key=b"key")
    s.run("produce", "tombs", "-K", "=", "--null", "-", stdin="key=-\n")
    s.run("topic", "compact", "tombs", "--now", "--wait")
    return None


@scene(38)
def resumed(s: Scene) -> Given:
    s.load("resumed", 10)
    s.load("resumed", 5)
    return None


@scene(41)
def old(s: Scene) -> Given:
    s.topic("old", retention_ms="86400000", internal_segment_bytes="100")
    with sync.Producer(s.broker.bootstrap) as producer:
        for _ in range(3):
            producer.send("old", b"value", partition=0, timestamp_ms=1_000_000_000_000)
            producer.flush()
    s.broker.apply_retention()
    return None


@scene(48)
def many_groups(s: Scene) -> Given:
    s.topic("popular")
    with sync.Admin(s.broker.bootstrap) as admin:
        for number in range(1000):
            admin.groups.set_offsets(f"many-{number}", {TopicPartition("popular", 0): 0})
    return None


@scene(49)
def exported(s: Scene) -> Given:
    s.send("original", b"one", b"two", b"three")
    slice_ = s.run("consume", "original", "--json").out
    assert [json.loads(line)["value"] for line in slice_.splitlines()] == ["one", "two", "three"]
    return slice_.encode()


@scene(57)
def damaged(s: Scene) -> Given:
    s.load("damaged", 20)
    (file,) = (s.folder / "lake" / "damaged").rglob("*.parquet")
    file.unlink()
    return None


@scene(59)
def to_expire(s: Scene) -> Given:
    for _ in range(2):
        s.load("expired", 3)
    s.run("lake", "compact", "lake/expired", "--here")
    return None


@scene(60)
def upserts(s: Scene) -> Given:
    for number in range(6):
        s.send("upserts", b"%d" % number, key=b"key%d" % (number % 3))
    return None


@scene(61)
def changed(s: Scene) -> Given:
    s.send("changed", b'{"n": 1}')
    words = ("--value", "json", "--column", "n=long")
    s.run("lake", "load", "changed", "--to", "lake/changed", "--here", *words)
    s.send("changed", b'{"n": "one"}')
    return None


@scene(62)
def paused(s: Scene) -> Given:
    s.load("paused", 3)
    s.send("paused", *[b"value"] * 4)
    s.run("topic", "delete-records", "paused-0", "--before", "5", "--yes")
    return None


@scene(63)
def numbered(s: Scene) -> Given:
    s.send("numbered", *[b"value"] * 4)
    return None
