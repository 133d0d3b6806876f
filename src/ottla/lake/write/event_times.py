"""Applies event times to a load: from its options, the table, and the rows its tasks have read."""

import time
from collections.abc import Mapping, Sequence

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.load_task import TaskResult
from ottla.lake.model.event_times import (
    TIMESTAMP,
    EventRule,
    EventSettings,
    EventTimes,
    after_load,
    column_name,
    decided,
    moves,
)
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.manifest import Manifest
from ottla.lake.source.boundaries import Limits
from ottla.lake.source.cluster import TopicDescription
from ottla.lake.write.table_schema import LoadTyping


def events_for(
    asked: EventSettings, before: Manifest | None, typing: LoadTyping | None, *, reads: bool
) -> EventTimes | None:
    """Return the event-time settings of a load. Raises OttlaError if they do not fit the table.

    If the load reads rows (`reads`), the event-time column is also checked against `typing`.
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
    """Return what tasks do with event times; `events` is the state before the load."""
    if events is None:
        return None
    clock_ms = described.at_ms or time.time_ns() // 1_000_000
    return EventRule(events.column, events.by, events.watermark_ms, events.late_rows, clock_ms)


def empty_at(
    described: TopicDescription, limits: Limits, high_watermarks: Mapping[int, int]
) -> dict[int, int]:
    """Return when each partition was seen to have nothing after what the load reads.

    Records of an open transaction count as something, although they cannot be read yet.
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
    """Return the event times for the load's manifest, whose positions name the `partitions`."""
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
    """Return whether a load without rows moves the table's watermark into another bucket."""
    if events is None or events.idle_ms is None:
        return False
    after = after_load(events, seen={}, empty_at=empty, late={}, partitions=partitions)
    return moves(events.watermark_ms, after.watermark_ms, events.by)
