"""Turns a plan into a commit: run tasks, collect their ledgers, check them, write the manifest.

`ottla lake load` does this once, `ottla lake follow` again and again.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.held_values import require_holdable
from ottla.lake.job.load_task import LoadTask, TaskResult
from ottla.lake.job.result import explained_ledgers
from ottla.lake.job.task import Runner
from ottla.lake.model.decode_spec import Decode
from ottla.lake.model.event_times import EventRule, EventSettings, EventTimes
from ottla.lake.model.manifest import Kind, Manifest, next_manifest
from ottla.lake.model.plan import (
    SizedRange,
    losses,
    ranges,
    require_no_loss,
    require_same_id,
    require_same_topic,
    split,
)
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.backlog import log_bytes
from ottla.lake.source.boundaries import Limits
from ottla.lake.source.cluster import Cluster, TopicDescription, connect
from ottla.lake.source.ledgers import loss_explained
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.file_check import require_files
from ottla.lake.tables.table import Foundation, LakeTable
from ottla.lake.write.event_times import (
    empty_at,
    events_after,
    events_for,
    is_worth_a_commit,
    rule_of,
)
from ottla.lake.write.file_sizes import FileSizes
from ottla.lake.write.renewing import commit_over_upkeep
from ottla.lake.write.table_schema import LoadTyping, load_typing
from ottla.lake.write.widening import needs_widening, widen
from ottla.ledger.partition import LedgerTotals, PartitionLedger

# How often a load starts again because its records have fields without a column.
SCHEMAS_MAX = 5
# The most offsets of one task; tasks are split further by bytes.
_OFFSETS_PER_TASK = 2_000_000
_LOSS = (
    "Nothing was committed. Go on without them: `ottla lake load --accept-loss` (load(…, "
    "accept_loss=True)) puts their number on record. Retention waits for loads that commit to a "
    "group (--group), where the topic's ottla.retention.hold.groups names it"
)


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How records are loaded, independent of the offsets."""

    bootstrap: Bootstrap
    skip_unreadable: bool = False
    accept_loss: bool = False
    null_bad_timestamps: bool = False
    # None: as in the table's last load.
    decode: Decode | None = None
    dead_timestamps: bool = False
    events: EventSettings = field(default_factory=EventSettings)
    sizes: FileSizes = field(default_factory=FileSizes)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What the next commit of a table loads, and which commit it builds on."""

    described: TopicDescription
    before: Manifest | None
    before_digest: str | None
    load_id: str
    limits: Limits
    ranges: Sequence[SizedRange]
    idle: Sequence[int]  # Partitions that have no position yet, and nothing to load.
    overridden: tuple[str, ...] = ()  # Problems of the table that an operator chose to override.
    kind: Kind = "load"
    # The high watermark of each partition, if it was asked for. Open transactions may be below it.
    high_watermarks: Mapping[int, int] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Return the version that the table has after the commit."""
        return self.before.version + 1 if self.before else 1

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to commit."""
        return not self.ranges and not self.idle and not self.overridden

    def moves_watermark(self, settings: "LoadSettings") -> bool:
        """Return whether an empty load should commit anyway, to advance the table's watermark."""
        events = events_for(settings.events, self.before, None, reads=False)
        positions = self.before.positions if self.before else {}
        return is_worth_a_commit(events, self.empty_at, positions)

    @property
    def empty_at(self) -> Mapping[int, int]:
        """Return when each partition was last seen to have nothing after what is loaded."""
        return empty_at(self.described, self.limits, self.high_watermarks)


def built_on(
    table: LakeTable,
    cluster: Cluster,
    topic: str,
    base: Foundation | None = None,
    *,
    is_changelog: bool = False,
) -> tuple[TopicDescription, Manifest | None, str | None]:
    """Return the topic, and the table's newest manifest and digest that a load builds on.

    `base`, if given, is that manifest. Raises OttlaError if the table holds another topic or is of
    another kind, or if the topic has lost records since.
    """
    before, digest = (base.newest, base.digest) if base else table.latest()
    # Read after the manifest, because another load may have advanced the positions meanwhile.
    described = cluster.describe(topic)
    if before is not None:
        if before.topic != topic:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"this table holds topic {before.topic}; load {topic} into a folder of its own",
            )
        if (before.changelog is not None) is not is_changelog:
            held = f"the {before.changelog.keeps} of each key" if before.changelog else "all rows"
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"this table keeps {held} of {topic}; choose a folder of its own for another kind "
                "of table (`ottla lake load`, `ottla lake changelog`)",
            )
        with loss_explained(cluster, described, before):
            require_same_topic(
                topic, before.topic_id, described.topic_id, before.positions, described.bounds
            )
    return described, before, digest


def plan_load(
    bootstrap: Bootstrap,
    described: TopicDescription,
    before: Manifest | None,
    before_digest: str | None,
    limits: Limits,
    overridden: tuple[str, ...] = (),
    kind: Kind = "load",
    *,
    sizes: FileSizes | None = None,
) -> LoadPlan:
    """Divide the offsets within `limits` into ranges for tasks, with files of about `sizes`."""
    positions = before.positions if before else {}
    starts, ends = limits.starts, limits.ends
    planned = ranges(
        described.topic,
        starts,
        ends,
        offsets_max=_OFFSETS_PER_TASK,
        tasks_min=1,
        topic_id=described.topic_id,
    )
    of_logs = log_bytes(bootstrap, [described.topic] if planned else [])
    file_bytes = (sizes or FileSizes()).file_bytes
    return LoadPlan(
        described=described,
        before=before,
        before_digest=before_digest,
        load_id=uuid.uuid4().hex,
        limits=limits,
        ranges=split(
            planned, described.bounds, of_logs.get(described.topic, {}), split_bytes=file_bytes
        ),
        idle=[p for p in sorted(starts) if p not in positions and starts[p] == ends[p]],
        overridden=overridden,
        kind=kind,
    )


def require_no_planned_loss(plan: LoadPlan, settings: LoadSettings) -> None:
    """Raise OttlaError if a loss is known before reading and is not accepted."""
    if not settings.accept_loss:
        require_no_loss(plan.described.topic, plan.limits.lost, _LOSS)


def commit_plan(
    table: LakeTable,
    plan: LoadPlan,
    settings: LoadSettings,
    run: Runner,
    steps: Steps,
    on_step: Callable[[str], None],
    commit: Callable[[Manifest], Manifest] | None = None,
) -> Manifest:
    """Run the plan's tasks and commit what they loaded. Return the new manifest.

    Raises OttlaError (LoadLost if another load committed meanwhile). Then nothing is committed, and
    the files that were written are removed. `commit`, if given, is called instead of the table's
    commit: it gets a manifest and returns the one that it committed.
    """
    steps.done.clear()
    with (
        table.running.mark(plan.load_id),
        removed_on_failure(table, plan.version, plan.load_id, steps),
    ):
        typing = _typing(plan, settings)
        _require_holdable(table, typing)
        events = events_for(settings.events, plan.before, typing, reads=bool(plan.ranges))
        results: list[TaskResult] = []
        if plan.ranges:
            rule = rule_of(events, plan.described)
            if rule is not None and plan.kind == "replacement":
                # Rows that are read again do not count as late.
                rule = replace(rule, watermark_ms=None)
            results, typing = _run(table, plan, settings, typing, rule, run)
            _require_holdable(table, typing)
        on_step("files written")
        ledgers, found = settled_ledgers(plan, results, settings)
        if plan.before is not None and typing is not None and needs_widening(table, typing):
            plan, typing = _widened(table, plan, plan.before, typing, run, steps)
        manifest = _manifest(plan, results, ledgers, found, typing, events)
        require_sound(table, plan, settings, manifest)
        if commit is not None:
            return commit(manifest)
        return commit_over_upkeep(table, plan.before, manifest)


def _require_holdable(table: LakeTable, typing: LoadTyping | None) -> None:
    if typing is not None:
        require_holdable(table.format, typing.sorting.schema.fields)


def _widened(
    table: LakeTable,
    plan: LoadPlan,
    before: Manifest,
    typing: LoadTyping,
    run: Runner,
    steps: Steps,
) -> tuple[LoadPlan, LoadTyping]:
    """Write the wider columns by a commit of its own; return the plan and typing on top of it."""
    if plan.kind == "replacement":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a column gets a wider type than the table in {table.store.url} has, for which all of "
            "its files are written anew; nothing was replaced: `ottla lake load` with the same "
            "declaration does that, run it first",
        )
    newest, digest = widen(table, before, typing, run, steps)
    # That commit's manifest records the schema changes.
    return replace(plan, before=newest, before_digest=digest), replace(typing, changes=())


def settled_ledgers(
    plan: LoadPlan, results: Sequence[TaskResult], settings: LoadSettings
) -> tuple[list[PartitionLedger], Mapping[PartitionLedger, int]]:
    """Return a ledger for each partition whose position moves, and the number of lost offsets.

    Raises OttlaError for a loss that is not accepted.
    """
    ledgers = explained_ledgers(results, plan.described, settings.bootstrap)
    ledgers += _idle_ledgers(plan)
    ledgers.sort(key=lambda one: one.partition)
    found = losses(ledgers, plan.limits.gone_below)
    if not settings.accept_loss:
        require_no_loss(plan.described.topic, found, _LOSS)
    return ledgers, found


def commit_checked(
    table: LakeTable, plan: LoadPlan, settings: LoadSettings, manifest: Manifest
) -> None:
    """Commit, after checking that ledgers balance, files exist and the topic is still the same."""
    require_sound(table, plan, settings, manifest)
    table.commit(manifest)


def require_sound(
    table: LakeTable, plan: LoadPlan, settings: LoadSettings, manifest: Manifest
) -> None:
    """Raise OttlaError unless ledgers balance, the files exist and the topic is the same."""
    described = plan.described
    _require_balance(manifest)
    require_files(table.store, (*manifest.files, *manifest.hidden, *manifest.dead_letters))
    # Check the id last: ids are never reused, so all records that were read are of this topic.
    with closing(connect(settings.bootstrap)) as cluster:
        require_same_id(described.topic, described.topic_id, cluster.topic_id(described.topic))


def _typing(plan: LoadPlan, settings: LoadSettings) -> LoadTyping | None:
    """Return how the load decodes. A load that reads nothing decodes nothing."""
    return load_typing(
        settings.decode,
        plan.before.table_schema if plan.before else None,
        dead_timestamps=settings.dead_timestamps,
        starts=plan.limits.starts,
        ranges=[sized.wanted for sized in plan.ranges],
        bootstrap=settings.bootstrap,
    )


def _run(
    table: LakeTable,
    plan: LoadPlan,
    settings: LoadSettings,
    typing: LoadTyping | None,
    rule: EventRule | None,
    run: Runner,
) -> tuple[list[TaskResult], LoadTyping | None]:
    """Run the tasks, and run them again with more columns if records have fields without one."""
    for _ in range(SCHEMAS_MAX):
        results = run(_tasks(table, plan, settings, typing, rule))
        news = [(r.ledger.partition, new, offset) for r in results for new, offset in r.news]
        if not news:
            return results, typing
        assert typing is not None, "only what decodes finds new fields"
        for file in (one for r in results for one in r.written):
            table.store.remove(file.path)
        typing = typing.with_news(news)
    raise schemas_never_settle()


def schemas_never_settle() -> OttlaError:
    """Return the error for records that show different fields each time they are read."""
    return OttlaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the records show other fields each time they are read, {SCHEMAS_MAX} times; nothing was "
        "committed: declare the columns (--columns), or leave new fields out (rules.add = ignore)",
    )


def _tasks(
    table: LakeTable,
    plan: LoadPlan,
    settings: LoadSettings,
    typing: LoadTyping | None,
    rule: EventRule | None,
) -> list[LoadTask]:
    return [
        LoadTask(
            wanted=sized.wanted,
            bootstrap=settings.bootstrap,
            compacted=plan.described.compacted or plan.described.has_ledger,
            store=table.store,
            path=table.file_stem(
                plan.version, plan.load_id, sized.wanted.partition, sized.wanted.start
            ),
            skip_unreadable=settings.skip_unreadable,
            null_bad_timestamps=settings.null_bad_timestamps or settings.dead_timestamps,
            size_bytes=sized.size_bytes,
            sorting=typing.sorting if typing else None,
            events=rule,
            row_group_rows=settings.sizes.row_group_rows,
            row_group_bytes=settings.sizes.row_group_bytes,
        )
        for sized in plan.ranges
    ]


def _manifest(
    plan: LoadPlan,
    results: Sequence[TaskResult],
    ledgers: Sequence[PartitionLedger],
    found: Mapping[PartitionLedger, int],
    typing: LoadTyping | None,
    events: EventTimes | None,
) -> Manifest:
    """Return the manifest of this load, with all files of its tasks in order."""
    files = [file for result in results for file in result.files]
    dead = [result.dead for result in results if result.dead]
    if events is not None:
        positions = {**(plan.before.positions if plan.before else {})}
        positions |= {ledger.partition: ledger.end for ledger in ledgers}
        events = events_after(events, results, plan.empty_at, positions)
    return next_manifest(
        plan.before,
        plan.before_digest,
        load_id=plan.load_id,
        topic=plan.described.topic,
        topic_id=plan.described.topic_id,
        cluster_id=plan.described.cluster_id,
        created_ms=time.time_ns() // 1_000_000,
        files=sorted(files, key=lambda file: (file.partition, file.start, file.event)),
        ledgers=ledgers,
        skipped=sorted(
            (one for result in results for one in result.skipped),
            key=lambda one: (one.partition, one.start),
        ),
        accepted_loss={ledger.partition: count for ledger, count in found.items()},
        overridden=plan.overridden,
        kind=plan.kind,
        table_schema=typing.table_schema() if typing else None,
        schema_changes=typing.changes if typing else (),
        dead_letters=sorted(dead, key=lambda file: (file.partition, file.start)),
        events=events,
    )


def _idle_ledgers(plan: LoadPlan) -> list[PartitionLedger]:
    """Return ledgers without offsets for idle partitions, so that their positions are written."""
    told = LedgerTotals(0, 0, 0, 0, 0, 0, 0) if plan.described.has_ledger else None
    starts = plan.limits.starts
    return [PartitionLedger(p, starts[p], starts[p], told=told) for p in plan.idle]


def _require_balance(manifest: Manifest) -> None:
    for ledger in manifest.ledgers:
        if not ledger.balances:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{ledger.unexplained} of the offsets {ledger.start} to {ledger.end} of "
                f"{manifest.topic}-{ledger.partition} are unexplained: {ledger}. Nothing was "
                "committed. Load again, where the leader has changed meanwhile; else look at the "
                "log with `ottla log ledger` and `ottla log dump`",
            )
