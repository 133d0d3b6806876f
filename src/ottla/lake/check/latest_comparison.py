"""Compares a bucket of a changelog table with itself and with a replay of the topic. Pure."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.differences import Differences
from ottla.lake.model.row_hash import header_texts
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.changelog_columns import Flags
from ottla.lake.rows.key_changes import (
    Numbers,
    buckets_of,
    ends_group,
    integers,
    is_latest,
    key_codes,
    merged,
)

_NAMED_MAX = 10


DifferencesBy = dict[int, Differences]


def contradictions(
    bucket: int,
    buckets: int,
    visible: pa.Table,
    hidden: pa.Table,
    operation: str | None = None,
) -> Iterator[str]:
    """Yield contradictions between the rows of a bucket."""
    state = pa.concat_tables([visible, hidden])
    for rows in (visible, hidden):
        if rows.column("key").null_count:
            yield f"bucket {bucket} holds rows without a key"
            return
    if (buckets_of(state.column("key"), buckets) != bucket).any():
        yield f"bucket {bucket} holds keys of other buckets"
    again = state.filter(pa.array(~is_latest(state)))
    if again.num_rows:
        yield f"bucket {bucket} holds a key of a partition twice {named_places(_places(again))}"
    wanted = merged(state, state.slice(0, 0), operation).visible
    if not np.array_equal(_sorted_places(wanted), _sorted_places(visible)):
        yield (
            f"bucket {bucket} hides rows that are the latest of their keys, or shows others "
            f"{named_places(_places(wanted) ^ _places(visible))}"
        )


def _sorted_places(rows: pa.Table) -> Numbers:
    """Return the partition and offset of each row, sorted."""
    places = np.stack([integers(rows, "partition"), integers(rows, "offset")])
    found: Numbers = places[:, np.lexsort(places[::-1])]
    return found


def _places(rows: pa.Table) -> set[tuple[int, int]]:
    """Return the partition and offset of each row."""
    partitions, offsets = integers(rows, "partition"), integers(rows, "offset")
    return set(zip(partitions.tolist(), offsets.tolist(), strict=True))


def named_places(places: Collection[tuple[int, int]]) -> str:
    """Return the first few places as text."""
    named = ", ".join(f"{partition}:{offset}" for partition, offset in sorted(places)[:_NAMED_MAX])
    more = f" and {len(places) - _NAMED_MAX} more" if len(places) > _NAMED_MAX else ""
    return f"(PARTITION:OFFSET): {named}{more}"


def compare(
    state: pa.Table, topic: pa.Table, floors: Mapping[int, int], found: DifferencesBy
) -> None:
    """Add differences between a bucket's rows and the topic's latest changes to `found`.

    Both sides have one row for each key in each partition. `floors` has the offsets at which the
    records of `topic` begin.
    """
    compare_at(key_codes(pa.concat_tables([topic, state])), state, topic, floors, found)


def compare_at(
    keys: Numbers,
    state: pa.Table,
    topic: pa.Table,
    floors: Mapping[int, int],
    found: DifferencesBy,
) -> None:
    """Compare as `compare`, by any `keys` (the topic's rows first) that are unique on each side."""
    rows = pa.concat_tables([topic, state])
    partitions = integers(rows, "partition")
    of_state = np.arange(rows.num_rows) >= topic.num_rows
    order = np.lexsort((of_state, partitions, keys))
    keys, partitions, of_state = keys[order], partitions[order], of_state[order]
    offsets = integers(rows, "offset")[order]
    is_last = ends_group(keys, partitions)
    is_first = np.ones(len(is_last), np.bool_)
    is_first[1:] = is_last[:-1]
    alone = is_first & is_last
    # In each pair the first row is the topic's, the second the table's.
    first = np.flatnonzero(is_first & ~is_last)
    second = first + 1
    same = np.zeros(len(is_last), np.bool_)
    same[second] = offsets[first] == offsets[second]
    equal = np.zeros(len(is_last), np.bool_)
    equal[second] = _equal(rows.take(order[first]), rows.take(order[second]))
    later = np.zeros(len(is_last), np.bool_)
    later[second] = offsets[first] > offsets[second]
    in_pair = np.zeros(len(is_last), np.bool_)
    in_pair[second] = True
    for partition in np.unique(partitions).tolist():
        here = partitions == partition
        below = here & alone & of_state & (offsets < floors.get(partition, 0))
        one = found.setdefault(partition, Differences())
        one.compared += int((here & same & equal).sum())
        one.below_start += int(below.sum())
        one.missing += _at(offsets, here & alone & ~of_state)
        one.outdated += _at(offsets, here & later)
        one.altered += _at(offsets, here & same & ~equal)
        one.extra += _at(offsets, here & in_pair & ~same & ~later)
        one.extra += _at(offsets, here & alone & of_state & ~below)


def _at(offsets: Numbers, chosen: Flags) -> list[int]:
    found: list[int] = offsets[chosen].tolist()
    return found


def _equal(some: pa.Table, others: pa.Table) -> Flags:
    """Return for each row whether it equals the other side's row, byte for byte."""
    found = np.ones(some.num_rows, np.bool_)
    for name in ROW_SCHEMA.names:
        one, other = (_comparable(rows.column(name)) for rows in (some, others))
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        same = pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
        found &= same.to_numpy()
    return found


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that Arrow can compare; headers become bytes."""
    if column.type != ROW_SCHEMA.field("headers").type:
        return column
    chunks = [pa.array(header_texts(chunk), pa.binary()) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.binary())
