"""Each load of a table writes the position of every partition, also where it loads nothing."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.base.quantities import iso
from ottla.lake import run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def values(target: Path) -> list[bytes]:
    paths = ottla.lake.files(str(target))
    return sorted(v for path in paths for v in pq.read_table(path)["value"].to_pylist())


def numbered(first: int, last: int) -> list[bytes]:
    return sorted(b"v%d" % number for number in range(first, last))


def test_from_latest_loads_what_comes_later(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The first load commits where it stands and no rows; the next one starts there."""
    topic = make_topic(either, partitions=2)
    produce(either, topic, 0, 40)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here
    )
    first = load(start="latest")
    assert first.manifest is not None
    assert (first.rows, first.files, sum(first.manifest.positions.values())) == (0, 0, 40)
    assert [(one.start, one.unexplained) for one in first.ledgers] == [
        (one.end, 0) for one in first.ledgers
    ]
    assert load(start="latest").manifest == first.manifest  # Nothing new: nothing committed.

    produce(either, topic, 40, 100)
    assert load(start="latest").rows == 60
    assert values(tmp_path) == numbered(40, 100)
    found = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
    assert (found.problems, found.loads, found.rows, found.compared) == ([], 2, 60, 60)


def test_a_partition_that_is_idle_since_a_time_has_a_position(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """No record is as late as `@T` yet: what comes from now on is loaded."""
    topic = make_topic(node, partitions=2, message_timestamp_type="LogAppendTime")
    produce(node, topic, 0, 40)
    now_ms = time.time_ns() // 1_000_000
    while (now := time.time_ns() // 1_000_000) <= now_ms:
        pass
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    first = load(start=f"@{now}")
    assert first.manifest is not None
    assert (first.rows, sum(first.manifest.positions.values())) == (0, 40)
    produce(node, topic, 40, 60)
    assert load(start=f"@{now}").rows == 20
    assert values(tmp_path) == numbered(40, 60)


def test_a_start_in_the_future_is_refused(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Where the log stands now would be committed, and records of before that time loaded."""
    topic = make_topic(node, partitions=1)
    later = time.time_ns() // 1_000_000 + 3_600_000
    with pytest.raises(OttlaError, match=f"{iso(later)} lies in the future"):
        ottla.lake.load(
            topic, str(tmp_path), bootstrap=node.bootstrap, start=f"@{later}", runner=run_here
        )


def test_an_empty_topic_has_positions(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Retention may not pass by unseen between two loads, also where the first found nothing."""
    topic = make_topic(node, partitions=2)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    first = load()
    assert first.manifest is not None
    assert first.manifest.positions == {0: 0, 1: 0}
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).problems == []


def test_partitions_added_later_are_loaded_from_their_start(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """A cron job says `--from latest` each time; a new partition is wholly new."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    load = partial(
        ottla.lake.load,
        topic,
        str(tmp_path),
        bootstrap=node.bootstrap,
        start="latest",
        runner=run_here,
    )
    load()
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    produce(node, topic, 10, 100)
    assert load().rows == 90
    assert values(tmp_path) == numbered(10, 100)


def test_an_end_for_one_partition_leaves_the_others_at_the_default(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """`--until 0:3` ends partition 0 at 3; partition 1 is loaded up to its latest offset."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    done = load(end="0:3")
    assert done.manifest is not None
    end = done.manifest.positions[1]
    assert (done.manifest.positions[0], done.rows) == (3, 3 + end)
    assert end > 3
    assert load().rows == 97 - end
