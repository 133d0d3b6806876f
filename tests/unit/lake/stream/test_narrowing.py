"""What is pushed down never loses a row, and what is used up leaves no row too many."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.source.narrowing import Comparison, Condition, Narrowing

COMPARISONS: list[Comparison] = ["=", "<", "<=", ">", ">="]

numbers = st.integers(-3, 15)
conditions = st.one_of(
    st.builds(
        Condition,
        st.sampled_from(["partition", "offset"]),
        st.sampled_from(COMPARISONS),
        numbers,
        st.booleans(),
    ),
    st.builds(
        Condition,
        st.sampled_from(["partition", "offset"]),
        st.just("in"),
        st.lists(numbers, max_size=3).map(tuple),
        st.booleans(),
    ),
)


def rows(narrowing: Narrowing) -> set[tuple[int, int]]:
    """(partition, offset) of what is left of three partitions with offsets 2 to 9."""
    starts, ends = dict.fromkeys(range(3), 2), dict.fromkeys(range(3), 10)
    starts, ends = narrowing.narrowed("t", starts, ends, {})
    return {(p, offset) for p in range(3) for offset in range(starts[p], ends[p])}


@given(st.lists(conditions, max_size=4))
def test_rows_that_satisfy_all_conditions_are_read(wanted: list[Condition]) -> None:
    """And where each condition was used up, only those."""
    narrowing = Narrowing()
    used = [narrowing.takes(condition) for condition in wanted]
    expected = {
        (p, offset)
        for p in range(3)
        for offset in range(2, 10)
        if all(c.holds(p if c.column == "partition" else offset) for c in wanted)
    }
    assert rows(narrowing) >= expected
    if all(used):
        assert rows(narrowing) == expected


def test_a_partition_that_is_not_there_leaves_nothing() -> None:
    narrowing = Narrowing()
    assert narrowing.takes(Condition("partition", "=", 99))
    assert rows(narrowing) == set()


@pytest.mark.parametrize(
    "condition",
    [
        Condition("key", "=", b"k"),
        Condition("partition", "=", "3"),
        Condition("partition", "=", True),
        Condition("offset", "=", 3, negated=True),
        Condition("timestamp", "<", datetime(2026, 1, 1, tzinfo=UTC)),
        Condition("key", "not null"),
        Condition("partition", "not null", negated=True),
    ],
)
def test_other_conditions_are_left_to_spark(condition: Condition) -> None:
    narrowing = Narrowing()
    assert not narrowing.takes(condition)
    assert len(rows(narrowing)) == 24


def test_a_time_gives_a_lower_bound_and_stays_with_spark() -> None:
    """Kafka counts milliseconds: the bound is rounded down. Of several the latest counts."""
    narrowing = Narrowing()
    for microsecond in (1500, 2999, 500):
        moment = datetime(1970, 1, 1, 0, 0, 1, microsecond, tzinfo=UTC)
        assert not narrowing.takes(Condition("timestamp", ">", moment))
    assert narrowing.since_ms == 1002
    starts, ends = narrowing.narrowed("t", {0: 0, 1: 0, 2: 7}, {0: 9, 1: 9, 2: 9}, {0: 4, 2: 5})
    assert [(starts[p], ends[p]) for p in range(3)] == [(4, 9), (0, 0), (7, 9)]


def test_topics_are_kept_by_their_names() -> None:
    narrowing = Narrowing()
    assert narrowing.takes(Condition("topic", "in", ("a", "b")))
    assert narrowing.takes(Condition("topic", "=", "b", negated=True))
    assert [name for name in "abc" if narrowing.keeps(name, 0)] == ["a"]
