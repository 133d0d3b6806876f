"""A changelog table equals a replay of its topic: run again, killed, raced, tampered with."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.client.admin.compaction import CompactAction
from ottla.lake import CommitConflict, run_here
from ottla.lake.tables.opening import existing_table
from tests.system.lake.runners import murderous
from tests.unit.lake.forked import begin, end_of, exit_code_of

MakeTopic = Callable[..., str]
Produce = Callable[..., None]
Row = tuple[bytes, bytes, int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """A record that was written."""

    value: bytes | None
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(slots=True)
class Writer:
    """Writes random changes, and knows what the table must hold."""

    node: Node
    topic: str
    partitions: int
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    latest: dict[tuple[bytes, int], Change] = field(default_factory=dict)
    now_ms: int = 1_700_000_000_000

    def write(self, count: int) -> None:
        """Upserts and deletions of few keys, most of them in a partition of their own."""
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "log_level": 0})
        for _ in range(count):
            number = self.chance.randrange(60)
            key = b"k%d" % number
            at_random = self.chance.random() < 0.2
            partition = self.chance.randrange(self.partitions) if at_random else number
            # Some are late: their time is before that of earlier records.
            self.now_ms += self.chance.randrange(-40, 60)
            value = None if self.chance.random() < 0.3 else b"%d" % self.chance.randrange(10**9)
            producer.produce(
                self.topic,
                value,
                key,
                partition=partition % self.partitions,
                timestamp=self.now_ms,
                on_delivery=self._written,
            )
        assert producer.flush(120) == 0

    def _written(self, error: object, message: Any) -> None:
        assert error is None, error
        change = Change(
            message.value(), message.partition(), message.offset(), message.timestamp()[1]
        )
        place = message.key(), change.partition
        known = self.latest.get(place)
        if known is None or known.offset < change.offset:
            self.latest[place] = change

    def rows(self) -> list[Row]:
        """One row of each key: that with the highest time of those of its partitions."""
        best: dict[bytes, Change] = {}
        for (key, _), change in self.latest.items():
            other = best.get(key)
            if other is None or _rank(change) > _rank(other):
                best[key] = change
        return sorted(
            (key, one.value, one.partition, one.offset)
            for key, one in best.items()
            if one.value is not None
        )


def _rank(change: Change) -> tuple[int, int]:
    return change.timestamp_ms, change.partition


def rows(target: Path) -> list[Row]:
    """What readers of the table see."""
    return sorted(
        (row["key"], row["value"], row["partition"], row["offset"])
        for path in ottla.lake.files(str(target))
        for row in pq.read_table(path).to_pylist()
    )


def problems(target: Path, node: Node | None) -> list[str]:
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap if node else None)
    return found.problems


def keep(node: Node, topic: str, target: Path, **options: Any) -> ottla.lake.LoadResult:
    given = {"runner": run_here, "buckets": 4, **options}
    return ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, **given)


def test_the_table_equals_a_replay_after_every_commit(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Upserts, deletions, late records, keys in several partitions; commits of any size (P14)."""
    topic = make_topic(either, partitions=3)
    writer = Writer(either, topic, 3)
    for count in (300, 1, 17, 200, 5):
        writer.write(count)
        assert keep(either, topic, tmp_path).rows == count
        assert rows(tmp_path) == writer.rows()
        assert problems(tmp_path, either) == []
        assert problems(tmp_path, None) == []
    assert keep(either, topic, tmp_path).ledgers == ()
    found = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
    assert (found.compared, found.only_in_lake) == (len(writer.latest), 0)
    assert list((tmp_path / "_ottla/work").iterdir()) == []


def test_on_spark(node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(node, partitions=3)
    writer = Writer(node, topic, 3)
    for _ in range(2):
        writer.write(400)
        keep(node, topic, tmp_path, runner=None, spark_session=spark)
        assert rows(tmp_path) == writer.rows()
    assert problems(tmp_path, node) == []


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_in_a_table_of_another_format(
    node: Node, make_topic: MakeTopic, tmp_path: Path, table_format: str
) -> None:
    """Its own readers see each commit as one."""
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    for count in (200, 50):
        writer.write(count)
        keep(node, topic, tmp_path, format=table_format)
        assert rows(tmp_path) == writer.rows()
        assert problems(tmp_path, node) == []
    if table_format == "delta":
        from deltalake import DeltaTable

        read = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
        seen = [(row["key"], row["value"], row["partition"], row["offset"]) for row in read]
        assert sorted(seen) == writer.rows()


def compact(node: Node, topic: str) -> None:
    """Have the topic compacted, and wait for it."""
    with sync.Admin(node.bootstrap) as admin:
        admin.compaction.describe_topic(topic, CompactAction.CLEAN)
        while any(
            one.wanted_end >= 0 or one.is_running for one in admin.compaction.describe_topic(topic)
        ):
            time.sleep(0.02)


def test_the_topic_is_compacted_in_between(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """What compaction takes away is no loss: the table has the latest of each key all the same."""
    topic = make_topic(
        node, partitions=2, cleanup_policy="compact", min_cleanable_dirty_ratio="1",
        delete_retention_ms="0",
    )  # fmt: skip
    writer = Writer(node, topic, 2)
    late = tmp_path / "late"
    for turn in range(4):
        writer.write(150)
        if turn % 2:
            compact(node, topic)
        keep(node, topic, tmp_path / "table")
        assert rows(tmp_path / "table") == writer.rows()
        assert problems(tmp_path / "table", node) == []
    compact(node, topic)
    assert problems(tmp_path / "table", node) == []
    keep(node, topic, late)
    assert rows(late) == writer.rows()
    assert problems(late, node) == []


def test_what_retention_took_stays_in_the_table(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    writer.write(300)
    keep(node, topic, tmp_path)
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    place = TopicPartition(topic, 0, 50)
    admin.delete_records([place])[place].result(30)
    writer.write(40)
    keep(node, topic, tmp_path)
    assert rows(tmp_path) == writer.rows()
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert found.problems == []
    assert found.compared + found.only_in_lake == len(writer.latest)


STEPS = [
    "planned",
    "changes reduced",
    "files written",
    "manifest offered",
    "manifest written",
    "head written",
]
KILLED = """
import os, signal, sys
import ottla.lake
from tests.system.lake.runners import murderous
def kill(step):
    if step == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGKILL)
ottla.lake.changelog(
    sys.argv[1], sys.argv[2], bootstrap=sys.argv[3], runner=ottla.lake.run_here,
    watch=ottla.lake.Observer(on_step=kill),
    buckets=4,
)
"""


def _leftovers(target: Path) -> tuple[int, int]:
    """How many hidden files, and files of work, are there."""
    folders = [target / "_ottla/hidden", target / "_ottla/work"]
    return len(list(folders[0].iterdir())), len(list(folders[1].iterdir()))


def test_killed_at_any_step_it_neither_loses_nor_repeats(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """kill -9 after every step in turn, changes arriving between (P12, P13)."""
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    for step in STEPS:
        writer.write(60)
        arguments = (topic, str(tmp_path), node.bootstrap, step)
        assert exit_code_of(KILLED, *arguments) == -signal.SIGKILL, step
    writer.write(5)
    keep(node, topic, tmp_path)

    assert rows(tmp_path) == writer.rows()
    assert problems(tmp_path, node) == []
    manifests = list(existing_table(str(tmp_path)).history())
    assert _leftovers(tmp_path) == (sum(len(one.hidden) for one in manifests), 0)
    assert len(os.listdir(tmp_path / "data")) == sum(len(one.files) for one in manifests)


def test_killed_at_random_it_neither_loses_nor_repeats(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    for _ in range(4):
        writer.write(60)
        process = begin(KILLED, topic, str(tmp_path), node.bootstrap, "-")
        time.sleep(writer.chance.uniform(0.0, 0.8))
        process.kill()
        end_of(process)
    keep(node, topic, tmp_path)
    assert rows(tmp_path) == writer.rows()
    assert problems(tmp_path, node) == []


@pytest.mark.parametrize("step", ["planned", "changes reduced", "files written"])
def test_of_two_at_once_one_wins_and_the_other_says_so(
    node: Node, make_topic: MakeTopic, tmp_path: Path, step: str
) -> None:
    """The loser leaves nothing behind; run again it goes on after the winner (P13)."""
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    writer.write(100)
    keep(node, topic, tmp_path)
    writer.write(100)

    def overtaken(at: str) -> None:
        if at == step:
            keep(node, topic, tmp_path)

    with pytest.raises(CommitConflict, match="another load committed version 2"):
        keep(node, topic, tmp_path, watch=ottla.lake.Observer(on_step=overtaken))
    keep(node, topic, tmp_path)
    assert rows(tmp_path) == writer.rows()
    assert problems(tmp_path, node) == []
    manifests = list(existing_table(str(tmp_path)).history())
    assert _leftovers(tmp_path) == (sum(len(one.hidden) for one in manifests), 0)


def test_a_record_without_a_key_fails_the_run_or_is_counted(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for key in (b"a", None, b"b", None):
        producer.produce(topic, b"v", key, partition=0)
    assert producer.flush(60) == 0
    with pytest.raises(OttlaError, match=rf"the record at {topic}-0 offset 1 has no key"):
        keep(node, topic, tmp_path)
    (ledger,) = keep(node, topic, tmp_path, on_null_key="skip").ledgers
    assert (ledger.loaded, ledger.keyless, ledger.unexplained) == (2, 2, 0)
    assert [row[0] for row in rows(tmp_path)] == [b"a", b"b"]
    assert problems(tmp_path, node) == []


def test_a_table_keeps_its_kind(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Loads do not go into changelog tables, nor changes into tables of all rows."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    load = partial(ottla.lake.load, topic, bootstrap=node.bootstrap, runner=run_here)
    keep(node, topic, tmp_path / "changelog")
    load(str(tmp_path / "load"))
    with pytest.raises(OttlaError, match=f"keeps the latest of each key of {topic}"):
        load(str(tmp_path / "changelog"))
    with pytest.raises(OttlaError, match=f"keeps all rows of {topic}"):
        keep(node, topic, tmp_path / "load")
    with pytest.raises(OttlaError, match="in 4 buckets"):
        keep(node, topic, tmp_path / "changelog", buckets=5)
    with pytest.raises(OttlaError, match="certificates are of tables of all rows"):
        ottla.lake.certificate(str(tmp_path / "changelog"), bootstrap=None)


@pytest.fixture(name="kept")
def _kept(node: Node, make_topic: MakeTopic, tmp_path: Path) -> tuple[Path, Writer]:
    """A proven table of two commits."""
    writer = Writer(node, make_topic(node, partitions=2), 2)
    for _ in range(2):
        writer.write(120)
        keep(node, writer.topic, tmp_path)
    assert problems(tmp_path, node) == []
    return tmp_path, writer


def newest_files(target: Path) -> tuple[Path, Path]:
    """A visible file and a hidden one that count."""
    (*_, newest) = existing_table(str(target)).history()
    return target / newest.files[0].path, target / newest.hidden[0].path


def test_a_flipped_bit_is_found_and_built_on_by_nothing(kept: tuple[Path, Writer]) -> None:
    target, writer = kept
    for path in newest_files(target):
        whole = path.read_bytes()
        path.write_bytes(whole[:200] + bytes([whole[200] ^ 4]) + whole[201:])
        assert any("is not as it was written" in one for one in problems(target, None))
        writer.write(100)
        with pytest.raises(OttlaError, match="is not as it was written; nothing was committed"):
            keep(writer.node, writer.topic, target)
        path.unlink()
        assert any("is missing" in one for one in problems(target, None))
        with pytest.raises(OttlaError, match="is missing; nothing was committed"):
            keep(writer.node, writer.topic, target)
        path.write_bytes(whole)
    keep(writer.node, writer.topic, target)
    assert rows(target) == writer.rows()
    assert problems(target, writer.node) == []


def test_a_killed_worker_is_tried_again_and_leaves_nothing_that_counts(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """In both stages; the files of the killed attempt are orphans that are removed (P14)."""
    topic = make_topic(node, partitions=2)
    writer = Writer(node, topic, 2)
    writer.write(200)
    markers: list[Path] = []

    run = murderous(spark, tmp_path, markers)
    keep(node, topic, tmp_path / "table", runner=run)
    assert [marker.exists() for marker in markers] == [True, True]
    assert rows(tmp_path / "table") == writer.rows()
    assert problems(tmp_path / "table", node) == []
    manifests = list(existing_table(str(tmp_path / "table")).history())
    assert _leftovers(tmp_path / "table") == (sum(len(one.hidden) for one in manifests), 0)
    assert len(os.listdir(tmp_path / "table/data")) == sum(len(one.files) for one in manifests)


def test_the_command_runs_again_and_again_until_it_is_stopped(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Two commits in one process; SIGTERM ends it in order."""
    del spark  # Only for its JAVA_HOME.
    writer = Writer(node, make_topic(node, partitions=2), 2)
    writer.write(100)
    target = tmp_path / "table"
    command = [str(Path(sys.executable).with_name("ottla")), "lake", "changelog", writer.topic]
    command += ["--to", str(target), "--bootstrap", node.bootstrap, "--every", "200ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            _wait_for(process.stdout, "100 changes applied")
            writer.write(50)
            _wait_for(process.stdout, "50 changes applied")
            process.terminate()
            assert process.wait(100) == 0
        finally:
            process.kill()
    assert rows(target) == writer.rows()
    assert problems(target, node) == []


def _wait_for(lines: IO[str], words: str) -> None:
    assert any(words in line for line in lines), words
