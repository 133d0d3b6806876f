"""What a run would load, in offsets, bytes and seconds."""

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.lake.edges.planned_load import planned_load
from ottla.lake.model.plan import PartitionBounds, Range, SizedRange
from ottla.lake.source.boundaries import limits_between
from ottla.lake.source.cluster import TopicBounds
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.own import OwnTable
from ottla.lake.write.load_plan import LoadPlan
from tests.unit.lake.tables import TOPIC, commit

MIB = 1 << 20


def plan_of(folder: Path, ends: dict[int, int], ranges: list[SizedRange]) -> LoadPlan:
    """The plan of a load after one that ended at offset 10 of the partitions 0 and 1."""
    before = commit(OwnTable(LocalStore(folder)).writable(), 10)
    bounds = {p: PartitionBounds(0, end) for p, end in ends.items()}
    described = TopicBounds(TOPIC, None, None, bounds, compacted=False)
    starts = {p: before.positions.get(p, 0) for p in bounds}
    return LoadPlan(
        described=described,
        before=before,
        digest=None,
        bootstrap="localhost:1",
        load_id="l",
        limits=limits_between(described, starts, ends, before.positions),
        ranges=ranges,
        idle=[],
    )


def test_plan_has_every_partition_with_its_part_of_bytes_and_lag(tmp_path: Path) -> None:
    """Idle ones, too: the load commits their position."""
    ranges = [
        SizedRange(Range(TOPIC, 0, 10, 20), 4 * MIB),
        SizedRange(Range(TOPIC, 0, 20, 30), 3 * MIB),
    ]
    plan = plan_of(tmp_path, {0: 30, 1: 10, 2: 0}, ranges)
    found = planned_load(plan, "/lake", {0: 1_000}, 61_000)

    assert [(p.partition, p.position, p.offsets) for p in found.partitions] == [
        (0, 10, 20),
        (1, 10, 0),
        (2, None, 0),
    ]
    assert [(p.size_bytes, p.lag_s) for p in found.partitions] == [
        (7 * MIB, 60.0),
        (0, None),
        (0, None),
    ]
    assert (found.offsets, found.size_bytes, found.lag_s) == (20, 7 * MIB, 60.0)
    # Small ranges share a task of Spark.
    assert (found.version, found.tasks, found.files) == (2, 1, 2)


@pytest.mark.parametrize(("count", "tasks"), [(0, 0), (1, 1), (3, 3)])
def test_large_ranges_are_a_task_each(tmp_path: Path, count: int, tasks: int) -> None:
    ranges = [SizedRange(Range(TOPIC, p, 0, 9), 100 * MIB) for p in range(count)]
    assert planned_load(plan_of(tmp_path, {0: 30}, ranges), "/lake", {}, 0).tasks == tasks


def test_lost_offsets_have_a_line(tmp_path: Path) -> None:
    """Those that retention took after the position of the table."""
    plan = plan_of(tmp_path, {0: 30}, [])
    described = TopicBounds(TOPIC, None, None, {0: PartitionBounds(15, 30)}, compacted=False)
    limits = limits_between(described, {0: 10}, {0: 30}, {0: 10})
    found = planned_load(replace(plan, limits=limits), "/lake", {}, 0)
    assert found.lost == (
        f"{TOPIC}-0: 5 of the offsets 10 to 30 were deleted before they were loaded",
    )
