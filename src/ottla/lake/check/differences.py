"""Finds where the rows of a topic and of a table differ, offset by offset."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ottla.lake.model.row_hash import MODULUS, Words, hashes_sum, keyed_row_hashes, stored_hashes

# How many differences are named one by one for each range; the rest are counted.
_NAMED_MAX = 10

RowHashes = dict[int, list[tuple[int, int]]]


@dataclass(slots=True)
class Differences:
    """Offsets of one partition at which topic and table differ."""

    compared: int = 0
    below_start: int = 0  # Rows of the table whose offsets are below the start of the log.
    missing: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    outdated: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

    def add(self, other: "Differences") -> None:
        """Add the differences of another part of the partition."""
        self.compared += other.compared
        self.below_start += other.below_start
        self.missing += other.missing
        self.extra += other.extra
        self.doubled += other.doubled
        self.outdated += other.outdated
        self.altered += other.altered

    def of_records(self, partition: str) -> Iterator[str]:
        """Yield a line of text for each kind of difference, for a table of all records."""
        yield from _lines(partition, "missing from the lake", self.missing)
        yield from _lines(partition, "in the lake, but not in the topic", self.extra)
        yield from _lines(partition, "doubled in the lake", self.doubled)
        yield from _lines(partition, "altered in the lake", self.altered)

    def of_changes(self, partition: str) -> Iterator[str]:
        """Yield a line of text for each kind of difference, for a changelog table."""
        missing = "changes of keys that the table does not have"
        yield from _lines(partition, missing, self.missing)
        yield from _lines(partition, "rows that a later change outdates", self.outdated)
        yield from _lines(partition, "rows that differ from the topic's records", self.altered)
        yield from _lines(partition, "rows that are no records of the topic", self.extra)


def _lines(partition: str, what: str, offsets: list[int]) -> Iterator[str]:
    if offsets:
        yield f"{partition}: {what}: {named(sorted(offsets))}"


def compared(topic: RowHashes, lake: RowHashes) -> Differences:
    """Compare the rows of both sides, offset by offset."""
    both = topic.keys() & lake.keys()
    return Differences(
        compared=len(both),
        missing=sorted(topic.keys() - both),
        extra=sorted(lake.keys() - both),
        doubled=sorted(offset for offset, found in lake.items() if len(found) > 1),
        altered=sorted(
            offset for offset in both if any(found != topic[offset][0] for found in lake[offset])
        ),
    )


def named(places: Sequence[object]) -> str:
    """Return the first of `places` as text, and how many more there are."""
    more = f" and {len(places) - _NAMED_MAX} more" if len(places) > _NAMED_MAX else ""
    return ", ".join(map(str, places[:_NAMED_MAX])) + more


def sum_of(batches: Iterable[pa.RecordBatch], key: bytes | None) -> tuple[int, int]:
    """Return the number of rows, and their hash (see `_hashes`)."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total = (total + hashes_sum(*_hashes(batch, key))) % MODULUS
    return count, total


def hashes_of(batches: Iterable[pa.RecordBatch], key: bytes | None) -> RowHashes:
    """Return the hashes of the rows at each offset: more than one if the offset is doubled."""
    found: RowHashes = {}
    for batch in batches:
        low, high = _hashes(batch, key)
        offsets = batch.column("offset").to_pylist()
        for offset, a, b in zip(offsets, low.tolist(), high.tolist(), strict=True):
            found.setdefault(offset, []).append((a, b))
    return found


def _hashes(batch: pa.RecordBatch, key: bytes | None) -> tuple[Words, Words]:
    """Return the halves of each row's hash under `key`.

    Without a key, return the hash without a key, as stored in tables that drop keys and values.
    """
    return stored_hashes(batch) if key is None else keyed_row_hashes(batch, key)
