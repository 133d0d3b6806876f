"""Plans the load that a run of a pipeline would do now, without running it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.status import first_times, lag_s, now_ms
from ottla.lake.model.plan import joined, loss_lines, parse_boundary
from ottla.lake.source.boundaries import limits_of_load
from ottla.lake.source.cluster import LOOK_PATIENCE_S, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.targets import open_store
from ottla.lake.tables.formats import file_options, holds_table, require_own
from ottla.lake.tables.opening import existing_table, place_of
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.load_plan import Base, LoadPlan, built_on, plan_load
from ottla.lake.write.settings import row_settings_of


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of the load. `size_bytes` is estimated from the size of the broker's log."""

    partition: int
    position: int | None  # The table's position; None if the partition was never loaded.
    start: int
    end: int
    offsets: int
    size_bytes: int
    # The age of the first record to load; None if there is no record, or its time is unknown.
    lag_s: float | None


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """A load as it would be planned now."""

    topic: str
    topic_id: str | None
    table: str
    version: int  # The table's version after the load.
    partitions: tuple[PlannedPartition, ...]
    offsets: int
    size_bytes: int
    lag_s: float | None  # The age of the oldest record that is not loaded yet.
    tasks: int
    files: int  # An upper bound of the Parquet files that the load would write.
    lost: tuple[str, ...]
    held_back: tuple[str, ...]


def look(pipeline: Pipeline, patience_s: float = LOOK_PATIENCE_S) -> PlannedLoad:
    """Return the load that a run would do now. Raises OttlaError if it would fail.

    Brokers that do not answer are retried for `patience_s`.
    """
    options = pipeline.load
    settings = row_settings_of(options)
    start, end = parse_boundary(options["start"]), parse_boundary(options["end"])
    bootstrap = settings.bootstrap
    with closing(connect(bootstrap, patience_s)) as cluster:
        table = _table(pipeline)
        if table is None:
            base = Base(cluster.describe(pipeline.topic), None, None)
        else:
            base = built_on(table, cluster, pipeline.topic, is_changelog=pipeline.is_changelog)
        limits = limits_of_load(cluster, base.described, start, end, base.positions)
        plan = plan_load(bootstrap, base, limits, sizes=settings.sizes)
        starts = {one.wanted.partition: limits.starts[one.wanted.partition] for one in plan.ranges}
        first_ms = first_times(cluster, pipeline.topic, starts)
        held = held_back_in(cluster, bootstrap, base.described, limits.ends)
    place = place_of(pipeline.table, pipeline.store_options)
    return planned_load(plan, place, first_ms, now_ms(), held)


def _table(pipeline: Pipeline) -> LakeTable | None:
    """Return the table; None if a run would create it."""
    store = open_store(pipeline.table, file_options(pipeline.store_options))
    with as_storage_error(store.url):
        if not pipeline.load["into_existing"]:
            require_own(store)
        if not holds_table(store):
            return None
        return existing_table(pipeline.table, pipeline.store_options)


def planned_load(
    plan: LoadPlan,
    table: str,
    first_times_ms: Mapping[int, int],
    now_ms: int,
    held_back: Sequence[str] = (),
) -> PlannedLoad:
    """Return what a plan would load, of each partition and in all. Pure."""
    starts, ends = plan.limits.starts, plan.limits.ends
    sizes: Counter[int] = Counter()
    for sized in plan.ranges:
        sizes[sized.wanted.partition] += sized.size_bytes
    partitions = tuple(
        PlannedPartition(
            partition=p,
            position=(plan.positions or {}).get(p),
            start=starts[p],
            end=ends[p],
            offsets=ends[p] - starts[p],
            size_bytes=sizes[p],
            lag_s=lag_s(first_times_ms.get(p), now_ms),
        )
        for p in sorted(starts)
    )
    return PlannedLoad(
        topic=plan.described.topic,
        topic_id=plan.described.topic_id,
        table=table,
        version=plan.version,
        partitions=partitions,
        offsets=sum(one.offsets for one in partitions),
        size_bytes=sizes.total(),
        lag_s=max((one.lag_s for one in partitions if one.lag_s is not None), default=None),
        tasks=len(joined([sized.size_bytes for sized in plan.ranges])),
        files=len(plan.ranges),
        lost=tuple(loss_lines(plan.described.topic, plan.limits.lost)),
        held_back=tuple(held_back),
    )
