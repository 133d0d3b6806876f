"""Commits of a table that follows a topic. Only the table's positions are authoritative.

A Spark checkpoint or a planner only proposes how far to load. The table's positions are read before
each commit, so nothing is loaded twice or left out, whatever was proposed.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from ottla.lake.job.here import run_here
from ottla.lake.job.task import Runner
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import Boundary
from ottla.lake.source.boundaries import limits_of_load
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.source.ledgers import commit_positions
from ottla.lake.tables.commit import Steps
from ottla.lake.tables.table import LakeTable, committed_before, foundation, on_record
from ottla.lake.write.commit import (
    LoadPlan,
    LoadSettings,
    built_on,
    commit_plan,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.write.epochs import WriterEpoch
from ottla.lake.write.follow_end import FollowEnd

# How long brokers and leaders are retried before the follow reports that it waits for them.
_PATIENCE_S = 5.0
# Files of lost commits are looked for at the start, and then once in this many commits.
_SWEEP_COMMITS = 100


class FollowingWriter:
    """One writer of a table. Used from one thread at a time."""

    def __init__(
        self,
        table: LakeTable,
        topic: str,
        settings: LoadSettings,
        group: str | None,
        ending: FollowEnd,
        steps: Steps,
        on_step: Callable[[str], None],
    ) -> None:
        self.table = table
        self._topic = topic
        self._settings = settings
        self._group = group
        self._ending = ending
        self._steps = steps
        self._on_step = on_step
        self._epoch = WriterEpoch(table, topic, "`ottla lake follow`")
        self._commits = 0

    def take_over(self, start: Boundary, override: str | None = None) -> None:
        """Fence writers that started earlier, and give every partition a position.

        Partitions without a position get the one that `start` means. Raises OttlaError for problems
        of the table, unless there is a reason to `override` them.
        """
        self._epoch.take_over(
            self._settings.bootstrap, lambda cluster: self._pin(cluster, start, override)
        )

    def _pin(self, cluster: Cluster, start: Boundary, override: str | None) -> None:
        """Commit a position for each partition that has none, without loading records."""
        base = foundation(self.table) if override else None
        overridden = on_record(base.problems, override) if base and override else ()
        described, before, digest = built_on(self.table, cluster, self._topic, base)
        positions = before.positions if before else None
        limits = limits_of_load(cluster, described, start, Boundary("earliest"), positions)
        # Partitions with a position are left alone; they may have lost records.
        limits = replace(limits, ends=limits.starts, lost={})
        plan = plan_load(self._settings.bootstrap, described, before, digest, limits, overridden)
        if not plan.is_empty:
            # Columns are decided later, from the first records.
            self._commit(plan, replace(self._settings, decode=None))

    def positions(self) -> Mapping[int, int]:
        """Return the table's positions.

        Raises OttlaError if the topic no longer matches the table, and FencedWriter if another
        writer has taken the table over.
        """
        with closing(connect(self._settings.bootstrap, _PATIENCE_S)) as cluster:
            _, newest, _ = built_on(self.table, cluster, self._topic)
        self._epoch.require(newest)
        return self._at(newest)

    def _at(self, newest: Manifest | None) -> Mapping[int, int]:
        positions = newest.positions if newest else {}
        self._ending.at(positions)
        return positions

    def commit_to(self, ends: Mapping[int, int], run: Runner) -> Manifest | None:
        """Load from the table's positions to `ends`, up to the log's end, and commit that.

        Returns None if the table is there already. Raises LoadLost if another load has committed
        meanwhile, FencedWriter if this writer must stop.
        """
        settings = self._settings
        goal = self._ending.goal() or {}
        with closing(connect(settings.bootstrap, _PATIENCE_S)) as cluster:
            described, before, digest = built_on(self.table, cluster, self._topic)
            self._epoch.require(before)
            positions = self._at(before)
            wanted = {
                p: max(
                    min(ends.get(p, 0), goal.get(p, bound.end), bound.end),
                    positions.get(p, bound.log_start),
                )
                for p, bound in described.bounds.items()
            }
            limits = limits_of_load(
                cluster,
                described,
                Boundary("earliest"),
                Boundary("offsets", offsets=wanted),
                positions,
            )
            known = self._high_watermarks(cluster, before)
        plan = plan_load(
            settings.bootstrap, described, before, digest, limits, sizes=settings.sizes
        )
        plan = replace(plan, high_watermarks=known)
        require_no_planned_loss(plan, settings)
        self._on_step("planned")
        return None if plan.is_empty else self._commit(plan, settings, run)

    def _high_watermarks(self, cluster: Cluster, before: Manifest | None) -> Mapping[int, int]:
        """Return the high watermarks if idle partitions follow the clock, else nothing."""
        asked = self._settings.events.idle_ms
        kept = before.events.idle_ms if before and before.events else None
        return {} if asked is None and kept is None else cluster.high_watermarks(self._topic)

    def _commit(self, plan: LoadPlan, settings: LoadSettings, run: Runner = run_here) -> Manifest:
        manifest = commit_plan(self.table, plan, settings, run, self._steps, self._on_step)
        self._at(manifest)
        with committed_before(self.table.store.url, manifest.version):
            if self._group is not None:
                commit_positions(self._group, manifest, self._settings.bootstrap)
            if self._commits % _SWEEP_COMMITS == 0:
                self.table.remove_orphans()
        self._commits += 1
        return manifest
