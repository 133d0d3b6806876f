"""What compaction keeps, when it comes, and what it costs, of broker processes."""

import re
from collections.abc import Iterable

import pytest
from rig.broker import ottla
from rig.nodes import Node

from ottla.base.settings import BROKER_SETTINGS
from ottla.client import BrokerRefused, NewTopic, ProducerOptions, TopicPartition, sync
from ottla.client.admin.compaction import CompactAction, CompactionStatus
from ottla.record.key_map import ENTRY_BYTES
from tests.system.cli.ottla_command import Command

from .clusters import until

Found = list[tuple[int, bytes | None, bytes | None]]
# The cleaner looks often; what is dirty enough is a topic's own affair.
OFTEN = {"log.cleaner.backoff.ms": "20", "log.retention.check.interval.ms": "100"}
BY_HAND = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}


def create(node: Node, topic: str, settings: dict[str, str]) -> None:
    with sync.Admin(node.bootstrap) as admin:
        admin.topics.create_all([NewTopic(name=topic, partitions=1, config=settings)])


def write(
    node: Node, topic: str, records: Iterable[tuple[bytes, bytes | None]], batch_bytes: int = 2000
) -> None:
    options = ProducerOptions(batch_size=batch_bytes)
    with sync.Producer(node.bootstrap, **options) as producer:
        for key, value in records:
            producer.send(topic, value, key=key, partition=0)


def read(node: Node, topic: str, first: int = 0) -> Found:
    """(offset, key, value) of all records from an offset on."""
    name = TopicPartition(topic, 0)
    with sync.Consumer(node.bootstrap) as consumer:
        consumer.assign([name])
        (end,) = consumer.end_offsets([name]).values()
        consumer.seek(name, first)
        found: Found = []
        while consumer.position(name) < end:
            for records in consumer.poll(1).by_partition:
                found += [(r.offset, r.key, r.value) for r in records.records]
        return found


def ask(node: Node, topic: str, action: CompactAction = CompactAction.DESCRIBE) -> CompactionStatus:
    with sync.Admin(node.bootstrap) as admin:
        (standing,) = admin.compaction.describe(TopicPartition(topic, 0), action)
        assert isinstance(standing, CompactionStatus)
        return standing


def compact(node: Node, topic: str) -> CompactionStatus:
    """Have all that may be compacted now compacted, and wait for it."""
    ask(node, topic, CompactAction.CLEAN)

    def done() -> CompactionStatus | None:
        standing = ask(node, topic)
        assert standing.failure is None
        return standing if standing.wanted_end < 0 and not standing.is_running else None

    found: CompactionStatus = until(done, "the compaction")
    return found


def versions(count: int, keys: int = 3) -> list[tuple[bytes, bytes]]:
    """So many records of few keys."""
    return [(b"key%d" % (n % keys), b"value%d" % n) for n in range(count)]


@pytest.fixture(scope="module")
def compacting() -> Iterable[Node]:
    """A broker whose topics are compacted unless they say otherwise."""
    with ottla(settings={**OFTEN, "log.cleanup.policy": "compact"}) as node:
        yield node


def test_a_topic_without_a_policy_follows_the_brokers(compacting: Node) -> None:
    """P34: `log.cleanup.policy=compact`: the last value of each key stays, older ones go."""
    create(compacting, "inherits", {"min.cleanable.dirty.ratio": "1"})
    write(compacting, "inherits", versions(30))
    standing = compact(compacting, "inherits")
    assert read(compacting, "inherits") == [
        (27, b"key0", b"value27"),
        (28, b"key1", b"value28"),
        (29, b"key2", b"value29"),
    ]
    assert (standing.last.records_read, standing.last.records_kept) == (30, 3)


def test_a_topic_has_a_policy_of_its_own(compacting: Node) -> None:
    """P34: with `cleanup.policy=delete` nothing is compacted; the policy may change later."""
    create(compacting, "deletes", {"cleanup.policy": "delete", "min.cleanable.dirty.ratio": "1"})
    write(compacting, "deletes", versions(30))
    with pytest.raises(BrokerRefused, match=r"set cleanup\.policy=compact"):
        ask(compacting, "deletes", CompactAction.CLEAN)
    assert len(read(compacting, "deletes")) == 30
    Command(compacting.bootstrap)("config", "set", "topic", "deletes", "cleanup.policy=compact")
    until(lambda: compact(compacting, "deletes").pass_count, "the change to hold")
    assert [offset for offset, _, _ in read(compacting, "deletes")] == [27, 28, 29]


def test_compaction_and_deletion_work_together(compacting: Node) -> None:
    """P34: with `compact,delete` old segments go by age as well, the last values with them."""
    both = {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "1"}
    create(compacting, "both", both)
    write(compacting, "both", versions(30))
    compact(compacting, "both")
    assert [offset for offset, _, _ in read(compacting, "both")] == [27, 28, 29]
    Command(compacting.bootstrap)("config", "set", "topic", "both", "retention.ms=1")
    until(lambda: read(compacting, "both") == [], "deletion by age")


def test_where_the_cleaner_is_switched_off_everything_stays() -> None:
    """P34: `log.cleaner.enable=false`; asked to compact, the broker says why it does not."""
    with ottla(settings={**OFTEN, "log.cleaner.enable": "false"}) as node:
        create(node, "stays", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        write(node, "stays", versions(30))
        with pytest.raises(BrokerRefused, match=r"log\.cleaner\.enable is false"):
            ask(node, "stays", CompactAction.CLEAN)
        assert len(read(node, "stays")) == 30


def test_a_reader_within_the_head_sees_every_record(compacting: Node) -> None:
    """P35: what is younger than `min.compaction.lag.ms` is not compacted, however it is asked."""
    create(compacting, "head", {**BY_HAND, "min.compaction.lag.ms": "86400000"})
    write(compacting, "head", versions(30))
    ask(compacting, "head", CompactAction.CLEAN)
    lag = "min.compaction.lag.ms=86400000"
    until(lambda: ask(compacting, "head").bound == lag, "the flush before it")
    assert ask(compacting, "head").dirty_bytes == 0
    assert [offset for offset, _, _ in read(compacting, "head")] == list(range(30))
    Command(compacting.bootstrap)("config", "set", "topic", "head", "min.compaction.lag.ms=0")
    until(lambda: compact(compacting, "head").pass_count, "the change to hold")
    assert [offset for offset, _, _ in read(compacting, "head")] == [27, 28, 29]


def test_order_and_offsets_stay_and_every_offset_is_a_position(compacting: Node) -> None:
    """P35: a reader from the start sees the final state; one at an offset that is gone the next."""
    create(compacting, "order", BY_HAND)
    # The last of each key in another order than the first.
    pairs = [(key, b"%d" % n) for n, key in enumerate([b"a", b"b", b"c", b"b", b"a", b"b", b"a"])]
    write(compacting, "order", pairs)
    before = read(compacting, "order")
    compact(compacting, "order")
    after = read(compacting, "order")
    assert after == [(2, b"c", b"2"), (5, b"b", b"5"), (6, b"a", b"6")]
    assert [record for record in before if record in after] == after
    assert [read(compacting, "order", first)[0][0] for first in range(7)] == [2, 2, 2, 5, 5, 5, 6]
    write(compacting, "order", [(b"d", b"next")])
    assert read(compacting, "order")[-1] == (7, b"d", b"next")


def test_a_delete_marker_is_seen_for_its_time(compacting: Node) -> None:
    """P35: kept for `delete.retention.ms`, a day by default; with 0 gone by the second pass."""
    assert BROKER_SETTINGS["log.cleaner.delete.retention.ms"].default == 86_400_000
    create(compacting, "day", BY_HAND)
    create(compacting, "none", {**BY_HAND, "delete.retention.ms": "0"})
    for topic in ("day", "none"):
        write(compacting, topic, [(b"a", b"1"), (b"b", b"2"), (b"a", None)])
        compact(compacting, topic)
        # A second pass needs something that is dirty.
        write(compacting, topic, [(b"c", b"3")])
        compact(compacting, topic)
    assert read(compacting, "day") == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3")]
    assert read(compacting, "none") == [(1, b"b", b"2"), (3, b"c", b"3")]


def test_the_dirtiest_log_comes_first() -> None:
    """P36: of two that are dirty enough the one with the larger share of dirt, written or not."""
    waiting = {**OFTEN, "log.cleaner.min.cleanable.ratio": "1", "log.cleaner.threads": "1"}
    with ottla(settings=waiting) as node:
        small = {"cleanup.policy": "compact", "internal.segment.bytes": "1000"}
        create(node, "half", small)
        create(node, "most", small)
        for topic in ("half", "most"):
            write(node, topic, [(b"key%d" % n, b"x" * 100) for n in range(20)], 100)
            compact(node, topic)
        # In the order in which they would come by chance: the first one is less dirty.
        write(node, "half", [(b"key%d" % n, b"y" * 100) for n in range(20)], 100)
        write(node, "most", [(b"key%d" % (n % 20), b"y" * 100) for n in range(100)], 100)
        ratios = {topic: ask(node, topic).ratio for topic in ("half", "most")}
        assert 0.2 < ratios["half"] < 0.6 < ratios["most"] < 1
        before = len(passes(node))
        Command(node.bootstrap)(
            *("config", "set", "broker", "all", "log.cleaner.min.cleanable.ratio=0.1")
        )
        until(lambda: len(passes(node)) >= before + 2, "both passes")
        assert passes(node)[before : before + 2] == ["most-0", "half-0"]


def passes(node: Node) -> list[str]:
    """The logs that were compacted, in order, by what the broker printed."""
    text = (node.folder / "ottla.log").read_text(errors="replace")
    return re.findall(r"(\S+): compacted up to offset", text)


def test_one_pass_cleans_what_the_map_has_room_for() -> None:
    """P36: 24 bytes an entry: 1.2 MB of buffer are 50,000 keys; 90,000 of them need two passes."""
    assert ENTRY_BYTES == 24
    room = {
        **OFTEN,
        "log.cleaner.dedupe.buffer.size": "1200000",
        "log.cleaner.io.buffer.load.factor": "1.0",
    }
    with ottla(settings=room) as node:
        create(node, "wide", BY_HAND)
        write(node, "wide", [(b"%d" % n, b"") for n in range(90_000)], 10_000)
        standing = compact(node, "wide")
        assert standing.pass_count == 2
        # Whole batches: the first pass ended up to a batch before its map was full.
        assert 40_000 <= standing.last.keys < 42_000
        assert standing.first_dirty == 90_000


def test_a_pass_is_throttled() -> None:
    """P36: so many bytes a second, read and written: 40 kB twice at 40 kB/s take a second."""
    with ottla(settings={**OFTEN, "log.cleaner.io.max.bytes.per.second": "40000"}) as node:
        create(node, "paced", BY_HAND)
        write(node, "paced", [(b"%d" % n, b"x" * 1000) for n in range(40)])
        standing = compact(node, "paced")
        assert standing.last.records_kept == 40
        assert standing.last.elapsed_ms > 900


def test_a_pass_holds_no_reader_up() -> None:
    """P36: it copies in the background: while it runs all records are read and others appended."""
    slow = {**OFTEN, "log.cleaner.io.max.bytes.per.second": "300"}
    with ottla(settings=slow) as node:
        create(node, "slow", BY_HAND)
        write(node, "slow", versions(300))
        ask(node, "slow", CompactAction.CLEAN)
        until(lambda: ask(node, "slow").is_running, "the pass to begin")
        assert len(read(node, "slow")) == 300
        write(node, "slow", versions(10))
        assert len(read(node, "slow")) == 310
        standing = ask(node, "slow")
        assert (standing.is_running, standing.pass_count) == (True, 0)
