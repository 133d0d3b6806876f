"""A writer of one changelog table, which applies new changes once or again and again.

A long-running writer takes the table over by a higher writer epoch. Of two such writers, the one
that started earlier notices this at its next commit, and stops.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.here import run_here
from ottla.lake.job.reduce_task import OnNullKey
from ottla.lake.job.spilled import remove_work
from ottla.lake.job.task import Runner
from ottla.lake.model.manifest import Changelog, Keeps, Manifest
from ottla.lake.model.plan import Boundary
from ottla.lake.source.boundaries import limits_of_load
from ottla.lake.source.cluster import connect
from ottla.lake.source.ledgers import commit_positions
from ottla.lake.tables.commit import Steps
from ottla.lake.tables.table import Foundation, LakeTable, committed_before, foundation, on_record
from ottla.lake.write.changelog_commit import ChangesPlan, commit_changes
from ottla.lake.write.changelog_kinds import kept_by
from ottla.lake.write.changelog_state import read_state_of, remove_hidden_orphans
from ottla.lake.write.commit import (
    LoadPlan,
    LoadSettings,
    built_on,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.write.epochs import WriterEpoch

# How often, in runs, a long-running writer looks for files of runs that were never committed.
_SWEEP_RUNS = 100


@dataclass(frozen=True, slots=True)
class ChangelogWishes:
    """The options of a run. What the table keeps was decided by its first run."""

    kind: Keeps | None = None
    buckets: int | None = None
    on_null_key: OnNullKey = "fail"
    group: str | None = None
    # Whether to read the log again from its start, to remove rows whose deletions were compacted.
    reconcile: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of one run: `manifest` is the newest, `is_new` whether this run made it."""

    manifest: Manifest | None
    is_new: bool
    removed: tuple[str, ...]  # Orphaned files of loads that were never committed.


class ChangelogWriter:
    """Applies changes to one table. Used from one thread at a time."""

    def __init__(
        self,
        table: LakeTable,
        topic: str,
        settings: LoadSettings,
        wishes: ChangelogWishes,
        steps: Steps,
        on_step: Callable[[str], None],
    ) -> None:
        self._table = table
        self._topic = topic
        self._settings = settings
        self._wishes = wishes
        self._steps = steps
        self._on_step = on_step
        self._epoch = WriterEpoch(
            table, topic, "long-running `ottla lake changelog`", is_changelog=True
        )
        self._runs = 0

    def apply(
        self,
        start: Boundary,
        end: Boundary,
        run: Runner,
        override: str | None = None,
    ) -> Applied:
        """Apply the new changes. Raises OttlaError (LoadLost, FencedWriter: nothing changes)."""
        table, settings = self._table, self._settings
        base = foundation(table) if override else None
        problems = base.problems if base else ()
        overridden = on_record(problems, override) if override else ()
        plan = self._plan(start, end, base, overridden)
        before = plan.before
        require_no_planned_loss(plan, settings)
        kept = kept_by(before, self._wishes.kind, self._wishes.buckets, plan, settings)
        self._on_step("planned")
        manifest = before
        again = self._again(plan, kept)
        is_new = bool(again) or not plan.is_empty
        if is_new:
            state = read_state_of(table, before, plan.before_digest, problems)
            whole = ChangesPlan(plan, kept, state, self._wishes.on_null_key, again)
            manifest = commit_changes(table, whole, settings, run, self._steps, self._on_step)
            with committed_before(table.store.url, manifest.version):
                remove_hidden_orphans(table, state, manifest)
                removed = self._follow_up(manifest)
        else:
            removed = self._follow_up(manifest)
        return Applied(manifest, is_new, tuple(removed))

    def _again(self, plan: LoadPlan, kept: Changelog) -> dict[int, int]:
        """Return the partitions to read again, and the offset to start from.

        Raises OttlaError if the table cannot be reconciled.
        """
        if not self._wishes.reconcile or plan.before is None:
            return {}
        if kept.keeps == "history" or any(one.dead_letters for one in self._table.history()):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                "a table that keeps the history of each key, or has dead letters, can't be "
                "reconciled: what it has can't be read from the log again. Make it anew in another "
                "folder",
            )
        bounds, positions = plan.described.bounds, plan.before.positions
        return {
            p: bound.log_start
            for p, bound in bounds.items()
            if bound.log_start < positions.get(p, 0)
        }

    def _follow_up(self, newest: Manifest | None) -> list[str]:
        """Commit the group's positions and remove orphaned files, whether or not the run committed.

        Returns the removed files' names.
        """
        table = self._table
        if self._wishes.group is not None and newest is not None:
            commit_positions(self._wishes.group, newest, self._settings.bootstrap)
        removed: list[str] = []
        if not self._epoch.is_taken or self._runs % _SWEEP_RUNS == 0:
            removed = table.remove_orphans()
            remove_work(table.store, table.running)
        self._runs += 1
        return removed

    def _plan(
        self, start: Boundary, end: Boundary, base: Foundation | None, overridden: tuple[str, ...]
    ) -> LoadPlan:
        bootstrap = self._settings.bootstrap
        with closing(connect(bootstrap)) as cluster:
            described, before, digest = built_on(
                self._table, cluster, self._topic, base, is_changelog=True
            )
            self._epoch.require(before)
            positions = before.positions if before else None
            limits = limits_of_load(cluster, described, start, end, positions)
            if end.kind == "earliest":
                # This run only sets positions. Ignore losses in partitions that have one: nothing
                # is read.
                limits = replace(limits, ends=limits.starts, lost={})
            return plan_load(bootstrap, described, before, digest, limits, overridden)

    def take_over(self, start: Boundary) -> None:
        """Fence long-running writers that started earlier.

        Partitions without a position get the one that `start` means.
        """
        earliest = Boundary("earliest")
        self._epoch.take_over(
            self._settings.bootstrap, lambda _cluster: self.apply(start, earliest, run_here)
        )
