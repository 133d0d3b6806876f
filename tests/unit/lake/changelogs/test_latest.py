"""A table of latest values equals what a dictionary keeps of the topic."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.key_changes import buckets_of, merged
from tests.unit.lake.changelogs.changes import Change, rows, table, topics

EMPTY = ROW_SCHEMA.empty_table()


def replay(changes: list[Change]) -> list[Change]:
    """The latest change of each key in each partition, then of each key, without deletions."""
    by_partition: dict[tuple[bytes, int], Change] = {}
    for one in sorted(changes, key=lambda one: one.offset):
        by_partition[one.key, one.partition] = one
    latest: dict[bytes, Change] = {}
    for one in by_partition.values():
        other = latest.get(one.key, one)
        if _rank(one) >= _rank(other):
            latest[one.key] = one
    kept = [one for one in latest.values() if one.value is not None]
    return sorted(kept, key=lambda one: (one.partition, one.offset))


def _rank(one: Change) -> tuple[float, int]:
    return (float("-inf") if one.timestamp is None else one.timestamp, one.partition)


def _state(changes: list[Change], cuts: list[int]) -> tuple[pa.Table, pa.Table]:
    """The state after batches that end at `cuts`."""
    visible = state = EMPTY
    bounds = [0, *sorted(cuts), len(changes)]
    for first, after in itertools.pairwise(bounds):
        after_it = merged(state, table(changes[first:after]))
        visible, state = after_it.visible, pa.concat_tables([after_it.visible, after_it.hidden])
    return visible, state


@given(topics(), st.lists(st.integers(0, 30), max_size=4))
def test_the_table_equals_a_replay(changes: list[Change], cuts: list[int]) -> None:
    """However the topic is cut into batches."""
    cuts = [min(cut, len(changes)) for cut in cuts]
    assert rows(_state(changes, cuts)[0]) == replay(changes)


@given(topics(), st.randoms())
def test_a_batch_that_is_applied_again_changes_nothing(
    changes: list[Change], random: object
) -> None:
    """Neither does a batch in another order, or an older one."""
    visible, state = _state(changes, [])
    mixed = list(changes)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert rows(merged(EMPTY, table(mixed)).visible) == rows(visible)
    again = merged(state, table(mixed[: len(mixed) // 2]))
    assert (rows(again.visible), again.hidden.num_rows) == (
        rows(visible),
        state.num_rows - visible.num_rows,
    )


def test_a_late_deletion_deletes_and_an_outdated_one_does_not() -> None:
    """In one partition the offset decides, between partitions the time."""
    old = merged(EMPTY, table([Change(b"a", b"1", 0, 7, 100), Change(b"b", b"1", 0, 8, 100)]))
    state = pa.concat_tables([old.visible, old.hidden])
    late = table([Change(b"a", None, 0, 9, 50), Change(b"b", None, 1, 0, 50)])
    assert rows(merged(state, late).visible) == [Change(b"b", b"1", 0, 8, 100)]


@given(st.lists(st.binary(max_size=20), min_size=1), st.integers(1, 9))
def test_a_key_has_one_bucket(keys: list[bytes], count: int) -> None:
    """Wherever it stands among others."""
    found = buckets_of(pa.chunked_array([keys[:1], keys[1:]], pa.binary()), count)
    alone = [int(buckets_of(pa.chunked_array([[key]], pa.binary()), count)[0]) for key in keys]
    assert found.tolist() == alone
    assert set(found.tolist()) <= set(range(count))


def test_keys_spread_over_buckets() -> None:
    """Of 10,000 keys that count up, no bucket of 16 has twice its share."""
    keys = pa.chunked_array([[b"key-%d" % number for number in range(10_000)]])
    assert np.bincount(buckets_of(keys, 16), minlength=16).max() < 1250
