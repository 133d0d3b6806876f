"""Plans the tasks of a changelog run, which read, reduce and merge, and builds its manifest."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.merge_task import Merged, MergeTask
from ottla.lake.job.options import ChangelogOptions
from ottla.lake.job.reduce_task import Reduced, ReduceTask
from ottla.lake.job.spilled import path_stem, remove_work
from ottla.lake.model.chain import letters_path
from ottla.lake.model.decode_spec import Column, free_name
from ottla.lake.model.manifest import Changelog, DataFile, Manifest
from ottla.lake.model.plan import SizedRange, ranges
from ottla.lake.model.types import plain
from ottla.lake.rows.changelog_columns import Columns, is_debezium, operation_of, require_fitting
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.changelog_state import TableState, hidden_stem
from ottla.lake.write.load_plan import OFFSETS_PER_TASK, LoadPlan
from ottla.lake.write.lost_deletions import require_no_lost_deletions
from ottla.lake.write.settings import LoadSettings
from ottla.lake.write.table_schema import LoadTyping, require_holdable
from ottla.lake.write.topic_writer import TopicWriter

# A new table gets one bucket for about this many bytes of the log that its first run reads.
_BUCKET_BYTES = 64 << 20
_BUCKETS_LEAST, _BUCKETS_MOST = 8, 1024


def kept_by(given: ChangelogOptions, plan: LoadPlan, settings: LoadSettings) -> Changelog:
    """Return the table's kind and number of buckets, which its first run decided.

    Raises OttlaError if `given` asks for others.
    """
    kept = _known_or_new(given, plan)
    if kept.keeps == "history" and (settings.null_bad_timestamps or settings.dead_timestamps):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a history needs the time of each record: it can't take records whose timestamp does "
            "not fit (on_bad_timestamp is fail)",
        )
    return kept


def _known_or_new(given: ChangelogOptions, plan: LoadPlan) -> Changelog:
    before, kind, buckets = plan.before, given["kind"], given["buckets"]
    if before is None or before.changelog is None:
        if buckets is not None and not 0 < buckets <= _BUCKETS_MOST:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a table has 1 to {_BUCKETS_MOST} buckets, not {buckets}",
            )
        return Changelog(kind or "latest", buckets or _buckets_for(plan))
    known = before.changelog
    if kind not in (None, known.keeps) or buckets not in (None, known.buckets):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"this table keeps the {known.keeps} of each key, in {known.buckets} buckets; make "
            "another one in a folder of its own",
        )
    return known


def _buckets_for(plan: LoadPlan) -> int:
    log_bytes = sum(sized.size_bytes for sized in plan.ranges)
    return min(_BUCKETS_MOST, max(_BUCKETS_LEAST, -(-log_bytes // _BUCKET_BYTES)))


def partitions_again(
    given: ChangelogOptions, table: LakeTable, plan: LoadPlan, kept: Changelog
) -> dict[int, int]:
    """Return the partitions that a reconciling run reads again, with the offset to start from.

    Raises OttlaError if the table cannot be reconciled.
    """
    if not given["reconcile"] or plan.before is None:
        return {}
    if kept.keeps == "history" or any(one.dead_letters for one in table.history()):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a table that keeps the history of each key, or has dead letters, can't be reconciled: "
            "what it has can't be read from the log again. Make it anew in another folder",
        )
    bounds, positions = plan.described.bounds, plan.before.positions
    return {
        p: bound.log_start for p, bound in bounds.items() if bound.log_start < positions.get(p, 0)
    }


@dataclass(frozen=True, slots=True)
class Changes:
    """The part of a run's plan that is not in its `LoadPlan`.

    `kept` is the table's kind and number of buckets, `state` its files before the run.
    """

    given: ChangelogOptions
    kept: Changelog
    state: TableState = field(default_factory=TableState)
    # Partitions to read again up to their positions, with the offset to start from. Rows of the
    # state from that offset on are dropped unless they are read again.
    again: Mapping[int, int] = field(default_factory=dict)

    def ranges(self, load: LoadPlan) -> list[SizedRange]:
        """Return the offset ranges to read: first those read again, then the new ones."""
        if not self.again:
            return list(load.ranges)
        positions = load.positions or {}
        again = ranges(
            load.described.topic,
            self.again,
            {partition: positions[partition] for partition in self.again},
            offsets_max=OFFSETS_PER_TASK,
            topic_id=load.described.topic_id,
        )
        return [*(SizedRange(one, one.end - one.start) for one in again), *load.ranges]


def positions_pinned(
    given: ChangelogOptions, writer: TopicWriter, plan: LoadPlan, settings: LoadSettings
) -> Manifest:
    """Commit the start positions of new partitions, with a plan that reads no records."""
    return changes_applied(Changes(given, kept_by(given, plan, settings)), writer, plan, settings)


def changes_applied(
    changes: Changes, writer: TopicWriter, plan: LoadPlan, settings: LoadSettings
) -> Manifest:
    """Read the plan's ranges, merge the changes into their buckets, and commit.

    Returns the manifest of the commit.
    """
    table, before, state = writer.table, plan.before, changes.state
    require_fitting(settings.decode, before.table_schema if before else None, before is None)
    sized = changes.ranges(plan)
    with _without_work(table, plan.load_id):
        typing = _with_operation(writer.typing(plan, settings, sized))
        reduced: list[Reduced] = []
        merged: list[Merged] = []
        if sized:
            tasks = partial(_reduce_tasks, changes, table, plan, settings, sized)
            reduced, typing = writer.read(tasks, typing)
            reduced.sort(key=lambda one: (one.ledger.partition, one.path))
            writer.steps.reached("changes reduced")
            merged = writer.run(_merge_tasks(changes, table, plan, reduced, typing))
        writer.steps.reached("files written")
        positions = plan.positions or {}
        new = [
            one
            for one in reduced
            if one.ledger.partition not in changes.again
            or one.ledger.start >= positions[one.ledger.partition]
        ]
        ledgers, build = writer.outcome(plan, new, settings, typing)
        if not settings.takes_loss and not changes.again:
            require_no_lost_deletions(plan, ledgers, settings.bootstrap)
        # The new files of each changed bucket replace the old ones.
        build = partial(
            build,
            changelog=changes.kept,
            files=[file for one in merged for file in (one.visible, one.closed) if file],
            removed=_of_buckets(state.visible, merged),
            hidden=[one.hidden for one in merged if one.hidden],
            removed_hidden=_of_buckets(state.hidden, merged),
        )
        return writer.commit(build, plan)


def _of_buckets(files: Mapping[int, DataFile], merged: Sequence[Merged]) -> list[DataFile]:
    return [files[one.bucket] for one in merged if one.bucket in files]


@contextmanager
def _without_work(table: LakeTable, load_id: str) -> Iterator[None]:
    """On exit, remove the load's temporary files of changes. Storage errors are ignored."""
    try:
        yield
    finally:
        with suppress(OSError, OttlaError):
            remove_work(table.store, table.running, load_id)


def _reduce_tasks(
    changes: Changes,
    table: LakeTable,
    load: LoadPlan,
    settings: LoadSettings,
    sized: Sequence[SizedRange],
    typing: LoadTyping | None,
) -> list[ReduceTask]:
    return [
        ReduceTask(
            wanted=one.wanted,
            size_bytes=one.size_bytes,
            bootstrap=settings.bootstrap,
            compacted=load.described.compacted or load.described.has_ledger,
            store=table.store,
            path=path_stem(load.load_id, one.wanted.partition, one.wanted.start),
            changelog=changes.kept,
            on_null_key=changes.given["on_null_key"],
            skip_unreadable=settings.skip_unreadable,
            null_bad_timestamps=settings.null_bad_timestamps or settings.dead_timestamps,
            columns=Columns(typing.sorting if typing else None),
            dead_path=letters_path(
                table.file_stem(load.version, load.load_id, one.wanted.partition, one.wanted.start)
            ),
        )
        for one in sized
    ]


def _merge_tasks(
    changes: Changes,
    table: LakeTable,
    load: LoadPlan,
    reduced: Sequence[Reduced],
    typing: LoadTyping | None,
) -> list[MergeTask]:
    state = changes.state
    columns = Columns(typing.sorting if typing else None)
    require_holdable(table.format, columns.schema)
    sizes: dict[int, int] = {}
    pieces: dict[int, dict[str, list[int]]] = {}
    for one in reduced:
        for piece in one.pieces:
            sizes[piece.bucket] = sizes.get(piece.bucket, 0) + piece.size_bytes
            pieces.setdefault(piece.bucket, {}).setdefault(one.path, []).append(piece.number)
    must_rewrite = changes.again or table.must_rewrite(columns.schema)
    for bucket in range(changes.kept.buckets) if must_rewrite else ():
        pieces.setdefault(bucket, {})
        sizes.setdefault(bucket, 0)
    for bucket in pieces:
        of_state = (state.visible.get(bucket), state.hidden.get(bucket))
        sizes[bucket] += sum(file.size_bytes for file in of_state if file)
    return [
        MergeTask(
            bucket=bucket,
            size_bytes=sizes[bucket],
            store=table.store,
            changes=tuple((path, tuple(numbers)) for path, numbers in by_path.items()),
            visible=state.visible.get(bucket),
            hidden=state.hidden.get(bucket),
            visible_path=table.file_stem(load.version, load.load_id, bucket, 0),
            hidden_path=hidden_stem(load.version, load.load_id, bucket),
            keeps=changes.kept.keeps,
            columns=columns,
            of_other_columns=frozenset(
                path for path, number in state.schemas.items() if number != columns.number
            ),
            again=changes.again,
        )
        for bucket, by_path in sorted(pieces.items())
    ]


def _with_operation(typing: LoadTyping | None) -> LoadTyping | None:
    """Return the typing with a column for Debezium's operation, which marks deletions."""
    if typing is None or typing.sorting.decode.value is None:
        return typing
    decode, schema = typing.sorting.decode, typing.sorting.schema
    if not is_debezium(decode) or operation_of(decode, schema) is not None:
        return typing
    taken = {name.lower() for name in schema.names}
    column = Column(free_name("op", "value", taken), plain("string"), source=("op",))
    found = schema.with_columns("value", (column, *schema.value))
    return replace(typing, sorting=replace(typing.sorting, schema=found))
