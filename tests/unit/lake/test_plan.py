"""Boundaries become offsets, offsets become ranges, and nothing is read twice or backwards."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.lake.model.plan import (
    Boundary,
    PartitionBounds,
    Range,
    parse_boundary,
    ranges,
    require_same_topic,
    resolve,
)

BOUNDS = {0: PartitionBounds(10, 100), 1: PartitionBounds(0, 50)}


def test_boundaries_are_read_from_words() -> None:
    assert parse_boundary("earliest") == Boundary("earliest")
    assert parse_boundary("last-load") == Boundary("last-load")
    assert parse_boundary("@1700000000000") == Boundary("timestamp", timestamp_ms=1_700_000_000_000)
    assert parse_boundary("2023-11-14T22:13:20Z") == parse_boundary("@1700000000000")
    assert parse_boundary("0:5,1:-1") == Boundary("offsets", offsets={0: 5, 1: -1})


@pytest.mark.parametrize("text", ["", "soon", "@", "@noon", "1", "1:2:3", "a:b"])
def test_other_words_are_refused_with_the_choice(text: str) -> None:
    with pytest.raises(OttlaError, match="write earliest, latest, last-load"):
        parse_boundary(text)


@given(st.text() | st.from_regex(r"[0-9]{1,5}(:-?[0-9²٣]*,?)*|@[0-9]*|[0-9]*d"))
@example("0:" + "9" * 5000)
@example("9" * 5000 + ":0")
def test_any_text_is_a_boundary_or_wrong_words(text: str) -> None:
    with suppress(WrongWords):
        parse_boundary(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", {0: 10, 1: 0}),
        ("latest", {0: 100, 1: 50}),
        ("last-load", {0: 40, 1: 0}),
        ("@5", {0: 70, 1: 50}),
        ("0:20", {0: 20, 1: 0}),
        ("0:-1,1:-2", {0: 100, 1: 0}),
    ],
)
def test_each_boundary_resolves_per_partition(text: str, expected: dict[int, int]) -> None:
    assert resolve(parse_boundary(text), BOUNDS, by_time={0: 70}, last_load={0: 40}) == expected


def test_partitions_that_an_end_does_not_name_end_at_latest() -> None:
    """An end says nothing of other partitions: they follow its default, not the start's."""
    end = resolve(parse_boundary("0:20"), BOUNDS, by_time={}, last_load={0: 40}, unnamed="latest")
    assert end == {0: 20, 1: 50}


@pytest.mark.parametrize("text", ["2:0", "0:101"])
def test_offsets_outside_the_topic_are_refused(text: str) -> None:
    with pytest.raises(OttlaError):
        resolve(parse_boundary(text), BOUNDS, by_time={}, last_load={})


def test_ranges_are_cut_for_tasks() -> None:
    """A task for each range of each partition that has something to load (P14)."""
    assert ranges("t", {0: 10, 1: 5}, {0: 35, 1: 5}, offsets_max=10) == [
        Range("t", 0, 10, 20),
        Range("t", 0, 20, 30),
        Range("t", 0, 30, 35),
    ]


def test_start_behind_end_is_refused() -> None:
    with pytest.raises(OttlaError, match="from 9 back to 5"):
        ranges("t", {0: 9}, {0: 5}, offsets_max=10)


@given(
    st.dictionaries(
        st.integers(0, 5), st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1
    ),
    st.integers(1, 300),
)
def test_ranges_cover_each_offset_once(spans: dict[int, tuple[int, int]], offsets_max: int) -> None:
    """The ranges are a partition of the offsets: none missing, none doubled (P14)."""
    starts = {p: start for p, (start, _) in spans.items()}
    ends = {p: start + length for p, (start, length) in spans.items()}
    cut = ranges("t", starts, ends, offsets_max=offsets_max)

    covered = [(r.partition, offset) for r in cut for offset in range(r.start, r.end)]
    assert covered == [(p, o) for p in sorted(starts) for o in range(starts[p], ends[p])]
    assert all(0 < r.end - r.start <= offsets_max for r in cut)


def test_topic_created_anew_is_refused() -> None:
    with pytest.raises(OttlaError, match="deleted and created anew") as caught:
        require_same_topic("t", "id-1", "id-2", {0: 20}, BOUNDS)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_log_that_lost_its_end_is_refused() -> None:
    with pytest.raises(OttlaError, match="now ends at 50"):
        require_same_topic("t", "id", "id", {1: 60}, BOUNDS)


def test_log_that_lost_its_start_is_not_refused() -> None:
    """What retention took is accounted for as deleted; it is no reason to stop."""
    require_same_topic("t", "id", "id", {0: 0}, BOUNDS)


def test_boundary_that_names_a_partition_twice_is_refused() -> None:
    """The last offset would be taken, in silence."""
    with pytest.raises(WrongWords, match="'0:5,0:6' names a partition twice"):
        parse_boundary("0:5,0:6")
