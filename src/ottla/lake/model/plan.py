"""Plans which offsets a load or a query reads. Pure.

Boundaries are resolved to offsets, offsets are divided into ranges, and ranges into tasks: large
ranges are split by bytes, and small ranges share a task. Offsets that retention removed before they
were loaded are a loss.

The caller gets the bounds of the logs from the cluster.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from ottla.base.clock import local_now
from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.quantities import MOMENT_FORMS, iso, moment_ms
from ottla.ledger.partition import PartitionLedger


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [start, end) of one partition, read by one task."""

    # Invariant: 0 <= start <= end.
    topic: str
    partition: int
    start: int
    end: int
    # If given, reading fails if the topic has another id.
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """The log start offset and the last stable offset of a partition."""

    log_start: int
    end: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """A start or an end of reading, before it is resolved to offsets.

    `offsets` has the offsets of some partitions (-2 for earliest, -1 for latest); other partitions
    get a default. `times` does the same with times in milliseconds.
    """

    kind: Literal["earliest", "latest", "timestamp", "times", "offsets", "last-load"]
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    times: Mapping[int, int] | None = None
    is_strict: bool = False  # Fail if a partition has no record at or after the time.


EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
_OFFSETS = {"earliest": EARLIEST_OFFSET, "latest": LATEST_OFFSET}
_PAIR = r"[0-9]{1,10}:-?[0-9]{1,19}"
_PAIRS = re.compile(f"{_PAIR}(?:,{_PAIR})*")


def parse_boundary(text: str) -> Boundary:
    """Parse a boundary: `earliest`, `latest`, `last-load`, `<partition>:<offset>,…` or a time.

    A time has one of the forms in MOMENT_FORMS. But `9:30` is offset 30 of partition 9; the time is
    written `today 9:30`.
    """
    match text:
        case "earliest" | "latest" | "last-load" as kind:
            return Boundary(kind)
    if _PAIRS.fullmatch(text):
        pairs = [pair.split(":") for pair in text.split(",")]
        offsets = {int(p): int(offset) for p, offset in pairs}
        if len(offsets) < len(pairs):
            raise WrongWords(f"{text!r} names a partition twice: write one offset for each")
        return Boundary("offsets", offsets=offsets)
    timestamp_ms = moment_ms(text, local_now())
    if timestamp_ms is None:
        raise WrongWords(
            f"{text!r} is not a boundary: write earliest, latest, last-load, "
            f"PARTITION:OFFSET,PARTITION:OFFSET, or a time: {MOMENT_FORMS}"
        )
    return Boundary("timestamp", timestamp_ms=timestamp_ms)


def resolve(
    boundary: Boundary,
    bounds: Mapping[int, PartitionBounds],
    *,
    by_time: Mapping[int, int],
    last_load: Mapping[int, int],
    unnamed: Literal["earliest", "latest"] = "earliest",
) -> dict[int, int]:
    """Resolve `boundary` to an offset in each partition of `bounds`.

    `by_time` has the first offset at or after the boundary's time; a partition without such a
    record resolves to its end. `last_load` has the offsets at which the last load ended; a
    partition that is missing there resolves to its log start. A partition that a boundary of
    offsets does not name resolves to `unnamed`. Raises OttlaError for a partition that does not
    exist, or an offset beyond the log's end.
    """
    resolved: dict[int, int] = {}
    for partition, bound in bounds.items():
        match boundary.kind:
            case "earliest":
                resolved[partition] = bound.log_start
            case "latest":
                resolved[partition] = bound.end
            case "timestamp":
                resolved[partition] = by_time.get(partition, bound.end)
            case "times" if partition in (boundary.times or {}):
                resolved[partition] = by_time.get(partition, bound.end)
            case "last-load":
                resolved[partition] = last_load.get(partition, bound.log_start)
            case "offsets" | "times":
                resolved[partition] = _named_offset(
                    (boundary.offsets or {}).get(partition, _OFFSETS[unnamed]), partition, bound
                )
    unknown = sorted({*(boundary.offsets or {}), *(boundary.times or {})} - set(bounds))
    if unknown:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no partition {unknown[0]}; the topic has partitions 0 to {len(bounds) - 1}",
        )
    return resolved


def _named_offset(offset: int, partition: int, bound: PartitionBounds) -> int:
    if offset == EARLIEST_OFFSET:
        return bound.log_start
    if offset == LATEST_OFFSET:
        return bound.end
    if not 0 <= offset <= bound.end:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of partition {partition} is not in its log, which holds offsets "
            f"{bound.log_start} to {bound.end}",
        )
    return offset


def require_past(boundary: Boundary, now_ms: int) -> None:
    """Raise an error for a start in the future, for which a load would commit a current offset."""
    if boundary.timestamp_ms is not None and boundary.timestamp_ms > now_ms:
        raise WrongWords(
            f"the start {iso(boundary.timestamp_ms)} lies in the future (it is {iso(now_ms)} "
            "now): load once that time has come, or start from latest",
        )


def ranges(
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    *,
    offsets_max: int,
    topic_id: str | None = None,
) -> list[Range]:
    """Cut the offsets from `starts` to `ends` into ranges of at most `offsets_max` offsets.

    Empty ranges are left out. The order is by partition, then by offset. Raises OttlaError if a
    start is above its end.
    """
    for partition in sorted(starts):
        if starts[partition] > ends[partition]:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"partition {partition} would be read from {starts[partition]} back to "
                f"{ends[partition]}; choose an end behind the start",
            )
    return [
        Range(topic, partition, start, min(start + offsets_max, ends[partition]), topic_id)
        for partition in sorted(starts)
        for start in range(starts[partition], ends[partition], offsets_max)
    ]


def require_same_id(topic: str, known_id: str | None, current_id: str | None) -> None:
    """Raise OttlaError UNKNOWN_TOPIC_ID if the topic was recreated while it was read."""
    if known_id and known_id != current_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {topic} was deleted and created anew while it was loaded (its id was "
            f"{known_id} and is {current_id}). Nothing was committed: load again, into a new "
            "folder where this table holds loads already",
        )


def require_same_topic(
    topic: str,
    known_id: str | None,
    current_id: str | None,
    positions: Mapping[int, int],
    bounds: Mapping[int, PartitionBounds],
) -> None:
    """Raise OttlaError if the table cannot go on, because the topic was recreated or truncated.

    The code is UNKNOWN_TOPIC_ID for a topic that was deleted and created again, or
    OFFSET_OUT_OF_RANGE for a log that now ends before the table's position.
    """
    if known_id and current_id and known_id != current_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {topic} was deleted and created anew since the last load (its id was "
            f"{known_id} and is {current_id}): load it into a new folder",
        )
    for partition, position in sorted(positions.items()):
        bound = bounds.get(partition)
        if bound is None or bound.end < position:
            end = "does not exist any more" if bound is None else f"now ends at {bound.end}"
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{topic}-{partition} was loaded up to offset {position}, but {end}: records that "
                "were loaded are gone from the log (an unclean election, or data restored from "
                "an older copy). Load into a new folder to start over",
            )


# A range of this many bytes gives a Parquet file of about this size, and a task of some seconds.
SPLIT_BYTES = 128 << 20
# Ranges share a Spark task up to this size. A larger range is worth a task of its own.
JOIN_BYTES = 16 << 20
# Assumed if the broker does not report a partition's size.
_GUESSED_OFFSET_BYTES = 128


@dataclass(frozen=True, slots=True)
class SizedRange:
    """A range, and its approximate size in the log."""

    wanted: Range
    size_bytes: int


def split(
    ranges: Sequence[Range],
    bounds: Mapping[int, PartitionBounds],
    partition_bytes: Mapping[int, int],
    *,
    split_bytes: int = SPLIT_BYTES,
) -> list[SizedRange]:
    """Cut ranges of more than `split_bytes` into equal pieces, in the same order.

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
    """Return groups of adjacent items, as indices in `sizes`. Each group is one Spark task.

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
    """Return the average size in bytes of one offset in a log with these bounds."""
    offsets = bound.end - bound.log_start
    return log_bytes / offsets if offsets > 0 and log_bytes > 0 else _GUESSED_OFFSET_BYTES


class RecordsLost(OttlaError):
    """Raised if records were deleted before they were loaded, and the loss was not accepted."""


def gone_before(
    bounds: Mapping[int, PartitionBounds], positions: Mapping[int, int]
) -> dict[int, int]:
    """Return the offset of each partition below which deleted records are not a loss.

    This is the partition's position in the table, or the log start offset if it has no position.
    """
    return {p: positions.get(p, bound.log_start) for p, bound in bounds.items()}


def lost(ledger: PartitionLedger, gone_below: int) -> int:
    """Return how many of the ledger's deleted offsets are lost, which are not below `gone_below`.

    The deleted offsets are always the first of the range.
    """
    return max(0, ledger.deleted - max(0, min(ledger.end, gone_below) - ledger.start))


def deleted_at(start: int, end: int, partition: int, bound: PartitionBounds) -> PartitionLedger:
    """Return the ledger of a range that is not read yet, with the offsets that are deleted."""
    return PartitionLedger(partition, start, end, deleted=max(0, min(end, bound.log_start) - start))


def losses(
    ledgers: Iterable[PartitionLedger], gone_below: Mapping[int, int]
) -> dict[PartitionLedger, int]:
    """Return the ledgers that have a loss, with the number of lost offsets."""
    found = {ledger: lost(ledger, gone_below.get(ledger.partition, 0)) for ledger in ledgers}
    return {ledger: count for ledger, count in found.items() if count}


def loss_lines(topic: str, found: Mapping[PartitionLedger, int]) -> list[str]:
    """Return a line of text for each partition with a loss."""
    return [
        f"{topic}-{ledger.partition}: {count} of the offsets {ledger.start} to {ledger.end} were "
        "deleted before they were loaded"
        for ledger, count in found.items()
    ]


def require_no_loss(topic: str, found: Mapping[PartitionLedger, int], remedy: str) -> None:
    """Raise RecordsLost (OFFSET_OUT_OF_RANGE) if there is a loss."""
    if found:
        raise RecordsLost(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{'; '.join(loss_lines(topic, found))}. {remedy}"
        )
