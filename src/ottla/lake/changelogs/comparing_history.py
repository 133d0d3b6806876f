"""Compares a bucket of a history with itself and with a replay of the topic. Pure.

Where the replay has all changes that the table has read, values must have exactly the times that
follow from it. Where retention or compaction took some from the topic, what is left bounds them:
a value that holds must be the last one, an ended one must have an end, and no two may overlap.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from ottla.lake.changelogs.comparing import Differences, compare_at
from ottla.lake.changelogs.history import VALIDITY, extended, nothing_yet
from ottla.lake.changelogs.latest import (
    Flags,
    Numbers,
    buckets_of,
    ends_group,
    integers,
    key_codes,
    latest_changes,
)

_FROM, _TO = (one.name for one in VALIDITY)
_HOLDS = np.int64((1 << 63) - 1)
_NAMED_MAX = 10


def history_contradictions(
    bucket: int, buckets: int, visible: pa.Table, hidden: pa.Table
) -> Iterator[str]:
    """Yield how the rows of a bucket contradict each other, their times apart."""
    state = pa.concat_tables([visible, hidden])
    if state.column("key").null_count:
        yield f"bucket {bucket} holds rows without a key"
        return
    if (buckets_of(state.column("key"), buckets) != bucket).any():
        yield f"bucket {bucket} holds keys of other buckets"
    if visible.column("value").null_count or hidden.column("value").null_count < hidden.num_rows:
        yield f"bucket {bucket} shows deletions, or hides values"
    if latest_changes(hidden).num_rows != hidden.num_rows:
        yield f"bucket {bucket} hides two deletions of a key"
    partitions, offsets = integers(state, "partition"), integers(state, "offset")
    order = np.lexsort((offsets, partitions))
    if not ends_group(partitions[order], offsets[order]).all():
        yield f"bucket {bucket} holds a record twice"


def compare_history(
    visible: pa.Table,
    hidden: pa.Table,
    topic: pa.Table,
    floors: Mapping[int, int],
    whole: Collection[int],
    found: Differences,
) -> Iterator[str]:
    """Add to `found` how values differ from the topic's; yield what is wrong with their times.

    `topic` has the changes from `floors` on; in the partitions `whole` that is all of them.
    """
    state = pa.concat_tables([visible, hidden])
    names = [one.name for one in VALIDITY]
    records = state.drop_columns(names)
    values = topic.filter(topic.column("value").is_valid())
    rows = visible.drop_columns(names)
    places = integers(pa.concat_tables([values, rows]), "offset")
    compare_at(places, rows, values, floors, found)
    known = _once(pa.concat_tables([records, topic]))
    wanted = extended(nothing_yet(known.schema), known)
    expected = pa.concat_tables([wanted.closed, wanted.open])
    yield from _of_times(state, expected, whole)
    yield from _overlaps(state)


def _once(changes: pa.Table) -> pa.Table:
    """One row for each partition and offset."""
    partitions, offsets = integers(changes, "partition"), integers(changes, "offset")
    order = np.lexsort((offsets, partitions))
    return changes.take(pa.array(order[ends_group(partitions[order], offsets[order])]))


def _of_times(state: pa.Table, expected: pa.Table, whole: Collection[int]) -> Iterator[str]:
    rows = pa.concat_tables([expected, state])
    partitions, offsets = integers(rows, "partition"), integers(rows, "offset")
    of_state = np.arange(rows.num_rows) >= expected.num_rows
    order = np.lexsort((of_state, offsets, partitions))
    partitions, offsets, of_state = partitions[order], offsets[order], of_state[order]
    starts, ends = _times(rows, _FROM)[order], _times(rows, _TO)[order]
    is_value = rows.column("value").is_valid().to_numpy()[order]
    is_last = ends_group(partitions, offsets)
    is_first = np.ones(len(is_last), np.bool_)
    is_first[1:] = is_last[:-1]
    alone = is_first & is_last
    first = np.flatnonzero(is_first & ~is_last)
    second = first + 1
    exact = np.isin(partitions[second], list(whole))
    differs = (starts[first] != starts[second]) | (ends[first] != ends[second])
    holds_wrongly = (ends[first] == _HOLDS) != (ends[second] == _HOLDS)
    wrong = (differs & exact) | holds_wrongly | (starts[second] < starts[first])
    for what, at in (
        ("values that hold from or to other times than the topic says", second[wrong]),
        ("deletions that a later change outdates", np.flatnonzero(alone & of_state & ~is_value)),
        ("deletions that the table lacks", np.flatnonzero(alone & ~of_state & ~is_value)),
    ):
        yield from _told(what, partitions, offsets, at)


def _overlaps(state: pa.Table) -> Iterator[str]:
    """At any time a key has one value at most in a partition."""
    keys, partitions = key_codes(state), integers(state, "partition")
    offsets = integers(state, "offset")
    order = np.lexsort((offsets, partitions, keys))
    starts, ends = _times(state, _FROM)[order], _times(state, _TO)[order]
    is_last = ends_group(keys[order], partitions[order])
    wrong: Flags = ends < starts
    wrong[:-1] |= ~is_last[:-1] & (ends[:-1] > starts[1:])
    at = order[wrong]
    yield from _told("values that overlap", partitions, offsets, at)


def _told(what: str, partitions: Numbers, offsets: Numbers, at: Numbers) -> Iterator[str]:
    if len(at):
        named = [f"{partitions[one]}:{offsets[one]}" for one in at[:_NAMED_MAX].tolist()]
        more = f" and {len(at) - _NAMED_MAX} more" if len(at) > _NAMED_MAX else ""
        yield f"{what} (PARTITION:OFFSET): {', '.join(named)}{more}"


def _times(rows: pa.Table, name: str) -> Numbers:
    """Times in microseconds; no end comes after all others."""
    found: Numbers = rows.column(name).cast(pa.int64()).fill_null(int(_HOLDS)).to_numpy()
    return found
