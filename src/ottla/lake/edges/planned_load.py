"""Plans the load that a run of a pipeline would do now, without running it."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.status import first_times, lag_s, now_ms
from ottla.lake.model.plan import SizedRange, joined, loss_lines, parse_boundary
from ottla.lake.source.boundaries import limits_of_load
from ottla.lake.source.cluster import LOOK_PATIENCE_S, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.targets import open_store
from ottla.lake.tables.formats import file_options, holds_table, require_own
from ottla.lake.tables.opening import existing_table, place_of
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.load_plan import Base, built_on, plan_load
from ottla.lake.write.settings import decode_of, sizes_of


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of the load. `size_bytes` is estimated from the size of the broker's log."""

    partition: int
    position: int | None  # The table's position; None if the partition was never loaded.
    start: int
    end: int
    size_bytes: int
    # The age of the first record to load; None if there is no record, or its time is unknown.
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
    files: int  # An upper bound of the Parquet files that the load would write.
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
        """Return one row, as a dict, for each partition."""
        return [{**asdict(one), "offsets": one.offsets} for one in self.partitions]

    def answer(self) -> dict[str, Any]:
        """Return the whole plan as JSON values."""
        return {
            **asdict(self),
            "offsets": self.offsets,
            "size_bytes": self.size_bytes,
            "lag_s": self.lag_s,
            "partitions": self.rows(),
        }


def look(pipeline: Pipeline, patience_s: float = LOOK_PATIENCE_S) -> PlannedLoad:
    """Return the load that a run would do now. Raises OttlaError if it would fail.

    Brokers that do not answer are retried for `patience_s`.
    """
    options = pipeline.load
    bootstrap = options["bootstrap"]
    decode_of(options)
    start, end = parse_boundary(options["start"]), parse_boundary(options["end"])
    with closing(connect(bootstrap, patience_s)) as cluster:
        table = _table(pipeline)
        if table is None:
            base = Base(cluster.describe(pipeline.topic), None, None)
        else:
            base = built_on(table, cluster, pipeline.topic, is_changelog=pipeline.is_changelog)
        described, positions = base.described, base.positions
        limits = limits_of_load(cluster, described, start, end, positions)
        plan = plan_load(bootstrap, base, limits, sizes=sizes_of(options))
        starts = {one.wanted.partition: limits.starts[one.wanted.partition] for one in plan.ranges}
        first = first_times(cluster, described.topic, starts)
        held = held_back_in(cluster, bootstrap, described, limits.ends)
    return PlannedLoad(
        topic=described.topic,
        topic_id=described.topic_id,
        table=place_of(pipeline.table, pipeline.store_options),
        version=plan.version,
        partitions=planned_partitions(
            limits.starts, limits.ends, positions or {}, plan.ranges, first, now_ms()
        ),
        tasks=task_count(plan.ranges),
        files=len(plan.ranges),
        lost=tuple(loss_lines(described.topic, limits.lost)),
        held_back=tuple(held),
    )


def _table(pipeline: Pipeline) -> LakeTable | None:
    store = open_store(pipeline.table, file_options(pipeline.store_options))
    with as_storage_error(store.url):
        if holds_table(store):
            return existing_table(pipeline.table, pipeline.store_options)
        require_own(store)
    return None


def planned_partitions(
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    positions: Mapping[int, int],
    ranges: Sequence[SizedRange],
    first_times_ms: Mapping[int, int],
    now_ms: int,
) -> tuple[PlannedPartition, ...]:
    """Return the plan of each partition, in order."""
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
