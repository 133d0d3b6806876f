"""A writer of one changelog table: applies what is new, once or again and again.

A long-running writer takes the table over by a higher writer epoch: of two, the one that was
started earlier finds that at its next commit, and stops.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.changelogs.committing import ChangesPlan, commit_changes
from ottla.lake.changelogs.kinds import kept_by
from ottla.lake.changelogs.reducing import OnNullKey
from ottla.lake.changelogs.spilled import remove_work
from ottla.lake.changelogs.state import read_state_of, remove_hidden_orphans
from ottla.lake.cluster import connect
from ottla.lake.folder.after_commit import committed_before
from ottla.lake.folder.leftovers import Steps
from ottla.lake.job.here import run_here
from ottla.lake.job.task import Runner
from ottla.lake.loads.boundaries import limits_of_load
from ottla.lake.loads.committing import (
    LoadPlan,
    LoadSettings,
    built_on,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.loads.epochs import WriterEpoch
from ottla.lake.manifest import Changelog, Keeps, Manifest
from ottla.lake.plan import Boundary
from ottla.lake.tables.overriding import Foundation, foundation, on_record
from ottla.lake.tables.table import LakeTable
from ottla.lake.telling import commit_positions

# A long-running writer looks for files of runs that never counted once in so many runs.
_SWEEP_RUNS = 100


@dataclass(frozen=True, slots=True)
class ChangelogWishes:
    """What a run asks for. What the table keeps is decided by its first run."""

    kind: Keeps | None = None
    buckets: int | None = None
    on_null_key: OnNullKey = "fail"
    group: str | None = None
    # Whether the log is read again from its start, so that rows go whose deletions are gone.
    reconcile: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What one run did: `manifest` is the table's newest, `is_new` whether the run made it."""

    manifest: Manifest | None
    is_new: bool
    removed: tuple[str, ...]  # Orphans of loads that never counted.


class ChangelogWriter:
    """Used from one thread at a time."""

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
        """Apply what is new. Raises OttlaError (LoadLost, FencedWriter; nothing is changed)."""
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
        """Partitions to read again, and from where. Raises OttlaError for tables that can't be."""
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
        """What comes after a commit, or in place of one; the names of files that were removed."""
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
                # To pin positions: those that have one may have lost records, which is not read.
                limits = replace(limits, ends=limits.starts, lost={})
            return plan_load(bootstrap, described, before, digest, limits, overridden)

    def take_over(self, start: Boundary) -> None:
        """Fence long-running writers that were started before.

        `start` is where partitions start that have no position yet: each has one afterwards.
        """
        earliest = Boundary("earliest")
        self._epoch.take_over(
            self._settings.bootstrap, lambda _cluster: self.apply(start, earliest, run_here)
        )
