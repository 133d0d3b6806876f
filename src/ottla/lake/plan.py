"""Which offsets a load or a query reads: boundaries in words → offsets → ranges for tasks.

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
    """Offsets [start, end) of one partition: the work of one task."""

    # Invariant: 0 <= start <= end.
    topic: str
    partition: int
    start: int
    end: int
    # Only this topic's offsets are meant; None: those of whatever topic has the name.
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """Where the log of a partition starts and where its readable part ends."""

    log_start: int
    end: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where reading starts or ends, before it is known in offsets.

    `offsets` names some partitions' offsets (-2 earliest, -1 latest) and says nothing of others;
    so does `times` with times in milliseconds.
    """

    kind: Literal["earliest", "latest", "timestamp", "times", "offsets", "last-load"]
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    times: Mapping[int, int] | None = None
    is_strict: bool = False  # A partition without a record at or after the time is an error.


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

    `by_time` answers a timestamp boundary (a partition without so late a record is absent: its
    end is meant); `last_load` holds where the last load ended (absent: the log's start is meant).
    Partitions that a boundary of offsets does not name have their `unnamed`: where reading
    starts or ends by default.
    Raises OttlaError for an offset of a partition that does not exist, or beyond the log's end.
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
    """Refuse a start in the future: a load would commit where it stands now, before that time."""
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
    """Cut what lies between `starts` and `ends` into ranges of at most `offsets_max` offsets.

    Smaller where fewer than `tasks_min` ranges would come out. Empty ones are left out; the
    order is by partition, then by offset. A start behind its end is an error of the caller's
    words: nothing can be read backwards.
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
    """Starts of equal pieces, none larger than `size`."""
    pieces = -(-(end - start) // size)
    return [start + piece * size for piece in range(pieces)]


def require_same_id(topic: str, known_id: str | None, current_id: str | None) -> None:
    """Refuse to commit what was read while the topic was deleted and created anew.

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
    """Refuse to go on where the topic is not the one loaded before, or lost its end.

    Raises OttlaError: UNKNOWN_TOPIC_ID for a topic deleted and created anew,
    OFFSET_OUT_OF_RANGE for a log that now ends before what was loaded.
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
