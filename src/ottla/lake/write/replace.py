"""Replacement: reads the rows of offset ranges from the topic again.

    ranges → tasks that read them → compare with the table → cut files that stick out → manifest

Files that extend beyond a range are first cut at its ends, in a commit that changes no rows.
Then one manifest removes the table's files of the ranges and adds the new ones, with a ledger of
every offset. If no row differs, nothing is committed, so a replacement may be repeated. If it is
killed at any step, the table has either the old rows or the new ones.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.options import ReplaceOptions
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Boundary, parse_boundary
from ottla.lake.source.boundaries import Limits, offsets_of
from ottla.lake.source.cluster import Cluster, TopicBounds, connect
from ottla.lake.write.engine import opened
from ottla.lake.write.load_plan import plan_load
from ottla.lake.write.settings import ACCEPT_LOSS, settings_of
from ottla.lake.write.swap import NothingDiffers, ranges_replaced
from ottla.lake.write.topic_writer import TopicWriter
from ottla.ledger.partition import PartitionLedger


@dataclass(frozen=True, slots=True)
class ReplacementResult:
    """The result of a replacement. `manifest` is None if nothing differs."""

    manifest: Manifest | None
    ranges: Mapping[int, tuple[int, int]]
    rows: int
    removed_rows: int
    ledgers: tuple[PartitionLedger, ...]
    seconds: float


def replace(
    topic: str, target: str, *, start: str, end: str, **options: Unpack[ReplaceOptions]
) -> ReplacementResult:
    """Read offset ranges of `topic` again, and replace the rows of the table in `target` by them.

    `start` and `end` are boundaries as in `load`: times, or offsets such as "0:100,1:50", in which
    case only the named partitions are replaced. Offsets after the table's positions are left to
    loads. Raises OttlaError if the topic no longer holds all rows that the table has in the ranges.
    With `accept_loss`, these rows are removed instead, and the manifest records their number.

    Options for decoding keys and values apply to later loads too; by default rows are decoded as in
    the table's last commit. The other options are those of `load`.
    """
    given = filled(ReplaceOptions, options)
    began = time.monotonic()
    start_at, end_at = parse_boundary(start), parse_boundary(end)
    settings = settings_of(given)
    with opened(target, given, must_exist=True) as engine:
        writer = TopicWriter(engine, topic, settings, ranges_replaced)
        with closing(connect(settings.bootstrap)) as cluster:
            base = writer.base(cluster)
            loaded = _loaded(engine.table.history(), base.before)
            wanted = _ranges(cluster, base.described, start_at, end_at, loaded)
        if not settings.takes_loss:
            _require_held(base.described, wanted)
        starts = {partition: range_[0] for partition, range_ in wanted.items()}
        ends = {partition: range_[1] for partition, range_ in wanted.items()}
        limits = Limits(starts, ends, gone_below=ends, lost={})
        plan = plan_load(settings.bootstrap, base, limits, "replacement")
        engine.steps.reached("planned")
        try:
            manifest = writer.run_plan(plan)
        except NothingDiffers as found:
            engine.table.remove_orphans()
            rows = found.rows
            return ReplacementResult(None, wanted, rows, rows, (), time.monotonic() - began)
        engine.remove_orphans_after(manifest)
    return ReplacementResult(
        manifest,
        wanted,
        manifest.rows,
        sum(file.rows for file in manifest.removed),
        manifest.ledgers,
        time.monotonic() - began,
    )


def _loaded(history: Iterable[Manifest], newest: Manifest | None) -> dict[int, tuple[int, int]]:
    """Return the offset range that was loaded of each partition, up to the commit `newest`."""
    version = newest.version if newest else 0
    found: dict[int, tuple[int, int]] = {}
    for manifest in history:
        is_load = manifest.kind == "load" and manifest.version <= version
        for ledger in manifest.ledgers if is_load else ():
            first, _ = found.get(ledger.partition, (ledger.start, 0))
            found[ledger.partition] = (first, ledger.end)
    return found


def _ranges(
    cluster: Cluster,
    described: TopicBounds,
    start: Boundary,
    end: Boundary,
    loaded: Mapping[int, tuple[int, int]],
) -> dict[int, tuple[int, int]]:
    """Return the ranges to replace: the named offsets, or the loaded offsets of a time span."""
    named = [set(one.offsets) for one in (start, end) if one.offsets is not None]
    if len(named) == 2 and named[0] != named[1]:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a replacement needs a start and an end of the same partitions, such as 0:100,1:50 "
            "and 0:200,1:80",
        )
    positions = {partition: behind for partition, (_, behind) in loaded.items()}
    starts = offsets_of(cluster, described, start, positions)
    ends = offsets_of(cluster, described, end, positions, unnamed="latest")
    found = {}
    for partition in sorted(named[0] if named else loaded):
        first, behind = starts[partition], ends[partition]
        low, high = loaded.get(partition, (0, 0))
        if start.offsets is None:
            first = max(first, low)
        if end.offsets is None:
            behind = min(behind, high)
        if not named and first >= behind:
            continue
        _require_loaded(described.topic, partition, (first, behind), (low, high))
        found[partition] = (first, behind)
    if not found:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the table has loaded nothing of {described.topic} between these times: there is "
            "nothing to be replaced",
        )
    return found


def _require_loaded(
    topic: str, partition: int, wanted: tuple[int, int], loaded: tuple[int, int]
) -> None:
    (start, end), (low, high) = wanted, loaded
    if start >= end:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"partition {partition} would be replaced from offset {start} to {end}; the end lies "
            "behind the start",
        )
    if start < low or end > high:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the table has loaded {topic}-{partition} from offset {low} to {high}, and not all "
            f"from {start} to {end}: replace what it has; `ottla lake load` loads what is new",
        )


def _require_held(described: TopicBounds, wanted: Mapping[int, tuple[int, int]]) -> None:
    for partition, (start, end) in wanted.items():
        log_start = described.bounds[partition].log_start
        if start < log_start:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log of {described.topic}-{partition} starts at offset {log_start} by now, so "
                f"that {start} to {min(end, log_start)} can't be read again; the table would lose "
                f"those rows. Start later, or accept it: {ACCEPT_LOSS}",
            )
