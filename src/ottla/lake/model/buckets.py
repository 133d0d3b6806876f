"""Event-time buckets: the day, hour or month that a row belongs to, in UTC. Pure.

A bucket's name is the beginning of its time span: `2026-11-23`, `2026-11-23-09`, `2026-11`. Rows
without an event time are in the bucket `null`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

By = Literal["none", "day", "hour", "month"]
BY: tuple[By, ...] = get_args(By)
NULL = "null"
# Engines read this folder name as null.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_UNITS: Mapping[By, Any] = {"day": "D", "hour": "h", "month": "M"}
_NAMES: Mapping[By, re.Pattern[str]] = {
    "none": re.compile(r""),
    "day": re.compile(r"\d{4}-\d\d-\d\d|null"),
    "hour": re.compile(r"\d{4}-\d\d-\d\d-\d\d|null"),
    "month": re.compile(r"\d{4}-\d\d|null"),
}
_FOLDER = re.compile(r"event_(day|hour|month)=[\w-]+")


@dataclass(frozen=True, slots=True)
class Buckets:
    """How a table's files are divided: by the event times of a column."""

    column: str
    by: By


ONE_BUCKET = Buckets("timestamp", "none")


def column_name(by: By) -> str:
    """Return the name that engines use for the column of buckets."""
    return f"event_{by}"


def folder_of(by: By, bucket: str) -> str:
    """Return the folder of a bucket within the data folder, ending in `/`; or ""."""
    if by == "none":
        return ""
    return f"{column_name(by)}={_NULL_FOLDER if bucket == NULL else bucket}/"


def is_folder(name: str) -> bool:
    """Return whether `name` is the folder of a bucket."""
    return _FOLDER.fullmatch(name) is not None


def is_bucket(by: By, bucket: str) -> bool:
    """Return whether `bucket` is a valid name."""
    return _NAMES[by].fullmatch(bucket) is not None


def micros_of(column: Any) -> Any:
    """Return event times as Arrow microseconds since 1970; null if there is none."""
    return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())


def numbers_of(micros: Any, by: By) -> Any:
    """Return the bucket numbers of times (numpy, microseconds): units since 1970."""
    times = micros.astype("datetime64[us]")
    return times.astype(f"datetime64[{_UNITS[by]}]").astype(np.int64)


def bucket_of(number: int, by: By) -> str:
    """Return the name of the bucket with this number."""
    return str(np.datetime64(number, _UNITS[by])).replace("T", "-")


def number_of(bucket: str, by: By) -> int | None:
    """Return the number of a bucket; None for rows without an event time."""
    if bucket == NULL:
        return None
    text = f"{bucket[:10]}T{bucket[11:]}" if by == "hour" else bucket
    return int(np.datetime64(text, _UNITS[by]).astype(np.int64))


def number_at(time_ms: int, by: By) -> int:
    """Return the number of the bucket that a time is in."""
    return int(numbers_of(np.array([time_ms * 1000], np.int64), by)[0])


def buckets_of(column: Any, by: By) -> set[str]:
    """Return the buckets that event times are in."""
    micros = micros_of(column)
    found = {NULL} if micros.null_count else set()
    numbers = np.unique(numbers_of(np.asarray(micros.drop_null()), by))
    return found | {bucket_of(int(number), by) for number in numbers}
