"""Days, hours and months of event times, in UTC."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ottla.lake.model.event_times import (
    BY,
    By,
    bucket_of,
    buckets_of,
    folder_of,
    is_bucket,
    is_folder,
    number_at,
    number_of,
)


@pytest.mark.parametrize(
    ("by", "bucket"), [("day", "2026-11-23"), ("hour", "2026-11-23-09"), ("month", "2026-11")]
)
def test_a_bucket_is_named_for_its_beginning(by: By, bucket: str) -> None:
    """Its number leads back to the name, and the name is that of a folder."""
    at = datetime(2026, 11, 23, 9, 59, 59, 999_000, UTC)
    number = number_at(int(at.timestamp() * 1000), by)
    assert bucket_of(number, by) == bucket
    assert number_of(bucket, by) == number
    assert folder_of(by, bucket) == f"event_{by}={bucket}/"
    assert is_folder(f"event_{by}={bucket}")
    assert [one for one in BY if is_bucket(one, bucket)] == [by]


def test_times_before_1970_fall_into_the_bucket_they_are_in() -> None:
    assert bucket_of(number_at(-1, "day"), "day") == "1969-12-31"
    assert bucket_of(number_at(-1, "hour"), "hour") == "1969-12-31-23"
    assert bucket_of(number_at(-1, "month"), "month") == "1969-12"


def test_null_is_a_bucket_that_engines_read_as_null() -> None:
    column = pa.array([None, 0, 3_600_000], pa.timestamp("ms", tz="UTC"))
    assert buckets_of(column, "hour") == {"null", "1970-01-01-00", "1970-01-01-01"}
    assert folder_of("hour", "null") == "event_hour=__HIVE_DEFAULT_PARTITION__/"
    assert number_of("null", "hour") is None
    assert folder_of("none", "") == ""
