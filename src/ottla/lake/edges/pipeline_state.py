"""Reads topic and table for plans, status and history. Writes nothing."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.planned import PlannedLoad, first_time_ms, planned_partitions, task_count
from ottla.lake.edges.status import TableStatus, table_status
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import loss_lines, parse_boundary
from ottla.lake.source.boundaries import limits_of_load
from ottla.lake.source.cluster import LOOK_PATIENCE_S, Cluster, TopicDescription, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.targets import open_store
from ottla.lake.tables.data_files import files_present
from ottla.lake.tables.formats import file_options, holds_table, require_own
from ottla.lake.tables.opening import existing_table, place_of
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.load_plan import Base, built_on, plan_load
from ottla.lake.write.settings import decode_of, sizes_of


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
        first = _first_times(cluster, described.topic, starts)
        held = held_back_in(cluster, bootstrap, described, limits.ends)
    return PlannedLoad(
        topic=described.topic,
        topic_id=described.topic_id,
        table=place_of(pipeline.table, pipeline.store_options),
        version=plan.version,
        partitions=planned_partitions(
            limits.starts, limits.ends, positions or {}, plan.ranges, first, _now_ms()
        ),
        tasks=task_count(plan.ranges),
        files=len(plan.ranges),
        lost=tuple(loss_lines(described.topic, limits.lost)),
        held_back=tuple(held),
    )


def status(
    target: str, bootstrap: str | None, store_options: Mapping[str, str] | None = None
) -> TableStatus:
    """Return the status of a table; compared with its topic if `bootstrap` is given."""
    table = existing_table(target, store_options)
    # Read before the manifests: if a load ends meanwhile, its files then have a manifest.
    _, present = files_present(table.store)
    manifests = list(table.history())
    ends: dict[int, int] | None = None
    first: dict[int, int] = {}
    held: list[str] = []
    if bootstrap is not None and manifests:
        newest = manifests[-1]
        with closing(connect(bootstrap, LOOK_PATIENCE_S)) as cluster:
            described = cluster.describe(newest.topic)
            _require_same(newest, described)
            ends = {p: bound.end for p, bound in described.bounds.items()}
            behind = {
                p: max(newest.positions.get(p, 0), bound.log_start)
                for p, bound in described.bounds.items()
                if newest.positions.get(p, 0) < bound.end
            }
            first = _first_times(cluster, newest.topic, behind)
            held = held_back_in(cluster, bootstrap, described, ends)
    found = table_status(table.store.url, table.format, manifests, present, ends, first, _now_ms())
    return replace(found, held_back=tuple(held))


def history(target: str, store_options: Mapping[str, str] | None = None) -> list[Manifest]:
    """Return all manifests of a table, oldest first. Raises OttlaError if one is wrong."""
    return list(existing_table(target, store_options).history())


def _table(pipeline: Pipeline) -> LakeTable | None:
    store = open_store(pipeline.table, file_options(pipeline.store_options))
    with as_storage_error(store.url):
        if holds_table(store):
            return existing_table(pipeline.table, pipeline.store_options)
        require_own(store)
    return None


def _require_same(newest: Manifest, described: TopicDescription) -> None:
    if newest.topic_id and described.topic_id and newest.topic_id != described.topic_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {newest.topic} was deleted and created anew since the last load (its id was "
            f"{newest.topic_id} and is {described.topic_id}); --offline shows the table alone",
        )


def _first_times(cluster: Cluster, topic: str, starts: Mapping[int, int]) -> dict[int, int]:
    """Return the time of the first record at or after each start, if it can be read."""
    found = {}
    for partition, start in starts.items():
        try:
            first_ms = first_time_ms(cluster.peek(topic, partition, start), start)
        except OttlaError as error:
            # Damaged there, or deleted meanwhile: the load itself will report it.
            if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
                raise
            continue
        if first_ms is not None:
            found[partition] = first_ms
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
