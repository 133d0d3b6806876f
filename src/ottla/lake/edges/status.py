"""The status of a table: its commits, and the records that only the topic has. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.quantities import iso
from ottla.lake.edges.commits import bytes_of_files
from ottla.lake.edges.planned import lag_s
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition: the table's position, and how far the topic is ahead."""

    partition: int
    position: int
    end: int | None = None  # None: the topic was not asked.
    lag_s: float | None = None

    @property
    def lag_offsets(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The status of a whole table."""

    table: str
    format: str
    topic: str | None = None
    topic_id: str | None = None
    commits: int = 0
    loads: int = 0
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    last_load_ms: int | None = None
    writer_epoch: int = 0
    # Problems that an operator has overridden.
    overridden: tuple[str, ...] = ()
    # Files of loads that were not committed, or not yet.
    orphans: tuple[str, ...] = ()
    partitions: tuple[PartitionStatus, ...] = ()
    # All rows with an earlier event time are loaded; None: unknown, or no event times.
    watermark_ms: int | None = None
    late_rows: int = 0  # Rows that were loaded with event times before the watermark.
    held_back: tuple[str, ...] = ()  # Partitions held back by open transactions, a line for each.
    # The live files, for numbers and plots.
    live: tuple[DataFile, ...] = field(default=(), repr=False)

    @property
    def lag_offsets(self) -> int | None:
        found = [one.lag_offsets for one in self.partitions]
        known = [one for one in found if one is not None]
        return sum(known) if known else None

    @property
    def lag_s(self) -> float | None:
        """Return the age of the oldest record that is not loaded yet; 0 if all are loaded."""
        if self.lag_offsets is None:
            return None
        return max((one.lag_s for one in self.partitions if one.lag_s is not None), default=0.0)

    @property
    def complete(self) -> str:
        """Return a description of the watermark; empty if there is none."""
        if self.watermark_ms is None:
            return ""
        return f"all before {iso(self.watermark_ms)[:19].replace('T', ' ')} UTC is in"

    def answer(self) -> dict[str, Any]:
        """Return the whole status as JSON values."""
        return {
            "table": self.table,
            "format": self.format,
            "topic": self.topic,
            "topic_id": self.topic_id,
            "commits": self.commits,
            "loads": self.loads,
            "rows": self.rows,
            "files": self.files,
            "size_bytes": self.size_bytes,
            "last_load": None if self.last_load_ms is None else iso(self.last_load_ms),
            "lag_offsets": self.lag_offsets,
            "lag_s": self.lag_s,
            "writer_epoch": self.writer_epoch,
            "overridden": list(self.overridden),
            "orphans": list(self.orphans),
            "watermark": None if self.watermark_ms is None else iso(self.watermark_ms),
            "watermark_ms": self.watermark_ms,
            "late_rows": self.late_rows,
            "held_back": list(self.held_back),
            "partitions": self.rows_by_partition(),
        }

    def rows_by_partition(self) -> list[dict[str, Any]]:
        """Return a row for each partition."""
        return [
            {
                "partition": one.partition,
                "position": one.position,
                "end": one.end,
                "lag_offsets": one.lag_offsets,
                "lag_s": one.lag_s,
            }
            for one in self.partitions
        ]


def table_status(
    table: str,
    table_format: str,
    manifests: Sequence[Manifest],
    present: Sequence[str],
    ends: Mapping[int, int] | None,
    first_times_ms: Mapping[int, int],
    now_ms: int,
) -> TableStatus:
    """Return the status of a table. `present` are paths of files that tasks wrote.

    `ends` are those of the topic's partitions, None if it was not asked.
    """
    if not manifests:
        return TableStatus(table, table_format, orphans=tuple(sorted(present)))
    newest, live = manifests[-1], dict[str, DataFile]()
    named: set[str] = set()
    for one in manifests:
        live_after(live, one)
        named |= {file.path for file in (*one.files, *one.dead_letters)}
    loads = [one for one in manifests if one.kind == "load"]
    partitions = newest.positions.keys() | (ends or {}).keys()
    return TableStatus(
        table=table,
        format=table_format,
        topic=newest.topic,
        topic_id=newest.topic_id,
        commits=len(manifests),
        loads=len(loads),
        rows=newest.total_rows,
        files=len(live),
        size_bytes=bytes_of_files(live.values()),
        last_load_ms=loads[-1].created_ms if loads else None,
        writer_epoch=newest.writer_epoch,
        overridden=tuple(problem for one in manifests for problem in one.overridden),
        orphans=tuple(sorted(set(present) - named)),
        partitions=tuple(
            PartitionStatus(
                partition=p,
                position=newest.positions.get(p, 0),
                end=None if ends is None else ends.get(p),
                lag_s=lag_s(first_times_ms.get(p), now_ms),
            )
            for p in sorted(partitions)
        ),
        live=tuple(live.values()),
        watermark_ms=newest.events.watermark_ms if newest.events else None,
        late_rows=sum(sum(one.events.late.values()) for one in manifests if one.events),
    )
