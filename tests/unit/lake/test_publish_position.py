"""Where a publish goes on, how fast it may go, and what its columns mean."""

from datetime import UTC, datetime

import pytest

from ottla.base.errors import OttlaError
from ottla.client import OffsetAndMetadata
from ottla.lake.rows.publish_row import Row
from ottla.lake.write.publish import PublishPace, as_offset, from_offset, position_at, start_of
from ottla.lake.write.publish_source import RAW, Fields, SourceFile, as_row, milliseconds, over

FILES = [SourceFile("a.csv", 10), SourceFile("b.csv", 20), SourceFile("c.csv", 30)]


def test_position_is_an_offset_and_comes_back() -> None:
    """The number of records in all; file and row stand in the metadata."""
    position = position_at(FILES, 1, 7, 107)
    assert as_offset(position).offset == 107
    assert from_offset(as_offset(position)) == position
    for bad in ("", "{}", '{"kind": "ottla sink"}', '{"kind": "ottla publish"}'):
        with pytest.raises(OttlaError, match="which no publish wrote; choose another --name"):
            from_offset(OffsetAndMetadata(1, bad))


def test_publish_goes_on_behind_its_position() -> None:
    """Also where files were added behind the others."""
    assert start_of(None, FILES) == (0, 0)
    position = position_at(FILES, 1, 7, 107)
    assert start_of(position, FILES) == (1, 7)
    assert start_of(position, [*FILES, SourceFile("d.csv", 40)]) == (1, 7)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([FILES[0], FILES[2]], "b.csv, which it had come to, is not there any more"),
        ([SourceFile("0.csv", 5), *FILES], "other files stand before b.csv"),
        ([FILES[1], FILES[2]], "other files stand before b.csv"),
        ([SourceFile("a.csv", 11), *FILES[1:]], "other files stand before b.csv"),
        ([FILES[0], SourceFile("b.csv", 21)], "b.csv has 21 bytes now, 20 before"),
    ],
)
def test_source_that_has_changed_is_refused(files: list[SourceFile], words: str) -> None:
    """A row number in other rows means other rows: some would be lost or doubled."""
    with pytest.raises(OttlaError, match=words):
        start_of(position_at(FILES, 1, 7, 107), files)


def test_pace_is_the_slower_of_records_and_bytes() -> None:
    assert PublishPace().delay_s(10, 10, 0.0) == 0.0
    assert PublishPace(records_per_s=10).delay_s(20, 0, 0.5) == 1.5
    assert PublishPace(bytes_per_s=100).delay_s(20, 50, 0.5) == 0.0
    assert PublishPace(records_per_s=10, bytes_per_s=10).delay_s(20, 50, 1.0) == 4.0
    assert [PublishPace(records_per_s=r).rows_at_once for r in (1, 200, 1_000_000)] == [
        1,
        10,
        1_000,
    ]


def test_columns_become_a_record() -> None:
    columns = {"k": 5, "v": "text", "t": "2026-01-01", "p": "2", "x": None}
    fields = Fields(key="k", value="v", timestamp="t", partition="p")
    assert as_row(fields, columns) == Row(b"5", b"text", [], None, 2, 1_767_225_600_000)
    assert as_row(Fields(), {"b": b"\xff", "t": datetime(2026, 1, 1), "n": None}).value == (
        b'{"b":"/w==","t":"2026-01-01T00:00:00","n":null}'
    )
    with pytest.raises(OttlaError, match="there is no column 'z'; there are k, v, t, p, x"):
        as_row(Fields(key="z"), columns)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("-7", -7),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T01:00:00+01:00", 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
    ],
)
def test_times_are_milliseconds(value: object, expected: int) -> None:
    assert milliseconds(value) == expected


def test_given_columns_go_over_those_found() -> None:
    assert over(None, RAW) == RAW
    assert over(Fields(partition="partition"), RAW) == Fields(
        "key", "value", "timestamp", "partition", "headers"
    )
