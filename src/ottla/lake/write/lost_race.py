"""Counts the rows and dead letters that a replacement would remove without a substitute."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.model.manifest import DataFile
from ottla.lake.store.store import FileStore
from ottla.ledger.partition import PartitionLedger

# Files are compared in order of their offsets, so that neighbours are read together.
_REMEMBERED = 4


def lost_by_partition(
    store: FileStore,
    old: Sequence[DataFile],
    new: Sequence[DataFile],
    ledgers: Sequence[PartitionLedger],
) -> Mapping[int, int]:
    """Return how many offsets of each partition are in the `old` files and not in the `new` ones.

    `ledgers` are those of the ranges that the new files were read from. No more can be lost than
    the ledgers count as gone, and if nothing is gone, no file is read. If an old file cannot be
    read, row counts are compared instead of offsets.
    """
    gone: dict[int, int] = {}
    for ledger in ledgers:
        count = ledger.compacted + ledger.deleted + ledger.unreadable + ledger.absent
        gone[ledger.partition] = gone.get(ledger.partition, 0) + count
    offsets = lru_cache(_REMEMBERED)(lambda path: _offsets(store, path))
    found: dict[int, int] = {}
    for file in sorted(old, key=lambda one: (one.partition, one.start)):
        if not gone.get(file.partition):
            continue
        near = [offsets(one.path) for one in new if _overlap(one, file)]
        there = np.concatenate(near) if near else np.empty(0, np.int64)
        try:
            lost = int(np.isin(_offsets(store, file.path), there, invert=True).sum())
        except (OSError, pa.ArrowException):
            inside = int(((there >= file.start) & (there < file.end)).sum())
            beside = sum(one.rows for one in old if one is not file and _overlap(one, file))
            lost = max(0, file.rows - max(0, inside - beside))
        if lost:
            more = found.get(file.partition, 0) + lost
            found[file.partition] = min(more, gone[file.partition])
    return found


def _overlap(one: DataFile, other: DataFile) -> bool:
    return one.partition == other.partition and one.start < other.end and other.start < one.end


def _offsets(store: FileStore, path: str) -> Any:
    with store.open(path) as content:
        column = pq.read_table(content, columns=["offset"]).column("offset")
    return column.to_numpy().astype(np.int64)
