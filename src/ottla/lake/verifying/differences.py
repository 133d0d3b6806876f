"""Where the rows of a topic and those of a table differ, offset by offset."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from ottla.lake.proof import keyed_row_hashes, stored_hashes
from ottla.lake.row_hash import MODULUS, Words, hashes_sum

# Differences named one by one for each range; the rest is counted.
_NAMED_MAX = 10

RowHashes = dict[int, list[tuple[int, int]]]


@dataclass(slots=True)
class Differences:
    """Offsets at which topic and lake do not hold the same row once."""

    compared: int = 0
    missing: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

    def add(self, topic: RowHashes, lake: RowHashes) -> None:
        both = topic.keys() & lake.keys()
        self.compared += len(both)
        self.missing += sorted(topic.keys() - both)
        self.extra += sorted(lake.keys() - both)
        self.doubled += sorted(offset for offset, found in lake.items() if len(found) > 1)
        self.altered += sorted(
            offset for offset in both if any(found != topic[offset][0] for found in lake[offset])
        )

    def told(self, partition: str) -> list[str]:
        return [
            f"{partition}: {what}: {named(offsets)}"
            for what, offsets in (
                ("missing from the lake", self.missing),
                ("in the lake, but not in the topic", self.extra),
                ("doubled in the lake", self.doubled),
                ("altered in the lake", self.altered),
            )
            if offsets
        ]


def named(offsets: list[int]) -> str:
    """The first of `offsets`, and how many more there are."""
    more = f" and {len(offsets) - _NAMED_MAX} more" if len(offsets) > _NAMED_MAX else ""
    return ", ".join(map(str, offsets[:_NAMED_MAX])) + more


def sum_of(batches: Iterable[pa.RecordBatch], key: bytes | None) -> tuple[int, int]:
    """Return how many rows there are, and their hash (see `_hashes`)."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total = (total + hashes_sum(*_hashes(batch, key))) % MODULUS
    return count, total


def hashes_of(batches: Iterable[pa.RecordBatch], key: bytes | None) -> RowHashes:
    """Return the hashes of the rows at each offset: one, unless an offset is doubled."""
    found: RowHashes = {}
    for batch in batches:
        low, high = _hashes(batch, key)
        offsets = batch.column("offset").to_pylist()
        for offset, a, b in zip(offsets, low.tolist(), high.tolist(), strict=True):
            found.setdefault(offset, []).append((a, b))
    return found


def _hashes(batch: pa.RecordBatch, key: bytes | None) -> tuple[Words, Words]:
    """Return the halves of each row's hash under `key`.

    Without one: the public hash, which is all that a table without keys and values has of them.
    """
    return stored_hashes(batch) if key is None else keyed_row_hashes(batch, key)
