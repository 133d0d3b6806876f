"""Compares a bucket of a history with itself and with a replay of the topic. Pure.

If the replay has all changes that the table has read, values must have exactly the times that
follow from the changes. If retention or compaction removed some, the remaining changes still bound
the values: a value that holds must be the last one, an ended one must have an end, and no two may
overlap.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from ottla.lake.check.latest_comparison import DifferencesBy, compare_at, named_places
from ottla.lake.model.schema import VALIDITY
from ottla.lake.rows.changelog_columns import Flags, holds
from ottla.lake.rows.key_changes import (
    Numbers,
    buckets_of,
    ends_group,
    extended,
    integers,
    is_latest,
    key_codes,
    nothing_yet,
)

_FROM, _TO = (one.name for one in VALIDITY)
_HOLDS = np.int64((1 << 63) - 1)


def history_contradictions(
    bucket: int,
    buckets: int,
    visible: pa.Table,
    hidden: pa.Table,
    operation: str | None = None,
) -> Iterator[str]:
    """Yield contradictions between the rows of a bucket, other than in their times."""
    state = pa.concat_tables([visible, hidden])
    if state.column("key").null_count:
        yield f"bucket {bucket} holds rows without a key"
        return
    if (buckets_of(state.column("key"), buckets) != bucket).any():
        yield f"bucket {bucket} holds keys of other buckets"
    if not holds(visible, operation).all() or holds(hidden, operation).any():
        yield f"bucket {bucket} shows deletions, or hides values"
    if not is_latest(hidden).all():
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
    found: DifferencesBy,
    operation: str | None = None,
) -> Iterator[str]:
    """Add differences between values and the topic to `found`; yield problems of their times.

    `topic` has the changes from `floors` on; in the partitions `whole` these are all changes.
    """
    state = pa.concat_tables([visible, hidden])
    names = [one.name for one in VALIDITY]
    records = state.drop_columns(names)
    values = topic.filter(pa.array(holds(topic, operation)))
    rows = visible.drop_columns(names)
    places = integers(pa.concat_tables([values, rows]), "offset")
    compare_at(places, rows, values, floors, found)
    known = _once(pa.concat_tables([records, topic]))
    wanted = extended(nothing_yet(known.schema), known, operation)
    expected = pa.concat_tables([wanted.closed, wanted.open])
    yield from _of_times(state, expected, whole, operation)
    yield from _overlaps(state)


def _once(changes: pa.Table) -> pa.Table:
    """Return one row for each partition and offset."""
    partitions, offsets = integers(changes, "partition"), integers(changes, "offset")
    order = np.lexsort((offsets, partitions))
    return changes.take(pa.array(order[ends_group(partitions[order], offsets[order])]))


def _of_times(
    state: pa.Table, expected: pa.Table, whole: Collection[int], operation: str | None
) -> Iterator[str]:
    rows = pa.concat_tables([expected, state])
    partitions, offsets = integers(rows, "partition"), integers(rows, "offset")
    of_state = np.arange(rows.num_rows) >= expected.num_rows
    order = np.lexsort((of_state, offsets, partitions))
    partitions, offsets, of_state = partitions[order], offsets[order], of_state[order]
    starts, ends = _times(rows, _FROM)[order], _times(rows, _TO)[order]
    is_value = holds(rows, operation)[order]
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
    """Yield keys that have two values at one time in a partition."""
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
        places = set(zip(partitions[at].tolist(), offsets[at].tolist(), strict=True))
        yield f"{what} {named_places(places)}"


def _times(rows: pa.Table, name: str) -> Numbers:
    """Return times in microseconds; a missing end sorts after all others."""
    found: Numbers = rows.column(name).cast(pa.int64()).fill_null(int(_HOLDS)).to_numpy()
    return found
