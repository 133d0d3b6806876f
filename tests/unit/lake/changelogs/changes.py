"""Changes of a topic, made up; and tables that a dictionary keeps of them."""

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from ottla.lake.model.schema import ROW_SCHEMA

COLUMNS = ("key", "value", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class Change:
    """One record."""

    key: bytes
    value: bytes | None
    partition: int
    offset: int
    timestamp: int | None  # Microseconds.


def table(changes: list[Change]) -> pa.Table:
    """The changes in the columns of rows."""
    rows = [
        {
            "key": one.key,
            "value": one.value,
            "headers": [],
            "topic": "t",
            "partition": one.partition,
            "offset": one.offset,
            "timestamp": one.timestamp,
            "timestamp_type": 0,
        }
        for one in changes
    ]
    return pa.Table.from_pylist(rows, schema=ROW_SCHEMA)


def rows(found: pa.Table) -> list[Change]:
    """The inverse of `table`, in order of partition and offset."""
    at = found.schema.get_field_index("timestamp")
    found = found.set_column(at, "timestamp", found.column(at).cast(pa.int64()))
    read = [Change(**{name: row[name] for name in COLUMNS}) for row in found.to_pylist()]
    return sorted(read, key=lambda one: (one.partition, one.offset))


@st.composite
def topics(draw: st.DrawFn, null_times: bool = True) -> list[Change]:
    """A topic's records in order of offset within each partition; few keys, so that they meet."""
    times = st.integers(-5, 20)
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([b"", b"a", b"b", b"key" * 9]),
                st.none() | st.sampled_from([b"", b"1", b"2"]),
                st.integers(0, 2),
                (st.none() | times) if null_times else times,
                st.integers(1, 3),
            ),
            max_size=30,
        )
    )
    ends = [0, 0, 0]
    changes = []
    for key, value, partition, timestamp, step in drawn:
        changes.append(Change(key, value, partition, ends[partition], timestamp))
        ends[partition] += step
    return changes
