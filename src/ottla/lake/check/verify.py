"""Derives the proof of a table again from its files and the topic, and reports differences.

files      exist, have the bytes, columns and rows that their manifest hashes, each offset once
manifests  form a chain, their ranges touch, their ledgers balance
topic      holds, for every offset still in its log, the very row that the lake holds

Manifests are read here; files and topic by jobs (`jobs`, `ranges`), in this process or as tasks of
Spark. Batches that could not be read when they were loaded are recorded in the manifests. They are
a problem only if they have become readable; any other batch is a problem if it is unreadable now.
"""

from collections.abc import Sequence
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.changelog import check_changelog
from ottla.lake.check.counts import more_than_counted
from ottla.lake.check.findings import CheckFindings
from ottla.lake.check.foreign_files import read_foreign, remaining
from ottla.lake.check.jobs import plan_jobs
from ottla.lake.check.log_bounds import LogBounds
from ottla.lake.check.ranges import CheckTask
from ottla.lake.check.report import Verification
from ottla.lake.check.table_state import TableAsRead, read_table
from ottla.lake.job.options import VerifyOptions
from ottla.lake.job.session import HERE
from ottla.lake.job.workers import Workers
from ottla.lake.model.layout import buckets_of_table, layout_of
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Range, require_same_topic
from ottla.lake.model.row_hash import hash_text
from ottla.lake.source.access import Bootstrap, brokers_of
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.source.ledgers import account_of, loss_explained, totals_of
from ottla.lake.store.retries import retried
from ottla.ledger.partition import PartitionLedger

# How often the table is read again because files expired while they were verified.
_TRIES = 5
_FAILED = "the table was not verified, since"


class FilesExpired(OttlaError):
    """Raised if files that the table had when it was read have expired since."""


def verify(target: str, *, bootstrap: str | None, **options: Unpack[VerifyOptions]) -> Verification:
    """Verify the table in `target`, and against its topic if `bootstrap` is given.

    Files are checked, and compared with the topic, in this process; or by tasks of Spark if
    `on_spark`, `spark_session`, `conf`, `name` or another `master` than `here` is given; or by
    `runner`. The report is the same. For a changelog table, tasks write temporary files into it,
    which are removed at the end. Differences are reported, not raised. Raises OttlaError if there
    is no table, if the cluster cannot be asked, or if files keep expiring before they are read.
    """
    given = filled(VerifyOptions, options)
    if not any(given[name] for name in ("on_spark", "master", "conf", "name", "spark_session")):
        given["master"] = HERE
    run = Workers(given, consequence=_FAILED)
    brokers = bootstrap and brokers_of(bootstrap, given["config"], given["client"])
    for attempt in retried(_TRIES, FilesExpired):
        with attempt:
            read = read_table(target, given["store_options"])
            if not read.manifests:
                return read.report
            expired = FilesExpired(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"{target} could not be verified: {_TRIES} times, files were removed and expired "
                "before they were read; let `ottla lake expire` keep more versions, or verify "
                "while it does not run",
            )
            try:
                report = _proven(read, brokers or None, run)
            except (OSError, OttlaError) as error:
                if not read.has_lost_files():
                    raise
                raise expired from error
            if report.problems and read.has_lost_files():
                raise expired
            return report
    raise AssertionError("the last attempt returns or raises")


def _proven(read: TableAsRead, bootstrap: Bootstrap | None, run: Workers) -> Verification:
    """Return the report with the findings in files and topic."""
    table, report, manifests, live = read.table, read.report, read.manifests, read.live
    agreement = read.agreement
    newest = manifests[-1]
    bounds = LogBounds(table.format.capitalize(), agreement.bounds)
    report.topic = newest.topic
    total = 0
    cluster = connect(bootstrap) if bootstrap else None
    try:
        described = cluster.describe(newest.topic) if cluster else None
        if cluster is not None and described is not None:
            with loss_explained(cluster, described, newest):
                require_same_topic(
                    newest.topic,
                    newest.topic_id,
                    described.topic_id,
                    newest.positions,
                    described.bounds,
                )
        if newest.changelog is not None:
            found, read_again = check_changelog(
                table, manifests, live, cluster, described, bootstrap, run, bounds
            )
        else:
            live = remaining(live, agreement.others)
            foreign = read_foreign(
                table.store,
                agreement.others,
                newest.topic,
                layout_of(newest.table_schema),
                buckets_of_table(newest),
            )
            report.replaced += foreign.replaced
            report.problems += foreign.problems
            report.rows, total = foreign.rows, foreign.hash
            jobs = plan_jobs(
                table.store,
                manifests,
                live,
                foreign.files,
                bootstrap=bootstrap,
                described=described,
                bounds=bounds,
            )
            found = run([CheckTask(job) for job in jobs])
            read_again = [
                PartitionLedger(one.partition, 0, 0, control=one.control, aborted=one.aborted)
                for one in found
            ]
        total += _merge(found, report)
        report.problems += more_than_counted(report.topic, report.ledgers, read_again)
        if cluster is not None and described is not None and described.has_ledger:
            _ask_ledger(cluster, report)
        report.hash = hash_text(total)
    finally:
        if cluster is not None:
            cluster.close()
    if report.hash != newest.total_hash or report.rows != newest.total_rows:
        report.problems.append(
            f"the table holds {report.rows} rows with hash {report.hash}; its newest manifest "
            f"says {newest.total_rows} rows with hash {newest.total_hash}"
        )
    return report


def _merge(findings: Sequence[CheckFindings], report: Verification) -> int:
    """Add the jobs' findings to the report; return the hash of all their rows."""
    for found in findings:
        report.rows += found.rows
        report.dead_letters += found.dead_letters
        report.compared += found.compared
        report.only_in_lake += found.only_in_lake
    report.problems += [problem for found in findings for problem in found.of_dead_letters]
    report.problems += [problem for found in findings for problem in found.of_files]
    report.problems += [problem for found in findings for problem in found.of_topic]
    report.problems += [problem for found in findings for problem in found.of_typed]
    return sum(found.hash for found in findings)


def _ask_ledger(cluster: Cluster, report: Verification) -> None:
    """Ask the brokers' ledger about all that was loaded, as far as the ledger goes."""
    for partition, ledger in report.ledgers.items():
        account = account_of(cluster, Range(report.topic, partition, ledger.start, ledger.end))
        if account is None:
            if not ledger.unreadable:
                report.problems.append(
                    f"{report.topic}-{partition}: the broker cannot walk its log, which is "
                    "damaged; `ottla log dump` tells where"
                )
            continue
        report.told[partition] = totals_of(account)
        if account.unexplained:
            report.problems.append(
                f"{report.topic}-{partition}: the broker cannot explain {account.unexplained} of "
                f"the offsets {ledger.start} to {ledger.end}; `ottla log ledger` tells more"
            )
