"""Runs of a changelog again and again: who may write, what is lost, what is read."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import LoadResult, WriterFenced, run_here
from ottla.lake.tables.opening import existing_table
from tests.system.lake.runners import after
from tests.unit.lake.tables import forge, manifest_path

MakeTopic = Callable[..., str]


def write(node: Node, topic: str, records: list[tuple[bytes, bytes | None]], **config: str) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0, **config})
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(120) == 0


def keep(node: Node, topic: str, target: Path, **options: Any) -> LoadResult:
    given = {"runner": run_here, "buckets": 2, **options}
    return ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, **given)


def values(target: Path) -> dict[bytes, bytes]:
    return {
        row["key"]: row["value"]
        for path in ottla.lake.files(str(target))
        for row in pq.ParquetFile(path).read(["key", "value"]).to_pylist()
    }


def problems(target: Path, node: Node) -> list[str]:
    return ottla.lake.verify(str(target), bootstrap=node.bootstrap).problems


def test_of_two_long_running_writers_the_older_one_stops(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By the writer epoch: also where it has slept, and has nothing to commit (P13)."""
    topic = make_topic(node, partitions=2)
    write(node, topic, [(b"a", b"1")])
    began = threading.Event()
    stop = threading.Event()
    ended: list[OttlaError] = []

    def older() -> None:
        try:
            keep(
                node,
                topic,
                tmp_path,
                every="20ms",
                watch=ottla.lake.Observer(stop=stop, on_run=lambda _: began.set()),
            )
        except OttlaError as error:
            ended.append(error)

    thread = threading.Thread(target=older)
    thread.start()
    assert began.wait(120)
    done: list[LoadResult] = []
    newer = threading.Event()

    def on_run(result: LoadResult) -> None:
        done.append(result)
        if len(done) == 1:
            write(node, topic, [(b"a", b"2"), (b"b", b"1")])
        elif result.manifest is not None and values(tmp_path) == {b"a": b"2", b"b": b"1"}:
            newer.set()

    try:
        keep(
            node,
            topic,
            tmp_path,
            every="20ms",
            watch=ottla.lake.Observer(stop=newer, on_run=on_run),
        )
    finally:
        stop.set()
        thread.join(120)
    assert len(ended) == 1
    assert isinstance(ended[0], WriterFenced)
    assert existing_table(str(tmp_path)).latest()[0].writer_epoch == 2  # type: ignore[union-attr]
    assert problems(tmp_path, node) == []


def test_a_run_by_hand_may_come_between(node: Node, make_topic: MakeTopic, tmp_path: Path) -> None:
    """It is no long-running writer: it neither fences nor is fenced."""
    topic = make_topic(node, partitions=1)
    stop = threading.Event()
    seen: list[int] = []

    def on_run(result: LoadResult) -> None:
        seen.append(result.rows)
        if len(seen) == 1:
            write(node, topic, [(b"a", b"1")])
            assert keep(node, topic, tmp_path).rows == 1
            write(node, topic, [(b"a", b"2")])
        elif result.rows:
            stop.set()

    keep(
        node,
        topic,
        tmp_path,
        every="10ms",
        watch=ottla.lake.Observer(stop=stop, on_run=on_run),
    )
    assert sum(seen) == 1
    assert values(tmp_path) == {b"a": b"2"}
    assert problems(tmp_path, node) == []


def test_a_failure_that_is_tried_again_is_told(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Once, and the run after it goes on."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b"1")])
    stop = threading.Event()
    steps: list[str] = []
    told: list[str] = []

    def on_run(result: LoadResult) -> None:
        if result.rows:
            stop.set()

    def on_step(step: str) -> None:
        steps.append(step)
        if steps[-2:] == ["following", "planned"]:
            raise OttlaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")

    keep(
        node,
        topic,
        tmp_path,
        every="10ms",
        watch=ottla.lake.Observer(
            stop=stop,
            on_run=on_run,
            on_step=on_step,
            on_error=lambda error: told.append(error.message),
        ),
    )
    assert told == ["no space is left"]
    assert values(tmp_path) == {b"a": b"1"}


def test_aborted_changes_change_nothing(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Nor do the markers; both are counted. A deletion that was aborted deletes nothing (P11)."""
    topic = make_topic(either, partitions=1)
    config = {"bootstrap.servers": either.bootstrap, "transactional.id": topic, "log_level": 0}
    producer = Producer(config)
    producer.init_transactions(120)
    for value, commits in ((b"1", True), (b"2", False), (None, False)):
        producer.begin_transaction()
        producer.produce(topic, value, b"a", partition=0)
        if commits:
            producer.commit_transaction(120)
        else:
            producer.flush(120)
            producer.abort_transaction(120)
    (ledger,) = keep(either, topic, tmp_path).ledgers
    assert (ledger.loaded, ledger.aborted, ledger.unexplained) == (1, 2, 0)
    assert values(tmp_path) == {b"a": b"1"}
    assert problems(tmp_path, either) == []


def test_changes_that_retention_took_are_a_loss(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """An error, unless it is accepted: then the manifest says how many."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b"1")])
    keep(node, topic, tmp_path)
    write(node, topic, [(b"a", b"2"), (b"b", b"1"), (b"c", b"1")])
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    place = TopicPartition(topic, 0, 3)
    admin.delete_records([place])[place].result(60)
    with pytest.raises(OttlaError, match="--accept-loss"):
        keep(node, topic, tmp_path)
    done = keep(node, topic, tmp_path, accept_loss=True)
    assert done.manifest is not None
    assert done.manifest.accepted_loss == {0: 2}
    assert values(tmp_path) == {b"a": b"1", b"c": b"1"}
    assert problems(tmp_path, node) == []


def test_many_runs_go_on_from_checkpoints(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The table is the same as without them, and no file is left that never counted."""
    topic = make_topic(node, partitions=1)
    for number in range(25):
        write(node, topic, [(b"%d" % (number % 4), b"%d" % number), (b"x", None)])
        keep(node, topic, tmp_path)
    assert values(tmp_path) == {b"0": b"24", b"1": b"21", b"2": b"22", b"3": b"23"}
    assert len(list((tmp_path / "_ottla/states").iterdir())) > 0
    manifests = list(existing_table(str(tmp_path)).history())
    hidden = {file.path for one in manifests for file in one.hidden}
    there = {f"_ottla/hidden/{path.name}" for path in (tmp_path / "_ottla/hidden").iterdir()}
    assert there == hidden
    assert problems(tmp_path, node) == []


def test_an_operator_may_build_on_a_table_that_contradicts_itself(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """With a reason, which is on record."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b"1")])
    keep(node, topic, tmp_path)
    forge(manifest_path(tmp_path, 1), lambda manifest: manifest.update(total_rows=7))
    write(node, topic, [(b"b", b"1")])
    with pytest.raises(OttlaError, match="its total of rows is 7"):
        keep(node, topic, tmp_path)
    done = keep(node, topic, tmp_path, override="counted by hand")
    assert done.manifest is not None
    assert "reason: counted by hand" in done.manifest.overridden
    write(node, topic, [(b"c", b"1")])
    keep(node, topic, tmp_path)
    assert sorted(values(tmp_path)) == [b"a", b"b", b"c"]


def test_buckets_that_expire_while_they_are_verified_are_no_problem(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Another run has written them anew meanwhile."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b"1"), (b"b", b"1")])
    keep(node, topic, tmp_path)

    def run_and_expire() -> None:
        write(node, topic, [(b"a", b"2"), (b"b", b"2")])
        keep(node, topic, tmp_path)
        assert ottla.lake.expire(str(tmp_path), keep=1).removed

    deeds = [run_and_expire]
    found = ottla.lake.verify(
        str(tmp_path),
        bootstrap=node.bootstrap,
        runner=after(lambda: deeds.pop()() if deeds else None),
    )
    assert (found.problems, found.rows, found.loads) == ([], 2, 2)
