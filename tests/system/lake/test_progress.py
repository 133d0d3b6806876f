"""What Spark says of its tasks while a load runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rig.nodes import Node

import ottla.lake
from ottla.lake.job.progress import Progress

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def test_progress_ends_with_everything_and_leaves_the_session_as_it_was(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The load's job group is its own: jobs of the caller keep theirs."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 200)
    seen: list[Progress] = []
    context = spark.sparkContext
    context.setJobGroup("mine", "of the caller")
    try:
        ottla.lake.load(
            topic,
            str(tmp_path),
            bootstrap=node.bootstrap,
            watch=ottla.lake.Observer(on_progress=seen.append, lag_s=5.0),
        )
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert (seen[0].tasks_done, seen[0].offsets, seen[0].lag_s is not None) == (0, 200, True)
    assert [one.tasks_done for one in seen] == sorted(one.tasks_done for one in seen)
    assert (seen[-1].offsets_done, seen[-1].bytes_done) == (200, seen[-1].size_bytes)


def test_status_tracker_counts_the_tasks_of_a_job_group(spark: Any) -> None:
    """Of all jobs of the group, and of no other."""
    from ottla.lake.job.on_spark import _done

    context = spark.sparkContext
    context.setJobGroup("counted", "")
    try:
        spark.range(0, 8, 1, 4).rdd.map(lambda row: row.id).collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    spark.range(0, 8, 1, 4).rdd.map(lambda row: row.id).collect()
    assert _done(context.statusTracker(), "counted") == 4
