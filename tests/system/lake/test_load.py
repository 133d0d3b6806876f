"""Loads are exactly once: again, killed, raced, with deletions; every offset accounted for."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import CommitConflict, run_here
from ottla.lake.job.on_spark import run_on_spark
from ottla.lake.model.plan import joined
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.opening import existing_table
from tests.system.lake.runners import murderous
from tests.unit.lake.forked import exit_code_of

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def values(target: Path) -> list[bytes]:
    """Values of all rows that count, sorted."""
    paths = ottla.lake.files(str(target))
    return sorted(v for path in paths for v in pq.read_table(path)["value"].to_pylist())


def numbered(first: int, last: int) -> list[bytes]:
    return sorted(b"v%d" % number for number in range(first, last))


def test_second_load_takes_only_what_is_new(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Run again it loads what came since; run once more it finds nothing (P14)."""
    topic = make_topic(node, partitions=3)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, spark_session=spark
    )
    produce(node, topic, 0, 500)
    assert load().rows == 500
    produce(node, topic, 500, 700, **{"compression.type": "zstd"})
    assert load().rows == 200
    assert load().rows == 0

    assert values(tmp_path) == numbered(0, 700)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.proven, found.loads, found.rows, found.compared) == (True, 2, 700, 700)


def test_failed_task_is_tried_again_and_doubles_nothing(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Python workers killed in mid-task: Spark runs the tasks again from their start (P14)."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 1000)
    markers: list[Path] = []
    run = murderous(spark, tmp_path, markers)
    target = tmp_path / "table"
    done = ottla.lake.load(topic, str(target), bootstrap=node.bootstrap, runner=run)

    assert [marker.exists() for marker in markers] == [True]
    assert done.rows == 1000
    assert values(target) == numbered(0, 1000)
    assert len(done.removed) == 1


STEPS = [
    "planned",
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
ottla.lake.load(
    sys.argv[1], sys.argv[2], bootstrap=sys.argv[3], runner=ottla.lake.run_here,
    watch=ottla.lake.Observer(on_step=kill),
)
"""


def test_killed_at_any_step_it_neither_loses_nor_doubles(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """kill -9 after every step in turn, records arriving between; the sum is right (P12, P13)."""
    topic = make_topic(node, partitions=2)
    for turn, step in enumerate(STEPS):
        produce(node, topic, turn * 100, turn * 100 + 100)
        arguments = (topic, str(tmp_path), node.bootstrap, step)
        assert exit_code_of(KILLED, *arguments) == -signal.SIGKILL, step
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)

    assert values(tmp_path) == numbered(0, 100 * len(STEPS))
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))


def test_of_two_at_once_one_wins_and_the_other_says_so(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Both plan the same offsets; only one set of them becomes visible (P13)."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 300)
    both_written = threading.Barrier(2, timeout=200)

    def load() -> str:
        def wait(step: str) -> None:
            if step == "files written":
                both_written.wait()

        try:
            ottla.lake.load(
                topic,
                str(tmp_path),
                bootstrap=node.bootstrap,
                runner=run_here,
                watch=ottla.lake.Observer(on_step=wait),
            )
        except CommitConflict as error:
            return error.message
        except BaseException:
            both_written.abort()  # So that the other load ends, too.
            raise
        return "won"

    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load) for _ in range(2)]
    errors = [error for one in loads if (error := one.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    lost, won = sorted(one.result() for one in loads)
    assert won == "won"
    assert "another load committed version 1" in lost
    assert values(tmp_path) == numbered(0, 300)
    existing_table(str(tmp_path)).remove_orphans()
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))


@pytest.mark.parametrize("step", ["planned", "files written", "manifest offered"])
def test_loser_of_a_race_says_so_wherever_it_stands(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, step: str
) -> None:
    """The winner leaves the files of a load that runs; the loser removes its own (P13)."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 300)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)

    def overtaken(at: str) -> None:
        if at == step:
            assert load().removed == ()

    with pytest.raises(CommitConflict, match="another load committed version 1"):
        load(watch=ottla.lake.Observer(on_step=overtaken))
    assert values(tmp_path) == numbered(0, 300)
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))
    assert os.listdir(tmp_path / "_ottla" / "running") == []


def test_loser_overtaken_while_its_task_writes_says_so(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """One of its files is there, the other is not."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 300)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap)

    def run_overtaken(planned: Sequence[Any]) -> list[Any]:
        first = run_here(planned[:1])
        load(runner=run_here)
        return first + run_here(planned[1:])

    with pytest.raises(CommitConflict, match="another load committed version 1"):
        load(runner=run_overtaken)
    assert values(tmp_path) == numbered(0, 300)
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))


def test_deleted_records_are_accounted_for_as_deleted(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """What was deleted before it was loaded is a term of its own, known by the log's start."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    assert load().rows == 100
    produce(node, topic, 100, 300)
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.delete_records([TopicPartition(topic, 0, 150)])[TopicPartition(topic, 0)].result(10)

    (ledger,) = load(accept_loss=True).ledgers
    assert (ledger.start, ledger.end, ledger.loaded, ledger.deleted) == (100, 300, 150, 50)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.proven, found.compared, found.only_in_lake) == (True, 150, 100)


def test_first_load_starts_where_it_is_told(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    assert load(start="0:40", end="0:60").rows == 20
    assert load(start="earliest", end="0:80").rows == 20  # Never again what is there.
    assert load().rows == 20

    assert values(tmp_path) == numbered(40, 100)


def test_topic_created_anew_is_refused(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Offsets of another topic of the same name are not a continuation."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    load()
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(10)
    produce(node, topic, 0, 50)

    with pytest.raises(OttlaError, match="deleted and created anew"):
        load()


def test_files_on_a_workers_own_disk_are_not_committed(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """One of two tasks writes where the driver cannot see it: the load says so, and is nothing."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    private = tmp_path / "private"
    (private / "data").mkdir(parents=True)

    def run_elsewhere(planned: Sequence[Any]) -> list[Any]:
        return run_here([*planned[:-1], replace(planned[-1], store=LocalStore(private))])

    load = partial(ottla.lake.load, topic, str(tmp_path / "table"), bootstrap=node.bootstrap)
    with pytest.raises(OttlaError) as refused:
        load(runner=run_elsewhere)
    (unseen,) = (private / "data").iterdir()
    assert f"data/{unseen.name}, which is missing" in refused.value.message
    assert "one folder that the driver and all workers share" in refused.value.message
    assert ottla.lake.files(str(tmp_path / "table")) == []
    assert load(runner=run_here).rows == 100


def test_load_is_divided_by_the_sizes_that_the_broker_gives(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A partition of 270 MB is three tasks; twenty with a record each share one of Spark's."""
    topic = make_topic(node, partitions=21, max_message_bytes="9000000")
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "log_level": 0,
            "message.max.bytes": 9_000_000,
            "batch.num.messages": 1,
        }
    )
    for _ in range(34):
        producer.produce(topic, bytes(8_000_000), partition=20)
    for partition in range(20):
        producer.produce(topic, b"small", partition=partition)
    assert producer.flush(120) == 0
    planned: list[Any] = []

    def run_all(tasks: Sequence[Any]) -> list[Any]:
        planned.extend(tasks)
        return run_on_spark(spark, tasks)

    done = ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_all)
    assert [task.wanted.partition for task in planned] == [*range(20), 20, 20, 20]
    assert joined([task.size_bytes for task in planned]) == [[*range(20)], [20], [21], [22]]
    assert done.rows == 54
    assert all(ledger.balances for ledger in done.ledgers)
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven


def test_unknown_topic_is_told_and_leaves_no_table(node: Node, tmp_path: Path) -> None:
    target = tmp_path / "table"
    with pytest.raises(OttlaError, match="no topic 'nowhere'"):
        ottla.lake.load("nowhere", str(target), bootstrap=node.bootstrap, runner=run_here)
    assert not target.exists()


@pytest.mark.parametrize("target", ["s3:/bucket/table", "hdfs:/lake", "~otto", "", "file://host/p"])
def test_target_that_is_no_folder_here_is_refused_before_anything_is_asked(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no broker can be reached; nothing is made under that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OttlaError, match=r"choose a path|names no bucket"):
        ottla.lake.load("flights", target, bootstrap="127.0.0.1:1", runner=run_here)
    assert list(tmp_path.iterdir()) == []


def test_spark_submit_main_loads(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The load as a program of its own, as a scheduler starts it."""
    del spark  # Only for its JAVA_HOME.
    import pyspark_ottla.submit as main

    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 50)
    submit = Path(sys.executable).with_name("spark-submit")
    command = [str(submit), "--master", "local[1]", str(main.__file__), topic]
    command += ["--to", str(tmp_path), "--bootstrap", node.bootstrap]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "50 rows in 1 file" in done.stdout
    assert values(tmp_path) == numbered(0, 50)
