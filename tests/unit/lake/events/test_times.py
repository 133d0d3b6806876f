"""Watermarks: what they follow from, that they never fall, and what a chain derives of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.event_times import (
    EventSettings,
    EventTimes,
    after_load,
    contradictions,
    decided,
    moves,
    settled,
)

HOUR = 3_600_000
BOTH = {0: 10, 1: 10}


def test_the_table_is_complete_up_to_its_slowest_partition() -> None:
    """Less the lateness that is allowed; unknown while a partition has no event time."""
    events = EventTimes(lateness_ms=HOUR)
    one = after_load(events, seen={0: 9 * HOUR}, empty_at={}, late={}, partitions=BOTH)
    assert (dict(one.watermarks), one.watermark_ms) == ({0: 8 * HOUR}, None)
    both = after_load(one, seen={1: 5 * HOUR}, empty_at={}, late={}, partitions=BOTH)
    assert (dict(both.watermarks), both.watermark_ms) == ({0: 8 * HOUR, 1: 4 * HOUR}, 4 * HOUR)


def test_an_idle_partition_follows_the_clock_where_that_is_allowed() -> None:
    """All of it was loaded at 12:00, and it is given two hours: complete up to 10:00."""
    seen = {0: 11 * HOUR}
    empty = {1: 12 * HOUR}
    held = after_load(EventTimes(), seen=seen, empty_at=empty, late={}, partitions=BOTH)
    assert held.watermark_ms is None
    given_two = EventTimes(idle_ms=2 * HOUR)
    free = after_load(given_two, seen=seen, empty_at=empty, late={}, partitions=BOTH)
    assert (dict(free.watermarks), free.watermark_ms) == ({0: 11 * HOUR, 1: 10 * HOUR}, 10 * HOUR)


def test_a_new_partition_takes_back_nothing_that_was_said() -> None:
    one = after_load(EventTimes(), seen={0: 9, 1: 7}, empty_at={}, late={}, partitions=BOTH)
    more = after_load(one, seen={2: 3}, empty_at={}, late={}, partitions={**BOTH, 2: 1})
    assert (one.watermark_ms, more.watermark_ms) == (7, 7)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 2), st.integers(0, 10**6)),
            st.dictionaries(st.integers(0, 2), st.integers(0, 10**6)),
            st.integers(0, 1000),
            st.none() | st.integers(0, 1000),
        ),
        max_size=8,
    )
)
def test_a_watermark_never_falls_and_the_chain_derives_it(
    loads: list[tuple[dict[int, int], dict[int, int], int, int | None]],
) -> None:
    """Whatever is seen, allowed and idle; any other watermark contradicts the chain."""
    events, mark = EventTimes(), -2000
    before: EventTimes | None = None
    partitions = {0: 1, 1: 1, 2: 1}
    for seen, empty, lateness_ms, idle_ms in loads:
        events = replace(events, lateness_ms=lateness_ms, idle_ms=idle_ms, late={})
        events = after_load(events, seen=seen, empty_at=empty, late={}, partitions=partitions)
        assert contradictions(before, events, "load", partitions) == []
        if events.watermark_ms is not None:
            assert events.watermark_ms >= mark
            mark = events.watermark_ms
            forged = replace(events, watermark_ms=mark + 1)
            assert contradictions(before, forged, "load", partitions) != []
        before = settled(events)
        assert contradictions(before, events, "compaction", partitions) == []


def test_a_table_keeps_what_its_first_load_decided() -> None:
    first = decided(EventSettings("hour", lateness_ms=5), None, is_new=True)
    assert first == EventTimes(by="hour", lateness_ms=5)
    assert decided(EventSettings(), first, is_new=False) == first
    assert decided(EventSettings(late_rows="fail"), first, is_new=False) == EventTimes(
        by="hour", lateness_ms=5, late_rows="fail"
    )
    assert decided(EventSettings(), None, is_new=True) is None
    # A watermark alone can begin at any time.
    assert decided(EventSettings(lateness_ms=0), None, is_new=False) == EventTimes()
    with pytest.raises(OttlaError, match="partitioned by hour, which its first load decided"):
        decided(EventSettings("day"), first, is_new=False)


def test_a_commit_without_rows_is_made_once_for_each_bucket() -> None:
    assert moves(None, 1, "hour")
    assert not moves(None, None, "hour")
    assert not moves(9 * HOUR, 10 * HOUR - 1, "hour")
    assert moves(9 * HOUR, 10 * HOUR, "hour")
    assert not moves(9 * HOUR, 23 * HOUR, "day")
