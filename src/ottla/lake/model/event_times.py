"""Event times and watermarks: how far a table is complete after each commit. Pure.

A partition's watermark is its highest event time minus the allowed lateness. If idle partitions
follow the clock, it is also at least the time of the last load that read the whole partition, minus
the allowance for idle partitions. It never decreases. The table's watermark is the lowest of its
partitions' watermarks: rows before it are expected to be loaded. A row that is loaded later with an
event time before it is late.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError

By = Literal["none", "day", "hour", "month"]
BY: tuple[By, ...] = get_args(By)
NULL = "null"
# Query engines read this folder name as null.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_UNITS: Mapping[By, Any] = {"day": "D", "hour": "h", "month": "M"}
_BUCKET_NAMES: Mapping[By, re.Pattern[str]] = {
    "none": re.compile(r""),
    "day": re.compile(r"\d{4}-\d\d-\d\d|null"),
    "hour": re.compile(r"\d{4}-\d\d-\d\d-\d\d|null"),
    "month": re.compile(r"\d{4}-\d\d|null"),
}
_FOLDER = re.compile(r"event_(day|hour|month)=[\w-]+")


@dataclass(frozen=True, slots=True)
class Buckets:
    """How a table's files are divided: by the event times in `column`, in units of `by`."""

    column: str
    by: By


ONE_BUCKET = Buckets("timestamp", "none")


def column_name(by: By) -> str:
    """Return the name of the bucket column for query engines."""
    return f"event_{by}"


def folder_of(by: By, bucket: str) -> str:
    """Return the folder of a bucket within the data folder, ending in `/`; "" without buckets."""
    if by == "none":
        return ""
    return f"{column_name(by)}={_NULL_FOLDER if bucket == NULL else bucket}/"


def is_folder(name: str) -> bool:
    """Return whether `name` is the folder of a bucket."""
    return _FOLDER.fullmatch(name) is not None


def is_bucket(by: By, bucket: str) -> bool:
    """Return whether `bucket` is a valid name."""
    return _BUCKET_NAMES[by].fullmatch(bucket) is not None


def micros_of(column: Any) -> Any:
    """Return event times as an Arrow column of microseconds since 1970."""
    return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())


def numbers_of(micros: Any, by: By) -> Any:
    """Return the bucket number of each time: its number of units since 1970.

    `micros` is a numpy array of microseconds.
    """
    times = micros.astype("datetime64[us]")
    return times.astype(f"datetime64[{_UNITS[by]}]").astype(np.int64)


def bucket_of(number: int, by: By) -> str:
    """Return the name of the bucket with this number."""
    return str(np.datetime64(number, _UNITS[by])).replace("T", "-")


def number_of(bucket: str, by: By) -> int | None:
    """Return the number of a bucket; None for the bucket of rows without an event time."""
    if bucket == NULL:
        return None
    text = f"{bucket[:10]}T{bucket[11:]}" if by == "hour" else bucket
    return int(np.datetime64(text, _UNITS[by]).astype(np.int64))


def number_at(time_ms: int, by: By) -> int:
    """Return the number of the bucket of a time."""
    return int(numbers_of(np.array([time_ms * 1000], np.int64), by)[0])


def buckets_of(column: Any, by: By) -> set[str]:
    """Return the names of the buckets of a column of event times."""
    micros = micros_of(column)
    found = {NULL} if micros.null_count else set()
    numbers = np.unique(numbers_of(np.asarray(micros.drop_null()), by))
    return found | {bucket_of(int(number), by) for number in numbers}


LateRows = Literal["keep", "dead-letter", "fail"]
LATE_ROWS: tuple[LateRows, ...] = get_args(LateRows)
TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The event-time state in a commit's manifest. Times are in milliseconds since 1970."""

    column: str = TIMESTAMP  # The table's column that holds the event times.
    by: By = "none"  # How files are divided.
    lateness_ms: int = 0
    idle_ms: int | None = None  # If None, an idle partition holds the watermark back.
    late_rows: LateRows = "keep"
    # By partition: `highest` is the highest event time so far, not later than the clock at its
    # load. `empty_at` is the last time at which all readable records were loaded. The watermark
    # follows from both.
    highest: Mapping[int, int] = field(default_factory=dict)
    empty_at: Mapping[int, int] = field(default_factory=dict)
    watermarks: Mapping[int, int] = field(default_factory=dict)
    # The table's watermark; None until each partition has a watermark. It never decreases, even if
    # a partition is added.
    watermark_ms: int | None = None
    # The number of late rows of this commit, by partition.
    late: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventSettings:
    """The event-time options of a load. None keeps the table's setting."""

    partition_by: By | None = None
    column: str | None = None
    lateness_ms: int | None = None
    idle_ms: int | None = None
    late_rows: LateRows | None = None


@dataclass(frozen=True, slots=True)
class EventRule:
    """The rule by which tasks treat event times. Can be pickled."""

    column: str
    by: By
    watermark_ms: int | None  # Rows before it are late.
    late_rows: LateRows
    clock_ms: int  # Event times after this are a producer's mistake: they raise no watermark.


def decided(asked: EventSettings, before: EventTimes | None, *, is_new: bool) -> EventTimes | None:
    """Return the event-time settings of a load, from its options and the table's settings.

    Returns None if the table does not use event times. `is_new` says that the table has no commit
    yet. Raises OttlaError if an option contradicts the table.
    """
    if before is None:
        if asked == EventSettings():
            return None
        if asked.partition_by not in (None, "none") and not is_new:
            raise _refused("none", asked.partition_by)
        before = EventTimes(column=asked.column or TIMESTAMP, by=asked.partition_by or "none")
    if asked.partition_by not in (None, before.by):
        raise _refused(before.by, asked.partition_by)
    if asked.column not in (None, before.column):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the event time of this table is its column {before.column}; to go by {asked.column} "
            "load into a folder of its own",
        )
    return replace(
        before,
        lateness_ms=before.lateness_ms if asked.lateness_ms is None else asked.lateness_ms,
        idle_ms=before.idle_ms if asked.idle_ms is None else asked.idle_ms,
        late_rows=asked.late_rows or before.late_rows,
        late={},
    )


def _refused(by: str, asked: str | None) -> OttlaError:
    has = "not partitioned by event time" if by == "none" else f"partitioned by {by}"
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"this table is {has}, which its first load decided; to partition by {asked} load into a "
        "folder of its own",
    )


def after_load(
    before: EventTimes,
    *,
    seen: Mapping[int, int],
    empty_at: Mapping[int, int],
    late: Mapping[int, int],
    partitions: Mapping[int, int],
) -> EventTimes:
    """Return the event-time state for a load's manifest.

    `seen` has the highest event time that the load read from each partition.
    """
    highest = {**before.highest}
    for partition, time in seen.items():
        highest[partition] = max(time, highest.get(partition, time))
    at = {**before.empty_at, **empty_at} if before.idle_ms is not None else before.empty_at
    after = replace(before, highest=highest, empty_at=dict(at), late=dict(late))
    return _with_watermarks(after, before, partitions)


def _with_watermarks(
    events: EventTimes, before: EventTimes, partitions: Mapping[int, int]
) -> EventTimes:
    """Return `events` with watermarks. They are never below those of the previous commit."""
    marks = _watermarks(events, before.watermarks)
    least = before.watermark_ms
    if partitions and partitions.keys() <= marks.keys():
        now = min(marks[partition] for partition in partitions)
        least = now if least is None else max(now, least)
    return replace(events, watermarks=marks, watermark_ms=least)


def _watermarks(events: EventTimes, before: Mapping[int, int]) -> dict[int, int]:
    """Return the watermarks by partition. `before` has those of the previous commit."""
    found = dict(before)
    for partition, time in events.highest.items():
        found[partition] = max(time - events.lateness_ms, found.get(partition, -(1 << 63)))
    for partition, time in events.empty_at.items() if events.idle_ms is not None else ():
        assert events.idle_ms is not None
        found[partition] = max(time - events.idle_ms, found.get(partition, -(1 << 63)))
    return found


def moves(before: int | None, after: int | None, by: By) -> bool:
    """Return whether a watermark has moved into another bucket, which is worth a commit."""
    if after is None:
        return False
    unit: By = "hour" if by == "none" else by
    return before is None or number_at(after, unit) > number_at(before, unit)


def settled(events: EventTimes | None) -> EventTimes | None:
    """Return the event-time state that later commits build on."""
    return replace(events, late={}) if events else None


def contradictions(
    before: EventTimes | None, events: EventTimes | None, kind: str, partitions: Mapping[int, int]
) -> list[str]:
    """Return contradictions between a commit's event times and the state `before` it."""
    if kind != "load":
        changed = settled(events) != before
        return ["it changes the table's event times, which only loads do"] if changed else []
    if events is None:
        return ["it has no event times, and the commit before has"] if before else []
    known = before or EventTimes(events.column, events.by)
    problems = []
    if (known.column, known.by) != (events.column, events.by):
        problems.append(
            f"its files are by {events.by} of {events.column}, and those before by {known.by} of "
            f"{known.column}"
        )
    for partition, time in known.highest.items():
        if events.highest.get(partition, time - 1) < time:
            problems.append(f"its highest event time of partition {partition} falls")
    if _with_watermarks(events, known, partitions) != events:
        problems.append("its watermarks do not follow from its event times")
    return problems
