"""Replacement: the rows of ranges of offsets, read from the topic again.

    ranges → tasks that read them → compare with the table → cut files that stick out → manifest

Files that stick out of a range are cut at its ends first, by a compaction: that changes no rows.
Then one manifest removes what the table has of the ranges and adds what was read, with an account
of every offset. Where nothing differs nothing is committed, so that a replacement may be repeated.
Killed at any step it leaves the table with the old rows or with the new ones.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import spark
from ottla.lake.cluster import connect
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.loads.boundaries import Limits
from ottla.lake.loads.committing import LoadSettings, Runner, built_on, commit_plan, plan_load
from ottla.lake.manifest import Manifest
from ottla.lake.plan import Boundary, parse_boundary
from ottla.lake.session import SparkSettings, session
from ottla.lake.source import TopicDescription
from ottla.lake.tables.opening import existing_table, open_table, place_of
from ottla.lake.upkeep.rewriting import rewriter
from ottla.lake.upkeep.swapping import NothingDiffers, Swap
from ottla.ledger.partition import PartitionLedger


@dataclass(frozen=True, slots=True)
class ReplacementResult:
    """What a replacement did. `manifest` is None where nothing differs."""

    manifest: Manifest | None
    ranges: Mapping[int, tuple[int, int]]
    rows: int
    removed_rows: int
    ledgers: tuple[PartitionLedger, ...]
    seconds: float


def replace(
    topic: str,
    target: str,
    *,
    start: str,
    end: str,
    bootstrap: str = "localhost:9092",
    skip_unreadable: bool = False,
    accept_loss: bool = False,
    on_bad_timestamp: Literal["fail", "null"] = "fail",
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    runner: Runner | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> ReplacementResult:
    """Read ranges of offsets from `topic` again, in place of what the table in `target` has.

    `start` and `end` name the same partitions: "0:100,1:50". The table has loaded the ranges
    before. Raises OttlaError where the topic does not hold all rows any more that the table has,
    unless `accept_loss`: then they go, and the manifest says how many. `runner` runs the tasks in
    place of Spark (`run_here`). The other options are those of `load`.
    """
    began = time.monotonic()
    wanted = _ranges(parse_boundary(start), parse_boundary(end))
    settings = LoadSettings(bootstrap, skip_unreadable, accept_loss, on_bad_timestamp == "null")
    steps = Steps()

    def on_each_step(step: str) -> None:
        steps.done.add(step)
        on_step(step)

    with as_storage_error(place_of(target, store_options)):
        existing_table(target, store_options)  # A mistyped target becomes no new table.
        table = open_table(target, None, store_options, on_each_step)
        with closing(connect(bootstrap)) as cluster:
            described, before, digest = built_on(table, cluster, topic)
        _require_loaded(topic, wanted, before)
        if not accept_loss:
            _require_held(described, wanted)
        starts = {partition: range_[0] for partition, range_ in wanted.items()}
        ends = {partition: range_[1] for partition, range_ in wanted.items()}
        limits = Limits(starts, ends, gone_below=ends, lost={})
        plan = plan_load(bootstrap, described, before, digest, limits, kind="replacement")
        on_step("planned")
        swap = Swap(
            table,
            wanted,
            partial(rewriter, runner is not None, spark_session, spark_settings),
            steps,
            accept_loss=accept_loss,
            on_step=on_each_step,
        )

        def start_runner() -> Runner:
            return runner or partial(spark.run_tasks, spark_session or session(spark_settings))

        try:
            manifest = commit_plan(
                table, plan, settings, start_runner, steps, on_step, commit=swap.commit
            )
        except NothingDiffers as found:
            table.remove_orphans()
            rows = found.rows
            return ReplacementResult(None, wanted, rows, rows, (), time.monotonic() - began)
        table.remove_orphans()
    return ReplacementResult(
        manifest,
        wanted,
        manifest.rows,
        sum(file.rows for file in manifest.removed),
        manifest.ledgers,
        time.monotonic() - began,
    )


def _ranges(start: Boundary, end: Boundary) -> dict[int, tuple[int, int]]:
    starts, ends = start.offsets or {}, end.offsets or {}
    if not starts or starts.keys() != ends.keys():
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a replacement needs a start and an end of the same partitions, such as 0:100,1:50 "
            "and 0:200,1:80",
        )
    found = {partition: (starts[partition], ends[partition]) for partition in sorted(starts)}
    for partition, (first, behind) in found.items():
        if not 0 <= first < behind:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"partition {partition} would be replaced from offset {first} to {behind}; the "
                "end lies behind the start",
            )
    return found


def _require_loaded(
    topic: str, wanted: Mapping[int, tuple[int, int]], before: Manifest | None
) -> None:
    positions = before.positions if before else {}
    for partition, (_, end) in wanted.items():
        at = positions.get(partition, 0)
        if end > at:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the table has {topic}-{partition} up to offset {at}, and nothing up to {end} to "
                "be replaced: `ottla lake load` loads what is new",
            )


def _require_held(described: TopicDescription, wanted: Mapping[int, tuple[int, int]]) -> None:
    for partition, (start, end) in wanted.items():
        log_start = described.bounds[partition].log_start
        if start < log_start:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log of {described.topic}-{partition} starts at offset {log_start} by now, so "
                f"that {start} to {min(end, log_start)} can't be read again; the table would lose "
                "those rows. Start later, or accept it (--accept-loss, accept_loss=True)",
            )
