"""A table that differs from its topic in one row is found out, and the row is named."""

import pyarrow as pa
import pytest

from ottla.lake.check.buckets import DifferencesBy, compare, contradictions
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.key_changes import buckets_of
from tests.unit.lake.changelogs.changes import Change, table

EMPTY = ROW_SCHEMA.empty_table()
TOPIC = [
    Change(b"a", b"1", 0, 5, 10),
    Change(b"a", b"2", 1, 3, 20),
    Change(b"b", None, 0, 6, 30),
    Change(b"c", b"3", 0, 7, 40),
]


def told(state: list[Change], topic: list[Change], floor: int = 0) -> list[str]:
    found: DifferencesBy = {}
    compare(table(state), table(topic), {0: floor, 1: floor}, found)
    return [line for p, one in sorted(found.items()) for line in one.of_changes(f"t-{p}")]


def test_equal_rows_are_counted_and_nothing_is_said() -> None:
    found: DifferencesBy = {}
    compare(table(TOPIC[::-1]), table(TOPIC), {}, found)
    assert {p: one.compared for p, one in found.items()} == {0: 3, 1: 1}
    assert told(TOPIC, TOPIC) == []
    assert told([], []) == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (TOPIC[1:], "t-0: changes of keys that the table does not have: 5"),
        (
            [Change(b"a", b"0", 0, 4, 9), *TOPIC[1:]],
            "t-0: rows that a later change outdates: 4",
        ),
        (
            [Change(b"a", b"0", 0, 5, 10), *TOPIC[1:]],
            "t-0: rows that differ from the topic's records: 5",
        ),
        (
            [Change(b"a", b"9", 0, 8, 10), *TOPIC[1:]],
            "t-0: rows that are no records of the topic: 8",
        ),
        (
            [*TOPIC, Change(b"x", b"9", 1, 2, 10)],
            "t-1: rows that are no records of the topic: 2",
        ),
    ],
)
def test_a_row_that_differs_is_named(state: list[Change], said: str) -> None:
    assert told(state, TOPIC) == [said]


def test_what_the_log_does_not_reach_back_to_is_no_difference() -> None:
    """Retention took it; a row at or behind the log's start is still one."""
    found: DifferencesBy = {}
    state = [Change(b"x", b"9", 0, 4, 1), *TOPIC]
    compare(table(state), table(TOPIC), {0: 5}, found)
    assert (found[0].below_start, found[0].extra) == (1, [])
    assert told(state, TOPIC, floor=4) == ["t-0: rows that are no records of the topic: 4"]


VISIBLE, HIDDEN = [TOPIC[1], TOPIC[3]], [TOPIC[0], TOPIC[2]]


@pytest.mark.parametrize(
    ("visible", "hidden", "said"),
    [
        (VISIBLE, HIDDEN, []),
        ([TOPIC[0], TOPIC[3]], [TOPIC[1], TOPIC[2]], ["hides rows that are the latest"]),
        ([*VISIBLE, TOPIC[2]], [TOPIC[0]], ["hides rows that are the latest"]),
        ([TOPIC[3]], [TOPIC[1], *HIDDEN], ["hides rows that are the latest"]),
        (VISIBLE, [*HIDDEN, TOPIC[3]], ["holds a key of a partition twice"]),
    ],
)
def test_rows_of_a_bucket_that_contradict_each_other_are_found(
    visible: list[Change], hidden: list[Change], said: list[str]
) -> None:
    found = list(contradictions(0, 1, table(visible), table(hidden)))
    assert [part for part, line in zip(said, found, strict=True) if part not in line] == []


def test_rows_of_another_bucket_and_rows_without_a_key_are_found() -> None:
    rows = table([TOPIC[0]])
    bucket = int(buckets_of(rows.column("key"), 7)[0])
    assert list(contradictions(bucket, 7, rows, EMPTY)) == []
    (found,) = contradictions((bucket + 1) % 7, 7, rows, EMPTY)
    assert "holds keys of other buckets" in found
    keyless = rows.set_column(0, "key", pa.nulls(1, pa.binary()))
    assert list(contradictions(0, 1, keyless, EMPTY)) == ["bucket 0 holds rows without a key"]
