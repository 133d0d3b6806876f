"""What a load does with event times: by its options, by the table, by what its tasks have seen."""

import time
from collections.abc import Mapping, Sequence

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.decode.typed_schema import TypedSchema
from ottla.lake.events.buckets import column_name
from ottla.lake.events.times import (
    TIMESTAMP,
    EventRule,
    EventSettings,
    EventTimes,
    after_load,
    decided,
    moves,
)
from ottla.lake.loads.boundaries import Limits
from ottla.lake.loads.typing import LoadTyping
from ottla.lake.manifest import Manifest
from ottla.lake.source import TopicDescription
from ottla.lake.task import TaskResult


def events_for(
    asked: EventSettings, before: Manifest | None, typing: LoadTyping | None, *, reads: bool
) -> EventTimes | None:
    """How a load goes by event time. Raises OttlaError where that goes with table or columns not.

    `reads` says whether the load has rows, and so `typing` the columns.
    """
    events = decided(asked, before.events if before else None, is_new=before is None)
    if events is None or not reads:
        return events
    schema = typing.sorting.schema if typing else TypedSchema()
    kinds = {one.name: one.type for one in (*schema.key, *schema.value)}
    if events.column != TIMESTAMP:
        kind = kinds.get(events.column)
        if kind is None or not pa.types.is_timestamp(kind.arrow):
            what = f"is {kind}" if kind else "is no column of this load"
            known = ", ".join(n for n, k in kinds.items() if pa.types.is_timestamp(k.arrow))
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the event time {events.column} {what}; it is {TIMESTAMP} (the record's), or a "
                f"decoded column of type timestamp ({known or 'there is none'})",
            )
    if column_name(events.by) in kinds:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a decoded column has the name {column_name(events.by)}, which is that of the "
            "partitions: rename it (rules.rename), or partition by another unit",
        )
    return events


def rule_of(events: EventTimes | None, described: TopicDescription) -> EventRule | None:
    """What tasks do; `events` are as before the load."""
    if events is None:
        return None
    clock_ms = described.at_ms or time.time_ns() // 1_000_000
    return EventRule(events.column, events.by, events.watermark_ms, events.late_rows, clock_ms)


def empty_at(
    described: TopicDescription, limits: Limits, high_watermarks: Mapping[int, int]
) -> dict[int, int]:
    """When partitions were seen to hold nothing behind what the load reads.

    Records of a transaction that is open are behind it, though they can't be read yet.
    """
    return {
        partition: described.at_ms
        for partition, bound in described.bounds.items()
        if described.at_ms
        and limits.ends.get(partition) == bound.end == high_watermarks.get(partition)
    }


def events_after(
    events: EventTimes,
    results: Sequence[TaskResult],
    empty: Mapping[int, int],
    partitions: Mapping[int, int],
) -> EventTimes:
    """What the load's manifest says; `partitions` are those of its positions."""
    seen: dict[int, int] = {}
    late: dict[int, int] = {}
    for result in results:
        partition = result.ledger.partition
        if result.highest_ms is not None:
            seen[partition] = max(result.highest_ms, seen.get(partition, result.highest_ms))
        if result.late:
            late[partition] = late.get(partition, 0) + result.late
    return after_load(events, seen=seen, empty_at=empty, late=late, partitions=partitions)


def is_worth_a_commit(
    events: EventTimes | None, empty: Mapping[int, int], partitions: Mapping[int, int]
) -> bool:
    """Whether a load without rows moves the table's watermark into another bucket."""
    if events is None or events.idle_ms is None:
        return False
    after = after_load(events, seen={}, empty_at=empty, late={}, partitions=partitions)
    return moves(events.watermark_ms, after.watermark_ms, events.by)
