"""The load that a run of a pipeline would do. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.lake.model.plan import SizedRange, joined
from ottla.record.reader import batches


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of the load. `size_bytes` is estimated from the size of the broker's log."""

    partition: int
    position: int | None  # The table's position; None: the table has nothing of this partition yet.
    start: int
    end: int
    size_bytes: int
    # Age of the first record to load; None if there is none, or its time is unknown.
    lag_s: float | None

    @property
    def offsets(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """A load as it would be planned now."""

    topic: str
    topic_id: str | None
    table: str
    version: int  # The table's version after the load.
    partitions: tuple[PlannedPartition, ...]
    tasks: int
    files: int  # The most Parquet files that the load would write.
    lost: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()

    @property
    def offsets(self) -> int:
        return sum(one.offsets for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.partitions)

    @property
    def lag_s(self) -> float | None:
        """Return the age of the oldest record that is not loaded yet."""
        return max((one.lag_s for one in self.partitions if one.lag_s is not None), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each partition."""
        return [
            {
                "partition": one.partition,
                "position": one.position,
                "start": one.start,
                "end": one.end,
                "offsets": one.offsets,
                "size_bytes": one.size_bytes,
                "lag_s": one.lag_s,
            }
            for one in self.partitions
        ]

    def answer(self) -> dict[str, Any]:
        """Return the whole plan as JSON values."""
        return {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "table": self.table,
            "version": self.version,
            "offsets": self.offsets,
            "size_bytes": self.size_bytes,
            "lag_s": self.lag_s,
            "tasks": self.tasks,
            "files": self.files,
            "lost": list(self.lost),
            "held_back": list(self.held_back),
            "partitions": self.rows(),
        }


def planned_partitions(
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    positions: Mapping[int, int],
    ranges: Sequence[SizedRange],
    first_times_ms: Mapping[int, int],
    now_ms: int,
) -> tuple[PlannedPartition, ...]:
    """Return one for each partition, in order, with the time of its first record to load."""
    sizes: dict[int, int] = {}
    for sized in ranges:
        at = sized.wanted.partition
        sizes[at] = sizes.get(at, 0) + sized.size_bytes
    return tuple(
        PlannedPartition(
            partition=p,
            position=positions.get(p),
            start=starts[p],
            end=ends[p],
            size_bytes=sizes.get(p, 0),
            lag_s=lag_s(first_times_ms.get(p), now_ms),
        )
        for p in sorted(starts)
    )


def task_count(ranges: Sequence[SizedRange]) -> int:
    """Return the number of Spark tasks for the ranges."""
    return len(joined([sized.size_bytes for sized in ranges]))


def first_time_ms(buffer: bytes, offset: int) -> int | None:
    """Return the time of the record at `offset`, from the header of its batch in `buffer`.

    Inside a batch it is the batch's latest time. None if the buffer does not hold the batch, or the
    batch has no time.
    """
    for _, header in batches(buffer):
        if header.last_offset >= offset:
            starts_here = header.base_offset >= offset and not header.is_log_append_time
            found = header.base_timestamp if starts_here else header.max_timestamp
            return found if found >= 0 else None
    return None


def lag_s(first_ms: int | None, now_ms: int) -> float | None:
    """Return the age of a record; 0 if its clock is ahead."""
    return None if first_ms is None else max(0, now_ms - first_ms) / 1000
