"""Resolves the topics, start offsets and end offsets of loads and streams.

The cluster is asked only for offsets by time; everything else is in the topic's description.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import Boundary, deleted_at, gone_before, losses, require_past, resolve
from ottla.lake.source.cluster import Cluster, TopicBounds
from ottla.lake.source.source_options import Boundaries, StreamOptions, wrong
from ottla.ledger.partition import PartitionLedger

T = TypeVar("T")
Offsets = Mapping[int, int]
Narrowed = Callable[[Offsets, Offsets], tuple[Offsets, Offsets]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The start and end offset of each partition to read."""

    starts: Offsets
    ends: Offsets
    gone_below: Offsets  # By partition: records deleted below this offset are not a loss.
    # Ranges with offsets that are lost already, and the number of these offsets.
    lost: Mapping[PartitionLedger, int]


def limits_between(
    described: TopicBounds, starts: Offsets, ends: Offsets, positions: Offsets
) -> Limits:
    """Return limits, with the losses: offsets deleted since a read that ended at `positions`."""
    gone_below = gone_before(described.bounds, positions)
    known = [deleted_at(starts[p], ends[p], p, bound) for p, bound in described.bounds.items()]
    return Limits(starts, ends, gone_below, losses(known, gone_below))


def limits_of_read(
    cluster: Cluster,
    described: TopicBounds,
    start: Boundary,
    end: Boundary,
    last_load: Offsets,
    narrowed: Narrowed,
) -> Limits:
    """Return the limits of a query.

    `last_load` has the positions for the boundary `last-load`. `narrowed` applies the query's
    conditions to the starts and ends.
    """
    starts, ends = narrowed(
        offsets_of(cluster, described, start, last_load),
        offsets_of(cluster, described, end, last_load, unnamed="latest"),
    )
    return limits_between(described, starts, ends, last_load if start.kind == "last-load" else {})


def limits_of_load(
    cluster: Cluster,
    described: TopicBounds,
    start: Boundary,
    end: Boundary,
    positions: Offsets | None,
) -> Limits:
    """Return the limits of a load that continues at its table's `positions`.

    `positions` is None for a first load. A partition with a position starts there, whatever
    `start` says. So no later offset is skipped, and none is loaded twice.
    """
    require_past(start, time.time_ns() // 1_000_000)
    if positions is not None and start.kind == "latest":
        # The first load wrote a position for each partition, so partitions without a position are
        # new.
        start = Boundary("earliest")
    known = positions or {}
    starts = {**offsets_of(cluster, described, start, known), **known}
    ends = offsets_of(cluster, described, end, known, unnamed="latest")
    ends = {partition: max(ends[partition], starts[partition]) for partition in starts}
    return limits_between(described, starts, ends, known)


def require_boundaries(
    cluster: Cluster, described: TopicBounds, start: Boundary, end: Boundary | None = None
) -> None:
    """Raise OttlaError for boundaries that are invalid for the topic, before a table is created."""
    require_past(start, time.time_ns() // 1_000_000)
    for boundary in filter(None, (start, end)):
        offsets_of(cluster, described, boundary, {})


def offsets_of(
    cluster: Cluster,
    described: TopicBounds,
    boundary: Boundary,
    last_load: Offsets,
    *,
    unnamed: Literal["earliest", "latest"] = "earliest",
) -> dict[int, int]:
    """Return the offset of `boundary` in each partition. Raises OttlaError as `resolve` does."""
    by_time = _offsets_by_time(cluster, described, boundary)
    return resolve(
        boundary, described.bounds, by_time=by_time, last_load=last_load, unnamed=unnamed
    )


def _offsets_by_time(cluster: Cluster, described: TopicBounds, boundary: Boundary) -> Offsets:
    """Return each partition's first offset at or after the time, if it has such a record."""
    times = dict(boundary.times or {})
    if boundary.timestamp_ms is not None:
        times = dict.fromkeys(described.bounds, boundary.timestamp_ms)
    found = {ms: cluster.offsets_at(described.topic, ms) for ms in set(times.values())}
    by_time = {p: found[ms][p] for p, ms in times.items() if p in found[ms]}
    missing = sorted(times.keys() & described.bounds.keys() - by_time.keys())
    if missing and boundary.is_strict:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{described.topic}-{missing[0]} has no record at or after @{times[missing[0]]}; to "
            'start at its end: .option("startingOffsetsByTimestampStrategy", "latest")',
        )
    return by_time


# -- the data source's topics


def chosen(options: StreamOptions, names: Iterable[str]) -> list[str]:
    """Return the topics to read, in order.

    `names` are the names of all topics, needed only for a pattern. Raises OttlaError
    INVALID_REGULAR_EXPRESSION.
    """
    if options.topics or options.assigned:
        return sorted(options.topics or options.assigned or ())
    pattern = _compiled(options.topic_pattern or "")
    return sorted(name for name in names if pattern.fullmatch(name))


def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415  # Few queries have a pattern.

    settings = re2.Options()
    settings.log_errors = False
    try:
        return re2.compile(pattern, settings)
    except re2.error as error:
        raise OttlaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"data source ottla: subscribePattern `{pattern}` is no regular expression of RE2: "
            f"{error}",
        ) from error


def boundaries(place: Boundaries, topics: Iterable[str]) -> Mapping[str, Boundary]:
    """Return the start or end boundary of each topic.

    Topics that `place` does not name get the default. Raises OttlaError if `place` names a topic
    that is not read.
    """
    names = list(topics)
    unknown = sorted(place.by_topic.keys() - names)
    if unknown:
        wrong(f"where the topic {unknown[0]!r} is to be read is said, but it is not read")
    default = place.everywhere or Boundary("offsets", offsets={})
    return {name: place.by_topic.get(name, default) for name in names}


def assigned(topic: str, found: Mapping[int, T], options: StreamOptions) -> dict[int, T]:
    """Return the entries of `found` for the partitions to read. Raises OttlaError."""
    if options.assigned is None:
        return dict(found)
    missing = sorted(options.assigned[topic] - found.keys())
    if missing:
        wrong(f"topic {topic} has no partition {missing[0]}, which assign names")
    return {number: one for number, one in found.items() if number in options.assigned[topic]}
