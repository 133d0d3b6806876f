"""A table of history tells at any time what a reader of the topic would have had."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.key_changes import as_of, extended, nothing_yet
from tests.unit.lake.changelogs.changes import Change, rows, table, topics


def _history(changes: list[Change], cuts: list[int]) -> pa.Table:
    closed, held = [nothing_yet(ROW_SCHEMA)], nothing_yet(ROW_SCHEMA)
    bounds = [0, *sorted(cuts), len(changes)]
    for first, after in itertools.pairwise(bounds):
        found = extended(held, table(changes[first:after]))
        closed.append(found.closed)
        held = found.open
    return pa.concat_tables([*closed, held])


def replay(changes: list[Change], moment: int) -> list[Change]:
    """What the last change of each key and partition was at a time, deletions apart."""
    now: dict[tuple[bytes, int], int] = {}
    found: dict[tuple[bytes, int], Change] = {}
    for one in sorted(changes, key=lambda one: one.offset):
        place = one.key, one.partition
        assert one.timestamp is not None
        now[place] = max(now.get(place, one.timestamp), one.timestamp)
        if now[place] <= moment:
            found[place] = one
    kept = [one for one in found.values() if one.value is not None]
    return sorted(kept, key=lambda one: (one.partition, one.offset))


@given(topics(null_times=False), st.lists(st.integers(0, 30), max_size=4), st.integers(-6, 21))
def test_history_equals_a_replay_up_to_a_time(
    changes: list[Change], cuts: list[int], moment: int
) -> None:
    """However the topic is cut into batches, and where timestamps run backwards."""
    cuts = [min(cut, len(changes)) for cut in cuts]
    assert rows(as_of(_history(changes, cuts), moment)) == replay(changes, moment)


@given(topics(null_times=False), st.data())
def test_changes_that_were_applied_before_are_ignored(
    changes: list[Change], data: st.DataObject
) -> None:
    """A batch that begins before the end of the last one adds the rest."""
    cut = data.draw(st.integers(0, len(changes)))
    back = data.draw(st.integers(0, cut))
    first = extended(nothing_yet(ROW_SCHEMA), table(changes[:cut]))
    again = extended(first.open, table(changes[cut - back :]))
    straight = _history(changes, [cut])
    found = pa.concat_tables([first.closed, again.closed, again.open])
    assert found.to_pylist() == straight.to_pylist()


def test_a_deletion_ends_a_value_and_begins_none() -> None:
    """Also one with an earlier timestamp: the value then held for no time."""
    changes = [
        Change(b"a", b"1", 0, 0, 10),
        Change(b"a", None, 0, 1, 5),
        Change(b"a", b"2", 0, 2, 30),
    ]
    found = _history(changes, [1, 2])
    for place in (8, 9):
        field = found.schema.field(place)
        found = found.set_column(place, field.name, found.column(place).cast(pa.int64()))
    values = [(row["value"], row["valid_from"], row["valid_to"]) for row in found.to_pylist()]
    assert values == [(b"1", 10, 10), (b"2", 30, None)]
