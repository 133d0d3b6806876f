"""What a run would load, in offsets, bytes and seconds."""

import pytest

from ottla.lake.edges.planned_load import PlannedLoad, planned_partitions, task_count
from ottla.lake.edges.status import first_time_ms, lag_s
from ottla.lake.model.plan import Range, SizedRange
from ottla.record.builder import LOG_APPEND_TIME, BatchBuilder

MIB = 1 << 20


def batch(base_offset: int, *times_ms: int, **kind: int) -> bytes:
    builder = BatchBuilder(0, base_offset=base_offset, **kind)
    for time_ms in times_ms:
        builder.append(time_ms, None, b"v", [])
    return bytes(builder.build())


def test_first_record_behind_the_position_says_how_old_the_rest_is() -> None:
    """By the header of its batch, without reading records."""
    buffer = batch(0, 100, 200) + batch(2, 5_000, 6_000)
    assert first_time_ms(buffer, 0) == 100
    assert first_time_ms(buffer, 2) == 5_000
    # In the middle of a batch: its latest time, so that no lag is overstated.
    assert first_time_ms(buffer, 3) == 6_000
    assert first_time_ms(buffer, 4) is None
    assert first_time_ms(b"", 0) is None


def test_a_batch_without_a_time_says_nothing() -> None:
    """Producers may leave timestamps out."""
    assert first_time_ms(batch(0, -1), 0) is None


def test_append_time_is_the_time() -> None:
    """Then the broker's clock counts, which a batch has as its latest time."""
    buffer = batch(0, 100, 9_000, timestamp_type=LOG_APPEND_TIME)
    assert first_time_ms(buffer, 0) == 9_000


def test_clock_ahead_of_ours_is_no_negative_lag() -> None:
    assert lag_s(2_000, 1_000) == 0.0
    assert lag_s(None, 1_000) is None


def test_plan_has_every_partition_with_its_part_of_bytes_and_lag() -> None:
    """Idle ones, too: the load commits their position."""
    ranges = [
        SizedRange(Range("flights", 0, 10, 20), 4 * MIB),
        SizedRange(Range("flights", 0, 20, 30), 3 * MIB),
    ]
    found = planned_partitions(
        {0: 10, 1: 0, 2: 7}, {0: 30, 1: 0, 2: 7}, {0: 10, 2: 7}, ranges, {0: 1_000}, 61_000
    )
    plan = PlannedLoad("flights", None, "/lake", 3, found, task_count(ranges), len(ranges))

    assert [(p["partition"], p["position"], p["offsets"]) for p in plan.rows()] == [
        (0, 10, 20),
        (1, None, 0),
        (2, 7, 0),
    ]
    assert [p["size_bytes"] for p in plan.rows()] == [7 * MIB, 0, 0]
    assert (plan.offsets, plan.size_bytes, plan.lag_s) == (20, 7 * MIB, 60.0)
    # Small ranges share a task of Spark.
    assert (plan.tasks, plan.files) == (1, 2)


@pytest.mark.parametrize(("count", "tasks"), [(0, 0), (1, 1), (3, 3)])
def test_large_ranges_are_a_task_each(count: int, tasks: int) -> None:
    ranges = [SizedRange(Range("f", p, 0, 9), 100 * MIB) for p in range(count)]
    assert task_count(ranges) == tasks
