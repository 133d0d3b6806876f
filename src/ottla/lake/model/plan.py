"""Plans which offsets a load or a query reads: boundaries in words → offsets → ranges for tasks.

Pure. The caller has asked the cluster for the offsets of the log.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ottla.base.clock import local_now
from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.quantities import iso
from ottla.base.units import MOMENT_FORMS, moment_ms


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [start, end) of one partition, read by one task."""

    # Invariant: 0 <= start <= end.
    topic: str
    partition: int
    start: int
    end: int
    # Fail if the topic has another id. None: accept any topic with this name.
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """The start of a partition's log and the end of its readable part."""

    log_start: int
    end: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """A start or an end of reading, before it is resolved to offsets.

    `offsets` gives the offsets of some partitions (-2 earliest, -1 latest); other partitions get a
    default. `times` does the same with times in milliseconds.
    """

    kind: Literal["earliest", "latest", "timestamp", "times", "offsets", "last-load"]
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    times: Mapping[int, int] | None = None
    is_strict: bool = False  # Fail if a partition has no record at or after the time.


EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
_OFFSETS = {"earliest": EARLIEST_OFFSET, "latest": LATEST_OFFSET}
_PAIR = r"[0-9]{1,10}:-?[0-9]{1,19}"
_PAIRS = re.compile(f"{_PAIR}(?:,{_PAIR})*")


def parse_boundary(text: str) -> Boundary:
    """Read `earliest`, `latest`, `last-load`, `<partition>:<offset>,…` or a point in time.

    The time is one of `units.MOMENT_FORMS`, but `9:30` is an offset: write `today 9:30`.
    """
    match text:
        case "earliest" | "latest" | "last-load" as kind:
            return Boundary(kind)
    if _PAIRS.fullmatch(text):
        pairs = (pair.split(":") for pair in text.split(","))
        return Boundary("offsets", offsets={int(p): int(offset) for p, offset in pairs})
    timestamp_ms = moment_ms(text, local_now())
    if timestamp_ms is None:
        raise WrongWords(
            f"{text!r} is not a boundary: write earliest, latest, last-load, "
            f"PARTITION:OFFSET,PARTITION:OFFSET, or a time: {MOMENT_FORMS}"
        )
    return Boundary("timestamp", timestamp_ms=timestamp_ms)


def resolve(
    boundary: Boundary,
    bounds: Mapping[int, PartitionBounds],
    *,
    by_time: Mapping[int, int],
    last_load: Mapping[int, int],
    unnamed: Literal["earliest", "latest"] = "earliest",
) -> dict[int, int]:
    """Return the offset that `boundary` means in each partition of `bounds`.

    `by_time` has the offsets of a timestamp boundary; a partition missing there has no record that
    late, and resolves to its end. `last_load` has the offsets where the last load ended; a
    partition missing there resolves to the log's start. A partition that a boundary of offsets does
    not name resolves to `unnamed`, the default for starts or for ends. Raises OttlaError for an
    offset of a partition that does not exist, or beyond the log's end.
    """
    resolved: dict[int, int] = {}
    for partition, bound in bounds.items():
        match boundary.kind:
            case "earliest":
                resolved[partition] = bound.log_start
            case "latest":
                resolved[partition] = bound.end
            case "timestamp":
                resolved[partition] = by_time.get(partition, bound.end)
            case "times" if partition in (boundary.times or {}):
                resolved[partition] = by_time.get(partition, bound.end)
            case "last-load":
                resolved[partition] = last_load.get(partition, bound.log_start)
            case "offsets" | "times":
                resolved[partition] = _named_offset(
                    (boundary.offsets or {}).get(partition, _OFFSETS[unnamed]), partition, bound
                )
    unknown = sorted({*(boundary.offsets or {}), *(boundary.times or {})} - set(bounds))
    if unknown:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no partition {unknown[0]}; the topic has partitions 0 to {len(bounds) - 1}",
        )
    return resolved


def _named_offset(offset: int, partition: int, bound: PartitionBounds) -> int:
    if offset == EARLIEST_OFFSET:
        return bound.log_start
    if offset == LATEST_OFFSET:
        return bound.end
    if not 0 <= offset <= bound.end:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of partition {partition} is not in its log, which holds offsets "
            f"{bound.log_start} to {bound.end}",
        )
    return offset


def require_past(boundary: Boundary, now_ms: int) -> None:
    """Refuse a start in the future: a load would commit the current offset, before that time."""
    if boundary.timestamp_ms is not None and boundary.timestamp_ms > now_ms:
        raise WrongWords(
            f"the start {iso(boundary.timestamp_ms)} lies in the future (it is {iso(now_ms)} "
            "now): load once that time has come, or start from latest",
        )


def ranges(
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    *,
    offsets_max: int,
    tasks_min: int,
    topic_id: str | None = None,
) -> list[Range]:
    """Cut the offsets from `starts` to `ends` into ranges of at most `offsets_max` offsets.

    Ranges are smaller if there would be fewer than `tasks_min` of them. Empty ranges are left out.
    The order is by partition, then by offset. Raises OttlaError if a start is above its end.
    """
    for partition in sorted(starts):
        if starts[partition] > ends[partition]:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"partition {partition} would be read from {starts[partition]} back to "
                f"{ends[partition]}; choose an end behind the start",
            )
    total = sum(ends[p] - starts[p] for p in starts)
    size = max(1, min(offsets_max, -(-total // tasks_min)))
    return [
        Range(topic, partition, start, min(start + size, ends[partition]), topic_id)
        for partition in sorted(starts)
        for start in _starts(starts[partition], ends[partition], size)
    ]


def _starts(start: int, end: int, size: int) -> Sequence[int]:
    """Return the starts of equal pieces, none larger than `size`."""
    pieces = -(-(end - start) // size)
    return [start + piece * size for piece in range(pieces)]


def require_same_id(topic: str, known_id: str | None, current_id: str | None) -> None:
    """Refuse a commit if the topic was deleted and created again while it was read.

    Raises OttlaError UNKNOWN_TOPIC_ID.
    """
    if known_id and known_id != current_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {topic} was deleted and created anew while it was loaded (its id was "
            f"{known_id} and is {current_id}). Nothing was committed: load again, into a new "
            "folder where this table holds loads already",
        )


def require_same_topic(
    topic: str,
    known_id: str | None,
    current_id: str | None,
    positions: Mapping[int, int],
    bounds: Mapping[int, PartitionBounds],
) -> None:
    """Refuse to continue a table if the topic was created again or has lost its latest records.

    Raises OttlaError: UNKNOWN_TOPIC_ID for a topic that was deleted and created again,
    OFFSET_OUT_OF_RANGE for a log that now ends before the table's position.
    """
    if known_id and current_id and known_id != current_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {topic} was deleted and created anew since the last load (its id was "
            f"{known_id} and is {current_id}): load it into a new folder",
        )
    for partition, position in sorted(positions.items()):
        bound = bounds.get(partition)
        if bound is None or bound.end < position:
            end = "does not exist any more" if bound is None else f"now ends at {bound.end}"
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{topic}-{partition} was loaded up to offset {position}, but {end}: records that "
                "were loaded are gone from the log (an unclean election, or data restored from "
                "an older copy). Load into a new folder to start over",
            )
