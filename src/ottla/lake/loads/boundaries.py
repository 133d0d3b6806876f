"""Where reading starts and ends, in offsets: the one place for loads, the data source and streams.

Asks the cluster only for the offsets of a time; everything else is known from its description.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.loss import deleted_at, gone_before, losses
from ottla.lake.plan import Boundary, require_past, resolve
from ottla.lake.source import Cluster, TopicDescription
from ottla.ledger.partition import PartitionLedger

Offsets = Mapping[int, int]
Narrowed = Callable[[Offsets, Offsets], tuple[Offsets, Offsets]]


@dataclass(frozen=True, slots=True)
class Limits:
    """From where to where each partition of a topic is read."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]
    gone_below: Mapping[int, int]  # Below it a deletion is no loss.
    lost: Mapping[PartitionLedger, int]  # What is lost already, and how many offsets it is.


def limits_of_read(
    cluster: Cluster,
    described: TopicDescription,
    start: Boundary,
    end: Boundary,
    last_load: Mapping[int, int],
    narrowed: Narrowed = lambda starts, ends: (starts, ends),
) -> Limits:
    """What a query reads. `last_load` has the positions that `last-load` means.

    `narrowed` gives what the query's conditions leave of starts and ends.
    """
    starts, ends = narrowed(
        offsets_of(cluster, described, start, last_load),
        offsets_of(cluster, described, end, last_load, unnamed="latest"),
    )
    return _limits(described, starts, ends, last_load if start.kind == "last-load" else {})


def limits_of_load(
    cluster: Cluster,
    described: TopicDescription,
    start: Boundary,
    end: Boundary,
    positions: Mapping[int, int] | None,
) -> Limits:
    """What a load reads, which goes on at the `positions` of its table (None: it has no load yet).

    Whatever the boundaries say, no offset is loaded twice and none is skipped.
    """
    require_past(start, time.time_ns() // 1_000_000)
    if positions is not None and start.kind == "latest":
        # The first load wrote the position of each partition: others were added since then.
        start = Boundary("earliest")
    known = positions or {}
    starts = {**offsets_of(cluster, described, start, known), **known}
    ends = offsets_of(cluster, described, end, known, unnamed="latest")
    ends = {partition: max(ends[partition], starts[partition]) for partition in starts}
    return _limits(described, starts, ends, known)


def require_boundaries(
    cluster: Cluster, described: TopicDescription, start: Boundary, end: Boundary | None = None
) -> None:
    """Refuse boundaries that mean nothing in the topic, before anything is made for a table."""
    require_past(start, time.time_ns() // 1_000_000)
    for boundary in filter(None, (start, end)):
        offsets_of(cluster, described, boundary, {})


def offsets_of(
    cluster: Cluster,
    described: TopicDescription,
    boundary: Boundary,
    last_load: Mapping[int, int],
    *,
    unnamed: Literal["earliest", "latest"] = "earliest",
) -> dict[int, int]:
    """The offset that `boundary` means in each partition. Raises OttlaError as `resolve` does."""
    by_time = _offsets_by_time(cluster, described, boundary)
    return resolve(
        boundary, described.bounds, by_time=by_time, last_load=last_load, unnamed=unnamed
    )


def _offsets_by_time(
    cluster: Cluster, described: TopicDescription, boundary: Boundary
) -> Mapping[int, int]:
    """The first offset at or after the boundary's time; absent where there is none."""
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


def _limits(
    described: TopicDescription,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    positions: Mapping[int, int],
) -> Limits:
    gone_below = gone_before(described.bounds, positions)
    known = [deleted_at(starts[p], ends[p], p, bound) for p, bound in described.bounds.items()]
    return Limits(starts, ends, gone_below, losses(known, gone_below))
