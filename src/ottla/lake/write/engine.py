"""The engine of the lake: runs the tasks of a plan, and makes every commit to a table.

    plan → tasks → outcome → manifest → commit on the newest commit → group, orphans, dead letters

`load`, `follow`, `changelog`, `replace` and `compact` decide what to read and to write. The engine
opens the table, reads ranges until the columns fit, removes the files of a plan that fails, checks
that manifest and files agree, and commits on top of concurrent commits. `TopicWriter` extends it
for commits that advance the table's positions in its topic.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.options import RunOptions
from ottla.lake.job.task import Task, TaskResult
from ottla.lake.job.workers import Workers
from ottla.lake.model.chain import of_files
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import require_same_id
from ottla.lake.source.cluster import connect
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.file_check import require_files
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table, open_table, place_of
from ottla.lake.tables.table import CommitConflict, LakeTable, WriterFenced, committed_before
from ottla.lake.write.load_plan import LoadPlan
from ottla.lake.write.table_schema import LoadTyping, require_holdable
from ottla.ledger.partition import PartitionLedger

# Builds the next manifest from the manifest of the newest commit and its digest.
Build = Callable[[Manifest | None, str | None], Manifest]
Result = TypeVar("Result", bound=TaskResult)

# How often a commit is tried while others commit.
_TRIES = 100
# Kinds of commits that move no position. A load that has read its records may still commit on top.
_UPKEEP = frozenset({"compaction", "replacement"})
# How often a plan starts again because its records have fields without a column.
_SCHEMAS_MAX = 5


class Engine:
    """Writes to one table for one call: runs tasks, and commits the files that they wrote."""

    def __init__(self, table: LakeTable, run: Workers, steps: Steps) -> None:
        self.table = table
        self.run = run
        self.steps = steps

    @contextmanager
    def writing(self, version: int, load_id: str) -> Iterator[None]:
        """Mark the load as running, and remove its files if it fails before its commit.

        Completed steps are reset on entry and exit, as a load may contain another one.
        """
        self.steps.done.clear()
        try:
            with (
                self.table.running.mark(load_id),
                removed_on_failure(self.table, version, load_id, self.steps),
            ):
                yield
        finally:
            self.steps.done.clear()

    def read(
        self,
        tasks: Callable[[LoadTyping | None], Sequence[Task[Result]]],
        typing: LoadTyping | None,
    ) -> tuple[list[Result], LoadTyping | None]:
        """Run tasks, and run them again with more columns if records have fields without one."""
        for _ in range(_SCHEMAS_MAX):
            results = self.run(tasks(typing))
            news = [(r.ledger.partition, new, offset) for r in results for new, offset in r.news]
            if not news:
                return results, typing
            assert typing is not None, "only what decodes finds new fields"
            for file in (file for result in results for file in result.written):
                self.table.store.remove(file.path)
            typing = typing.with_news(news)
            require_holdable(self.table.format, typing.sorting.schema.fields)
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the records show other fields each time they are read, {_SCHEMAS_MAX} times; nothing "
            "was committed: declare the columns (--columns), or leave new fields out (rules.add = "
            "ignore)",
        )

    def commit(self, build: Build, plan: LoadPlan | None = None) -> Manifest:
        """Build a manifest on top of the newest commit, commit it, and return it.

        If another commit comes first, `build` is called again on top of that one, and may raise
        CommitConflict. With a `plan`, this is done only if all commits since the plan are
        compactions or replacements with the same columns, so that the plan's offsets are still the
        next ones. Raises CommitConflict or WriterFenced otherwise.
        """
        table = self.table
        before, digest = (plan.before, plan.digest) if plan else table.latest()
        for tried in range(1, _TRIES + 1):
            manifest = build(before, digest)
            self.require_sound(manifest, plan if tried == 1 else None)
            try:
                table.commit(manifest)
            except (CommitConflict, WriterFenced) as lost:
                if tried == _TRIES:
                    raise
                before, digest = table.latest()
                if plan is not None and not self._is_still_next(plan, before):
                    raise lost from None
                continue
            return manifest
        raise AssertionError("each try returns or raises")

    def _is_still_next(self, plan: LoadPlan, newest: Manifest | None) -> bool:
        """Return whether commits since the plan's base moved no position and changed no column."""
        before = plan.before
        if before is None or newest is None or plan.overridden:
            return False
        # Read after the newest manifest, so that every manifest up to it is checked.
        since = [one for one in self.table.history() if one.version > before.version]
        known = (before.table_schema, before.positions)
        return (
            bool(since)
            and all(one.kind in _UPKEEP for one in since)
            and (newest.table_schema, newest.positions) == known
        )

    def require_sound(self, manifest: Manifest, plan: LoadPlan | None = None) -> None:
        """Raise OttlaError unless all ledgers balance and the manifest's files exist as written.

        With a `plan`, also check that the topic still has the id that the plan was made for.
        """
        for ledger in manifest.ledgers:
            if not ledger.balances:
                raise _unbalanced(manifest.topic, ledger)
        require_files(self.table.store, (*manifest.files, *manifest.hidden, *manifest.dead_letters))
        for problem in of_files(manifest):
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"nothing was committed to {self.table.store.url}: {problem}",
            )
        if plan is not None:
            # Check the id after reading: ids are never reused, so all records are of this topic.
            with closing(connect(plan.bootstrap)) as cluster:
                topic, topic_id = plan.described.topic, plan.described.topic_id
                require_same_id(topic, topic_id, cluster.topic_id(topic))

    def remove_orphans_after(self, manifest: Manifest) -> None:
        """Remove files of lost commits. An error says that this manifest was committed."""
        with committed_before(self.table.store.url, manifest.version):
            self.table.remove_orphans()


@contextmanager
def opened(
    target: str,
    given: RunOptions,
    *,
    wanted: Format | None = None,
    must_exist: bool = False,
    into_existing: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Engine]:
    """Open the table in `target`, and yield an engine that writes to it.

    With `must_exist`, a missing table is an error. `check` is called before a table is created.
    """
    watch, store_options = given["watch"], given["store_options"]
    run, steps = Workers(given, watch), Steps(watch.on_step)
    with as_storage_error(place_of(target, store_options)):
        check()
        if must_exist:
            existing_table(target, store_options)
        table = open_table(
            target, wanted, store_options, steps.reached, into_existing=into_existing
        )
        yield Engine(table, run, steps)


def _unbalanced(topic: str, ledger: PartitionLedger) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{ledger.unexplained} of the offsets {ledger.start} to {ledger.end} of "
        f"{topic}-{ledger.partition} are unexplained: {ledger}. Nothing was committed. Load again, "
        "where the leader has changed meanwhile; else look at the log with `ottla log ledger` and "
        "`ottla log dump`",
    )
