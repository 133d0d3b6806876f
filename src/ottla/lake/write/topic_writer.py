"""Writes one topic into one table, and advances the table's positions with each commit."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.options import WriterOptions
from ottla.lake.job.task import TaskResult, explained_ledgers
from ottla.lake.model.manifest import Kind, Manifest, next_manifest
from ottla.lake.model.plan import Boundary, SizedRange, losses, require_no_loss
from ottla.lake.source.boundaries import limits_of_load, require_boundaries
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.source.ledgers import commit_positions
from ottla.lake.tables.table import CommitConflict, WriterFenced, committed_before
from ottla.lake.write.engine import Engine, opened
from ottla.lake.write.load_plan import Base, LoadPlan, built_on, plan_load
from ottla.lake.write.settings import ACCEPT_LOSS, LoadSettings
from ottla.lake.write.table_schema import LoadTyping, load_typing, require_holdable
from ottla.ledger.partition import LedgerTotals, PartitionLedger

# How often a writer tries its first commit while others commit.
_TAKE_OVER_TRIES = 100
# A writer removes files of lost commits at its first run, and then every this many runs.
_SWEEP_RUNS = 100
_LOSS = (
    f"Nothing was committed. Go on without them: {ACCEPT_LOSS} puts their number on record. "
    "Retention waits for loads that commit to a group (--group), where the topic's "
    "ottla.retention.hold.groups names it"
)


class TopicWriter(Engine):
    """Writes a topic into a table, from the table's positions on, in one commit or in many.

    A long-running writer takes the table over by raising its writer epoch. A writer that started
    earlier is then fenced at its next commit, and stops.
    """

    def __init__(
        self,
        engine: Engine,
        topic: str,
        settings: LoadSettings,
        reduce: "Reducer",
        *,
        group: str | None = None,
        kind: Kind = "load",
    ) -> None:
        """Set up a writer whose plans are carried out by `reduce`.

        After each commit, positions are committed for `group`.
        """
        super().__init__(engine.table, engine.run, engine.steps)
        self.topic = topic
        self.settings = settings
        self._reduce = reduce
        self._group = group
        self._kind: Kind = kind
        self._epoch: int | None = None
        self._runs = 0

    def base(self, cluster: Cluster, override: str | None = None) -> Base:
        """Return the topic, and the commit to build on.

        Raises OttlaError as `built_on` does, WriterFenced if a later writer took the table over.
        """
        is_changelog = self._kind == "changelog"
        found = built_on(self.table, cluster, self.topic, override, is_changelog=is_changelog)
        newest = found.before
        if self._epoch is not None and newest is not None and newest.writer_epoch != self._epoch:
            program = "changelog --every" if is_changelog else "follow"
            raise WriterFenced(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a writer with epoch {newest.writer_epoch} has taken {self.table.store.url} over "
                f"from this one, which has epoch {self._epoch} and stops: see that only one "
                f"`ottla lake {program}` is started for a table",
            )
        return found

    def plan(self, cluster: Cluster, base: Base, start: Boundary, end: Boundary) -> LoadPlan:
        """Plan a load from the table's positions to `end`; new partitions begin at `start`.

        Raises OttlaError if a loss is known before reading and is not accepted.
        """
        settings = self.settings
        limits = limits_of_load(cluster, base.described, start, end, base.positions)
        if not settings.takes_loss:
            require_no_loss(self.topic, limits.lost, _LOSS)
        return plan_load(settings.bootstrap, base, limits, self._kind, settings.sizes)

    def run_plan(
        self,
        plan: LoadPlan,
        settings: LoadSettings | None = None,
        reduce: "Reducer | None" = None,
    ) -> Manifest:
        """Run the plan's tasks and commit what they wrote. Return the new manifest.

        Raises OttlaError (CommitConflict if another load committed meanwhile). Then nothing is
        committed, and the files that were written are removed.
        """
        with self.writing(plan.version, plan.load_id):
            return (reduce or self._reduce)(self, plan, settings or self.settings)

    def typing(
        self, plan: LoadPlan, settings: LoadSettings, sized: Sequence[SizedRange]
    ) -> LoadTyping | None:
        """Return how records are decoded; None if the table has only raw columns."""
        typing = load_typing(
            settings.decode,
            plan.before.table_schema if plan.before else None,
            dead_timestamps=settings.dead_timestamps,
            starts=plan.limits.starts,
            ranges=[one.wanted for one in sized],
            bootstrap=plan.bootstrap,
        )
        if typing is not None:
            require_holdable(self.table.format, typing.sorting.schema.fields)
        return typing

    def outcome(
        self,
        plan: LoadPlan,
        results: Sequence[TaskResult],
        settings: LoadSettings,
        typing: LoadTyping | None,
    ) -> tuple[list[PartitionLedger], "partial[Manifest]"]:
        """Combine the results of tasks: return the ledgers of partitions, and a manifest builder.

        The builder still needs the files and the commit to build on. Raises OttlaError for a loss
        that is not accepted.
        """
        ledgers = explained_ledgers(results, plan.described, plan.bootstrap)
        ledgers += _idle_ledgers(plan)
        ledgers.sort(key=lambda one: one.partition)
        found = losses(ledgers, plan.limits.gone_below)
        if not settings.takes_loss:
            require_no_loss(self.topic, found, _LOSS)
        skipped = [one for result in results for one in result.skipped]
        dead = [result.dead for result in results if result.dead]
        build = partial(
            next_manifest,
            load_id=plan.load_id,
            topic=plan.described.topic,
            topic_id=plan.described.topic_id,
            cluster_id=plan.described.cluster_id,
            created_ms=time.time_ns() // 1_000_000,
            ledgers=ledgers,
            skipped=sorted(skipped, key=lambda one: (one.partition, one.start)),
            accepted_loss={ledger.partition: count for ledger, count in found.items()},
            kind=plan.kind,
            overridden=plan.overridden,
            table_schema=typing.table_schema() if typing else None,
            schema_changes=typing.changes if typing else (),
            dead_letters=sorted(dead, key=lambda file: (file.partition, file.start)),
        )
        return ledgers, build

    def follow_up(self, newest: Manifest | None, *, is_new: bool) -> tuple[str, ...]:
        """Commit the group's offsets, and remove files of lost commits.

        `newest` is the table's newest commit; `is_new` says that this run made it. It is called
        without a new commit too, in case an earlier run was killed before this. Returns the names
        of the removed files.
        """
        removed: list[str] = []
        place = self.table.store.url
        with committed_before(place, newest.version) if newest and is_new else nullcontext():
            if self._group is not None and newest is not None:
                commit_positions(self._group, newest, self.settings.bootstrap)
            if self._runs % _SWEEP_RUNS == 0:
                removed = self.table.remove_orphans()
            self._runs += 1
        return tuple(removed)

    def take_over(
        self, start: Boundary, settings: LoadSettings, override: str | None = None
    ) -> None:
        """Fence writers that started earlier, and give every partition a position.

        A partition without a position gets the offset of the boundary `start`. Raises OttlaError
        if other writers keep committing, or for problems of the table as `built_on` does.
        """
        for _ in range(_TAKE_OVER_TRIES):
            with (
                suppress(CommitConflict, WriterFenced),
                closing(connect(settings.bootstrap)) as cluster,
            ):
                self._pin(cluster, start, settings, override)
                self._raise_epoch(cluster)
                return
        raise OttlaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"other writers commit to {self.table.store.url} all the time: stop them first",
        )

    def _pin(
        self, cluster: Cluster, start: Boundary, settings: LoadSettings, override: str | None
    ) -> None:
        """Commit a position for each partition that has none, without reading records."""
        base = self.base(cluster, override)
        earliest = Boundary("earliest")
        limits = limits_of_load(cluster, base.described, start, earliest, base.positions)
        # Partitions that have a position do not move, even if the log has lost records there.
        limits = replace(limits, ends=limits.starts, lost={})
        plan = plan_load(settings.bootstrap, base, limits, self._kind)
        if not plan.is_empty:
            self.follow_up(self.run_plan(plan, settings), is_new=True)

    def _raise_epoch(self, cluster: Cluster) -> None:
        base = self.base(cluster)
        manifest = next_manifest(
            base.before,
            base.digest,
            load_id=uuid.uuid4().hex,
            topic=self.topic,
            topic_id=base.described.topic_id,
            cluster_id=base.described.cluster_id,
            created_ms=time.time_ns() // 1_000_000,
            files=(),
            ledgers=(),
            kind="epoch",
        )
        self.table.commit(manifest)
        self._epoch = manifest.writer_epoch


# Runs the tasks of a plan and commits their outcome.
Reducer = Callable[[TopicWriter, LoadPlan, LoadSettings], Manifest]


@contextmanager
def opened_for(
    topic: str,
    target: str,
    given: WriterOptions,
    settings: LoadSettings,
    reduce: Reducer,
    boundaries: Sequence[Boundary],
    *,
    kind: Kind = "load",
    into_existing: bool = False,
) -> Iterator[TopicWriter]:
    """Open or create the table in `target`, and yield a writer of `topic`.

    The topic and `boundaries` are checked first, so that a mistake in them creates no empty table.
    """

    def check() -> None:
        with closing(connect(settings.bootstrap)) as cluster:
            require_boundaries(cluster, cluster.describe(topic), *boundaries)

    with opened(
        target, given, wanted=given["format"], into_existing=into_existing, check=check
    ) as engine:
        yield TopicWriter(
            engine,
            topic,
            settings,
            reduce,
            group=given["group"],
            kind=kind,
        )


def _idle_ledgers(plan: LoadPlan) -> list[PartitionLedger]:
    """Return empty ledgers for idle partitions, so that the manifest has their positions."""
    reported = LedgerTotals(0, 0, 0, 0, 0, 0, 0) if plan.described.has_ledger else None
    starts = plan.limits.starts
    return [PartitionLedger(p, starts[p], starts[p], reported=reported) for p in plan.idle]
