"""A table follows a topic: every record once, whatever dies; most of it without a JVM."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import sync
from ottla.lake import FollowProgress, WriterFenced, run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def loaded(target: Path) -> list[tuple[int, int]]:
    import pyarrow.parquet as pq

    return sorted(
        (row["partition"], row["offset"])
        for path in ottla.lake.files(str(target))
        for row in pq.read_table(path).to_pylist()
    )


def require_all(node: Node, topic: str, target: Path, count: int) -> None:
    """Each record is there once, and the proof says so."""
    found = loaded(target)
    assert len(found) == len(set(found)) == count
    proof = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
    assert proof.problems == []
    assert proof.proven


@pytest.fixture
def follow(tmp_path: Path) -> Callable[..., list[FollowProgress]]:
    """`follow(node, topic, …)`: in this process, until all is loaded, or as given."""

    def run(node: Node, topic: str, **arguments: Any) -> list[FollowProgress]:
        commits: list[FollowProgress] = []
        given = {"once": True, "runner": run_here, "every": "500ms", **arguments}
        watch = given.pop("watch", ottla.lake.Observer(on_commit=commits.append))
        if watch.on_commit is ottla.lake.Observer().on_commit:
            watch = replace(watch, on_commit=commits.append)
        ottla.lake.follow(topic, str(tmp_path), bootstrap=node.bootstrap, watch=watch, **given)
        return commits

    return run


def test_all_that_is_there_is_loaded_in_commits_of_a_size(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """Loads and other follows go on where it stood; the table is proven."""
    topic = make_topic(either, partitions=3)
    produce(either, topic, 0, 900)
    commits = follow(either, topic, max_bytes=5000)
    assert len(commits) > 3
    rows = [one.manifest.rows for one in commits]
    assert sum(rows) == 900
    assert commits[-1].lag_records == 0
    assert commits[-1].lag_ms == 0
    assert commits[0].lag_records == 900 - rows[0]
    assert (commits[0].lag_ms or 0) > 0
    produce(either, topic, 900, 1000)
    assert (
        ottla.lake.load(topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here).rows
        == 100
    )
    produce(either, topic, 1000, 1100)
    assert sum(one.manifest.rows for one in follow(either, topic)) == 100
    assert follow(either, topic) == []
    require_all(either, topic, tmp_path, 1100)


def test_from_latest_means_its_first_start_and_idle_partitions_have_positions(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    assert follow(node, topic, start="latest") == []
    positions = _positions(tmp_path)
    assert sum(positions.values()) == 100
    assert len(positions) == 2
    produce(node, topic, 100, 130)
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(60)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    producer.produce(topic, b"v", partition=3)
    assert producer.flush(60) == 0
    follow(node, topic, start="latest")
    assert len(loaded(tmp_path)) == 31
    assert _positions(tmp_path).keys() == {0, 1, 2, 3}
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven


def _positions(target: Path) -> dict[int, int]:
    from ottla.lake.tables.opening import existing_table

    manifest, _ = existing_table(str(target)).latest()
    assert manifest is not None
    return dict(manifest.positions)


def test_a_group_is_committed_where_the_table_stands(
    node: Node, make_topic: MakeTopic, produce: Produce, follow: Any
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 40)
    follow(node, topic, group="lake")
    with sync.Admin(node.bootstrap) as admin:
        offsets = admin.groups.offsets("lake")
    assert [one.offset for p, one in offsets.items() if p.topic == topic] == [40]


def test_it_goes_on_until_it_is_stopped(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """What comes meanwhile is loaded; the commit that runs at the stop is finished."""
    topic = make_topic(node, partitions=2)
    stop = threading.Event()
    seen: list[int] = []

    def on_commit(progress: FollowProgress) -> None:
        seen.append(progress.manifest.rows)
        if sum(seen) < 300:
            produce(node, topic, sum(seen), sum(seen) + 100)
        else:
            stop.set()

    produce(node, topic, 0, 100)
    follow(
        node,
        topic,
        once=False,
        watch=ottla.lake.Observer(stop=stop, on_commit=on_commit),
        every="100ms",
    )
    assert sum(seen) == 300
    require_all(node, topic, tmp_path, 300)


class Killed(BaseException):
    """As if the process had ended here."""


STEPS = [
    "planned",
    "files written",
    "manifest offered",
    "manifest written",
    "head written",
    "checkpoint written",
]


@pytest.mark.parametrize("turn", [1, 4])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_of_a_commit_nothing_is_lost_or_doubled(
    node: Node,
    make_topic: MakeTopic,
    produce: Produce,
    tmp_path: Path,
    follow: Any,
    step: str,
    turn: int,
) -> None:
    """In the first commits or a later one; the next follow goes on from the table."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 200)
    with pytest.raises(Killed):
        follow(node, topic, watch=ottla.lake.Observer(on_step=_kill_at(step, turn)), max_bytes=1000)
    follow(node, topic)
    require_all(node, topic, tmp_path, 200)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("step", ["files written", "manifest offered", "manifest written"])
def test_killed_over_a_table_of_another_format(
    node: Node,
    make_topic: MakeTopic,
    produce: Produce,
    tmp_path: Path,
    follow: Any,
    step: str,
    table_format: str,
) -> None:
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    with pytest.raises(Killed):
        follow(
            node,
            topic,
            watch=ottla.lake.Observer(on_step=_kill_at(step, 3)),
            max_bytes=1000,
            format=table_format,
        )
    follow(node, topic)
    require_all(node, topic, tmp_path, 100)


def _kill_at(step: str, turn: int) -> Callable[[str], None]:
    left = [turn]

    def on_step(name: str) -> None:
        if name == step:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    return on_step


def test_a_task_that_fails_is_tried_again_from_the_table(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    troubles: list[OttlaError] = []

    def runner(tasks: Sequence[Any]) -> Any:
        done = run_here(tasks)
        if len(troubles) < 2:
            raise OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a worker was killed")
        return done

    follow(node, topic, runner=runner, watch=ottla.lake.Observer(on_error=troubles.append))
    assert [error.message for error in troubles] == ["a worker was killed"] * 2
    require_all(node, topic, tmp_path, 100)

    def never(_tasks: Sequence[Any]) -> Any:
        raise OttlaError(ErrorCode.UNSUPPORTED_VERSION, "no")

    produce(node, topic, 100, 110)
    with pytest.raises(OttlaError, match="no"):
        follow(node, topic, runner=never, watch=ottla.lake.Observer(on_error=troubles.append))


def test_the_older_of_two_writers_stops(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """Also one that was asleep while the other one came, loaded and went: a zombie."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)

    def overtaken(tasks: Sequence[Any]) -> Any:
        done = run_here(tasks)
        follow(node, topic)
        return done

    with pytest.raises(WriterFenced, match=r"epoch 2 has taken .* over from this one.* epoch 1"):
        follow(node, topic, runner=overtaken)
    require_all(node, topic, tmp_path, 100)


def test_a_load_meanwhile_is_no_reason_to_stop(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """The follower goes on behind it."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    loads: list[int] = []

    def overtaken(tasks: Sequence[Any]) -> Any:
        done = run_here(tasks)
        if not loads:
            loads.append(load().rows)
            produce(node, topic, 100, 150)
        return done

    follow(node, topic, runner=overtaken)
    assert loads == [100]
    follow(node, topic)
    require_all(node, topic, tmp_path, 150)


def test_a_topic_made_anew_stops_it(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    from confluent_kafka.admin import NewTopic

    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 50)
    stop = threading.Event()

    def on_commit(_progress: FollowProgress) -> None:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(60)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
        produce(node, topic, 0, 80)

    with pytest.raises(OttlaError, match="deleted and created anew") as caught:
        follow(
            node,
            topic,
            once=False,
            watch=ottla.lake.Observer(stop=stop, on_commit=on_commit),
        )
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert len(loaded(tmp_path)) == 50


def test_on_spark_it_does_the_same(
    either: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """All that is there, then what comes until it is stopped."""
    topic = make_topic(either, partitions=3)
    produce(either, topic, 0, 600)
    tasks: list[Any] = []
    on_spark = {"runner": None, "spark_session": spark}
    watch = ottla.lake.Observer(on_progress=tasks.append)
    commits = follow(either, topic, max_bytes=4000, watch=watch, **on_spark)
    assert len(commits) > 1
    assert len([one for one in tasks if one.tasks_done == one.tasks]) == len(commits)
    assert sum(one.manifest.rows for one in commits) == 600
    stop = threading.Event()
    seen: list[int] = []

    def on_commit(progress: FollowProgress) -> None:
        seen.append(progress.manifest.rows)
        if sum(seen) < 200:
            produce(either, topic, 700, 800)
        else:
            stop.set()

    produce(either, topic, 600, 700)
    follow(
        either,
        topic,
        once=False,
        watch=ottla.lake.Observer(stop=stop, on_commit=on_commit),
        **on_spark,
    )
    assert sum(seen) == 200
    require_all(either, topic, tmp_path, 800)


def test_workers_of_spark_are_up_before_it_takes_a_table_over(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path, follow: Any
) -> None:
    """The first records do not wait for them, nor does a follow that it takes over from stop."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 50)
    stop = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    jobs_before = set(tracker.getJobIdsForGroup(None))
    jobs: dict[str, int] = {}

    def on_step(step: str) -> None:
        jobs.setdefault(step, len(set(tracker.getJobIdsForGroup(None)) - jobs_before))

    on_spark = {"runner": None, "spark_session": spark}
    follow(
        node,
        topic,
        once=False,
        watch=ottla.lake.Observer(on_step, stop=stop, on_commit=lambda _: stop.set()),
        **on_spark,
    )
    assert jobs["head written"] == jobs["following"] == 1
    require_all(node, topic, tmp_path, 50)
