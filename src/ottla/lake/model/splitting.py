"""Divides a load into tasks: large ranges are split by bytes, small ones share a task. Pure.

The size of a range is an estimate: its share of the partition's log on the broker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ottla.lake.model.plan import PartitionBounds, Range

# Gives a Parquet file of about this size, and a task of some seconds.
SPLIT_BYTES = 128 << 20
# Enough bytes to be worth starting a Spark task.
JOIN_BYTES = 16 << 20
# Assumed if the broker does not report a partition's size.
_GUESSED_OFFSET_BYTES = 128


@dataclass(frozen=True, slots=True)
class SizedRange:
    """A range, and the approximate size of it in the log."""

    wanted: Range
    size_bytes: int


def split(
    ranges: Sequence[Range],
    bounds: Mapping[int, PartitionBounds],
    partition_bytes: Mapping[int, int],
    *,
    split_bytes: int = SPLIT_BYTES,
) -> list[SizedRange]:
    """Cut ranges of more than `split_bytes` into equal pieces; keep the order and every offset.

    `partition_bytes` has the known sizes of the logs with these `bounds`.
    """
    pieces = []
    for wanted in ranges:
        each_bytes = offset_bytes(
            bounds[wanted.partition], partition_bytes.get(wanted.partition, 0)
        )
        count = wanted.end - wanted.start
        piece_count = min(count, max(1, -(-int(count * each_bytes) // split_bytes)))
        cuts = [wanted.start + count * number // piece_count for number in range(piece_count + 1)]
        pieces += [
            SizedRange(replace(wanted, start=start, end=end), int((end - start) * each_bytes))
            for start, end in pairwise(cuts)
        ]
    return pieces


def joined(sizes: Sequence[int], join_bytes: int = JOIN_BYTES) -> list[list[int]]:
    """Return groups of adjacent items, by their indices in `sizes`: one Spark task for each.

    A group of several items has at most `join_bytes`. Every index is in one group, in order.
    """
    groups: list[list[int]] = []
    room = -1
    for place, size in enumerate(sizes):
        if groups and size <= room:
            groups[-1].append(place)
            room -= size
        else:
            groups.append([place])
            room = join_bytes - size
    return groups


def offset_bytes(bound: PartitionBounds, log_bytes: int) -> float:
    """Return the approximate size of one offset in a log with these bounds."""
    offsets = bound.end - bound.log_start
    return log_bytes / offsets if offsets > 0 and log_bytes > 0 else _GUESSED_OFFSET_BYTES
