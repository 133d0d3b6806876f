"""The days, hours or months that rows belong to by their event times, in UTC. Pure.

A bucket's name is its beginning, cut off: `2026-11-23`, `2026-11-23-09`, `2026-11`. Rows without
an event time are in the bucket `null`.
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
# What engines read as null in the name of a folder.
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
    """How a table's files are kept apart: by the event times of a column."""

    column: str
    by: By


ONE_BUCKET = Buckets("timestamp", "none")


def column_name(by: By) -> str:
    """What engines call the column of buckets."""
    return f"event_{by}"


def folder_of(by: By, bucket: str) -> str:
    """The folder of a bucket's files, below that of all data, with `/` at its end; or nothing."""
    if by == "none":
        return ""
    return f"{column_name(by)}={_NULL_FOLDER if bucket == NULL else bucket}/"


def is_folder(name: str) -> bool:
    """Whether `name` is the folder of a bucket."""
    return _FOLDER.fullmatch(name) is not None


def is_bucket(by: By, bucket: str) -> bool:
    """Whether a bucket may have this name."""
    return _NAMES[by].fullmatch(bucket) is not None


def micros_of(column: Any) -> Any:
    """Event times as an Arrow column of microseconds since 1970; null where there is none."""
    return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())


def numbers_of(micros: Any, by: By) -> Any:
    """Numbers of the buckets of times (numpy, microseconds): units since 1970."""
    times = micros.astype("datetime64[us]")
    return times.astype(f"datetime64[{_UNITS[by]}]").astype(np.int64)


def bucket_of(number: int, by: By) -> str:
    """The name of the bucket with this number."""
    return str(np.datetime64(number, _UNITS[by])).replace("T", "-")


def number_of(bucket: str, by: By) -> int | None:
    """The number of a bucket; None for that of rows without an event time."""
    if bucket == NULL:
        return None
    text = f"{bucket[:10]}T{bucket[11:]}" if by == "hour" else bucket
    return int(np.datetime64(text, _UNITS[by]).astype(np.int64))


def number_at(time_ms: int, by: By) -> int:
    """The number of the bucket that a time falls into."""
    return int(numbers_of(np.array([time_ms * 1000], np.int64), by)[0])


def buckets_of(column: Any, by: By) -> set[str]:
    """The buckets that event times fall into."""
    micros = micros_of(column)
    found = {NULL} if micros.null_count else set()
    numbers = np.unique(numbers_of(np.asarray(micros.drop_null()), by))
    return found | {bucket_of(int(number), by) for number in numbers}
