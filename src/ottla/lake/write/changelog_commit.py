"""Turns a plan into a commit of a changelog table: read, reduce and merge changes, then commit."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from ottla.base.errors import OttlaError
from ottla.lake.job.held_values import require_holdable
from ottla.lake.job.merge_task import Merged, MergeTask
from ottla.lake.job.reduce_task import (
    OnNullKey,
    Reduced,
    ReduceTask,
)
from ottla.lake.job.spilled import path_stem, remove_work
from ottla.lake.job.task import Runner
from ottla.lake.model.chain import DATA_FOLDER, DEAD_LETTERS_FOLDER
from ottla.lake.model.decode_spec import Column, free_name
from ottla.lake.model.manifest import Changelog, DataFile, Manifest, TableSchema, next_manifest
from ottla.lake.model.plan import Range, SizedRange, ranges
from ottla.lake.model.types import plain
from ottla.lake.rows.changelog_columns import Columns, is_debezium, operation_of, require_fitting
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.changelog_state import TableState, hidden_stem
from ottla.lake.write.commit import (
    SCHEMAS_MAX,
    LoadPlan,
    LoadSettings,
    commit_checked,
    schemas_never_settle,
    settled_ledgers,
)
from ottla.lake.write.lost_deletions import require_no_lost_deletions
from ottla.lake.write.table_schema import LoadTyping, load_typing
from ottla.ledger.partition import PartitionLedger

# The most offsets that one task reads again.
_OFFSETS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """A load's plan, with the kind of changelog and the table's state before it."""

    load: LoadPlan
    changelog: Changelog
    state: TableState
    on_null_key: OnNullKey = "fail"
    # Partitions to read again up to their positions, and the offset to start from. Rows of the
    # state at or after that offset are dropped unless they are read again.
    again: Mapping[int, int] = field(default_factory=dict)

    @property
    def columns_before(self) -> TableSchema | None:
        return self.load.before.table_schema if self.load.before else None

    @property
    def ranges(self) -> list[SizedRange]:
        """Return the ranges to read: first the ones to read again, then the new ones."""
        load, before = self.load, self.load.before
        if before is None or not self.again:
            return list(load.ranges)
        ends = {partition: before.positions[partition] for partition in self.again}
        again = ranges(
            load.described.topic,
            self.again,
            ends,
            offsets_max=_OFFSETS_AT_ONCE,
            tasks_min=1,
            topic_id=load.described.topic_id,
        )
        return [*(SizedRange(one, one.end - one.start) for one in again), *load.ranges]

    def is_new(self, ledger: PartitionLedger) -> bool:
        """Return whether a ledger's range is above the table's position."""
        before = self.load.before
        position = before.positions.get(ledger.partition, 0) if before else 0
        return ledger.partition not in self.again or ledger.start >= position


def commit_changes(
    table: LakeTable,
    plan: ChangesPlan,
    settings: LoadSettings,
    run: Runner,
    steps: Steps,
    on_step: Callable[[str], None],
) -> Manifest:
    """Read the plan's ranges, apply their changes, commit. Return the new manifest.

    Raises OttlaError (LoadLost if another load committed meanwhile). Then nothing is committed, and
    the files that were written are removed.
    """
    load = plan.load
    steps.done.clear()
    with (
        table.running.mark(load.load_id),
        removed_on_failure(table, load.version, load.load_id, steps),
        _without_work(table, load.load_id),
    ):
        typing = _typing(plan, settings)
        reduced: list[Reduced] = []
        merged: list[Merged] = []
        if plan.ranges:
            reduced, typing = _reduced(table, plan, settings, typing, run)
            on_step("changes reduced")
            merged = _merged(table, plan, reduced, typing, run)
        on_step("files written")
        new = [one for one in reduced if plan.is_new(one.read.ledger)]
        ledgers, found = settled_ledgers(load, [one.read for one in new], settings)
        if not settings.accept_loss and not plan.again:
            require_no_lost_deletions(load, ledgers, settings.bootstrap)
        manifest = _manifest(plan, new, merged, ledgers, found, typing)
        commit_checked(table, load, settings, manifest)
    return manifest


@contextmanager
def _without_work(table: LakeTable, load_id: str) -> Iterator[None]:
    """Remove the load's temporary files of changes at the end, if the storage allows it."""
    try:
        yield
    finally:
        with suppress(OSError, OttlaError):
            remove_work(table.store, table.running, load_id)


def _typing(plan: ChangesPlan, settings: LoadSettings) -> LoadTyping | None:
    """Return how records are decoded; None if the table has only raw columns."""
    load = plan.load
    require_fitting(settings.decode, plan.columns_before, load.before is None)
    typing = load_typing(
        settings.decode,
        plan.columns_before,
        dead_timestamps=settings.dead_timestamps,
        starts=load.limits.starts,
        ranges=[sized.wanted for sized in plan.ranges],
        bootstrap=settings.bootstrap,
    )
    return with_operation(typing)


def _reduced(
    table: LakeTable,
    plan: ChangesPlan,
    settings: LoadSettings,
    typing: LoadTyping | None,
    run: Runner,
) -> tuple[list[Reduced], LoadTyping | None]:
    """Run the first stage, and again with more columns if records have fields without one."""
    for _ in range(SCHEMAS_MAX):
        found = sorted(
            run(_reduce_tasks(table, plan, settings, typing)),
            key=lambda one: (one.read.ledger.partition, one.path),
        )
        news = [
            (one.read.ledger.partition, new, offset)
            for one in found
            for new, offset in one.read.news
        ]
        if not news:
            return found, typing
        assert typing is not None, "only what decodes finds new fields"
        for one in found:
            for path in (one.path, *([one.read.dead.path] if one.read.dead else [])):
                table.store.remove(path)
        typing = typing.with_news(news)
    raise schemas_never_settle()


def _reduce_tasks(
    table: LakeTable, plan: ChangesPlan, settings: LoadSettings, typing: LoadTyping | None
) -> list[ReduceTask]:
    load = plan.load
    return [
        ReduceTask(
            wanted=sized.wanted,
            size_bytes=sized.size_bytes,
            bootstrap=settings.bootstrap,
            compacted=load.described.compacted or load.described.has_ledger,
            store=table.store,
            path=path_stem(load.load_id, sized.wanted.partition, sized.wanted.start),
            changelog=plan.changelog,
            on_null_key=plan.on_null_key,
            skip_unreadable=settings.skip_unreadable,
            null_bad_timestamps=settings.null_bad_timestamps,
            columns=Columns(typing.sorting if typing else None),
            dead_path=_dead_stem(table, load, sized.wanted),
        )
        for sized in plan.ranges
    ]


def _dead_stem(table: LakeTable, load: LoadPlan, wanted: Range) -> str:
    stem = table.file_stem(load.version, load.load_id, wanted.partition, wanted.start)
    return stem.replace(f"{DATA_FOLDER}/", f"{DEAD_LETTERS_FOLDER}/", 1)


def _merged(
    table: LakeTable,
    plan: ChangesPlan,
    reduced: Sequence[Reduced],
    typing: LoadTyping | None,
    run: Runner,
) -> list[Merged]:
    load, state = plan.load, plan.state
    columns = Columns(typing.sorting if typing else None)
    require_holdable(table.format, columns.schema)
    sizes: dict[int, int] = {}
    changes: dict[int, dict[str, list[int]]] = {}
    for one in reduced:
        for piece in one.pieces:
            sizes[piece.bucket] = sizes.get(piece.bucket, 0) + piece.size_bytes
            changes.setdefault(piece.bucket, {}).setdefault(one.path, []).append(piece.number)
    must_rewrite = plan.again or table.must_rewrite(columns.schema)
    for bucket in range(plan.changelog.buckets) if must_rewrite else ():
        changes.setdefault(bucket, {})
        sizes.setdefault(bucket, 0)
    for bucket in changes:
        of_state = (state.visible.get(bucket), state.hidden.get(bucket))
        sizes[bucket] += sum(file.size_bytes for file in of_state if file)
    tasks = [
        MergeTask(
            bucket=bucket,
            size_bytes=sizes[bucket],
            store=table.store,
            changes=tuple((path, tuple(numbers)) for path, numbers in by_path.items()),
            visible=state.visible.get(bucket),
            hidden=state.hidden.get(bucket),
            visible_path=table.file_stem(load.version, load.load_id, bucket, 0),
            hidden_path=hidden_stem(load.version, load.load_id, bucket),
            keeps=plan.changelog.keeps,
            columns=columns,
            of_other_columns=frozenset(
                path for path, number in state.schemas.items() if number != columns.number
            ),
            again=plan.again,
        )
        for bucket, by_path in sorted(changes.items())
    ]
    return run(tasks)


def _manifest(
    plan: ChangesPlan,
    reduced: Sequence[Reduced],
    merged: Sequence[Merged],
    ledgers: Sequence[PartitionLedger],
    found: Mapping[PartitionLedger, int],
    typing: LoadTyping | None,
) -> Manifest:
    """Return the manifest that replaces the old files of each changed bucket by the new ones."""
    load, state = plan.load, plan.state
    return next_manifest(
        load.before,
        load.before_digest,
        load_id=load.load_id,
        topic=load.described.topic,
        topic_id=load.described.topic_id,
        cluster_id=load.described.cluster_id,
        created_ms=time.time_ns() // 1_000_000,
        files=[file for one in merged for file in (one.visible, one.closed) if file],
        ledgers=ledgers,
        skipped=sorted(
            (skipped for one in reduced for skipped in one.read.skipped),
            key=lambda one: (one.partition, one.start),
        ),
        accepted_loss={ledger.partition: count for ledger, count in found.items()},
        kind="changelog",
        removed=_of_buckets(state.visible, merged),
        changelog=plan.changelog,
        hidden=[one.hidden for one in merged if one.hidden],
        removed_hidden=_of_buckets(state.hidden, merged),
        overridden=load.overridden,
        table_schema=typing.table_schema() if typing else None,
        schema_changes=typing.changes if typing else (),
        dead_letters=[one.read.dead for one in reduced if one.read.dead],
    )


def _of_buckets(files: Mapping[int, DataFile], merged: Sequence[Merged]) -> list[DataFile]:
    return [files[one.bucket] for one in merged if one.bucket in files]


def with_operation(typing: LoadTyping | None) -> LoadTyping | None:
    """Return the typing with a column of Debezium's operation, which marks deletions."""
    if typing is None or typing.sorting.decode.value is None:
        return typing
    decode, schema = typing.sorting.decode, typing.sorting.schema
    if not is_debezium(decode) or operation_of(decode, schema) is not None:
        return typing
    taken = {name.lower() for name in schema.names}
    column = Column(free_name("op", "value", taken), plain("string"), source=("op",))
    found = schema.with_columns("value", (column, *schema.value))
    return replace(typing, sorting=replace(typing.sorting, schema=found))
