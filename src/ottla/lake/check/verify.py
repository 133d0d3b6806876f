"""Verifies a table: compares its files, manifests and topic, and reports differences.

files      exist, have the bytes, columns and rows that their manifest hashes, each offset once
manifests  form a chain, their ranges touch, their ledgers balance
topic      holds, for every offset still in its log, the very row that the lake holds

Manifests are read here. Files and topic are read by the tasks of `ranges` or `buckets`, in this
process or on Spark. If a load could not read a batch, its manifest records that. Such a batch is a
problem only if it has become readable; any other batch is a problem if it is unreadable now.
"""

from contextlib import closing, nullcontext
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.changelog import check_changelog
from ottla.lake.check.ranges import check_ranges
from ottla.lake.check.report import Verification, add_findings
from ottla.lake.check.table_state import ComparedTopic, TableAsRead, read_table
from ottla.lake.job.options import VerifyOptions
from ottla.lake.job.session import HERE
from ottla.lake.job.workers import Workers
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Range, require_same_topic
from ottla.lake.source.access import Bootstrap, brokers_of
from ottla.lake.source.cluster import Cluster, TopicBounds, connect
from ottla.lake.source.ledgers import account_of, loss_explained, totals_of
from ottla.lake.store.retries import retried

# How often the table is verified again if files expired meanwhile.
_TRIES = 5
_FAILED = "the table was not verified, since"


class FilesExpired(OttlaError):
    """Raised if files that the table had when it was read have expired since then."""


def verify(target: str, *, bootstrap: str | None, **options: Unpack[VerifyOptions]) -> Verification:
    """Verify the table in `target`, and compare it with its topic if `bootstrap` is given.

    By default, files are checked in this process. Tasks run on Spark if `on_spark`,
    `spark_session`, `conf`, `name` or a `master` other than `here` is given, or on `runner`; the
    report is the same. For a changelog table, such tasks write temporary files into the table's
    folder, which are removed at the end. Differences are in the report. Raises OttlaError if there
    is no table, if the cluster does not answer, or if files keep expiring before they are read.
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
    """Check files and topic, and return the report with the findings."""
    report, newest = read.report, read.manifests[-1]
    report.topic = newest.topic
    with closing(connect(bootstrap)) if bootstrap else nullcontext() as cluster:
        topic: ComparedTopic | None = None
        if cluster is not None and bootstrap is not None:
            topic = ComparedTopic(bootstrap, _same_topic(cluster, newest))
        check = check_ranges if newest.changelog is None else check_changelog
        add_findings(report, check(read, cluster, topic, run))
        if cluster is not None and topic is not None and topic.described.has_ledger:
            _ask_ledger(cluster, report)
    if report.hash != newest.total_hash or report.rows != newest.total_rows:
        report.problems.append(
            f"the table holds {report.rows} rows with hash {report.hash}; its newest manifest "
            f"says {newest.total_rows} rows with hash {newest.total_hash}"
        )
    return report


def _same_topic(cluster: Cluster, newest: Manifest) -> TopicBounds:
    """Return the description of the topic. Raises OttlaError if it was recreated or truncated."""
    described = cluster.describe(newest.topic)
    with loss_explained(cluster, described, newest):
        require_same_topic(
            newest.topic,
            newest.topic_id,
            described.topic_id,
            newest.positions,
            described.bounds,
        )
    return described


def _ask_ledger(cluster: Cluster, report: Verification) -> None:
    """Add the brokers' ledger of all loaded offsets to the report, with its problems."""
    for partition, ledger in report.ledgers.items():
        account = account_of(cluster, Range(report.topic, partition, ledger.start, ledger.end))
        if account is None:
            if not ledger.unreadable:
                report.problems.append(
                    f"{report.topic}-{partition}: the broker cannot walk its log, which is "
                    "damaged; `ottla log dump` tells where"
                )
            continue
        report.reported[partition] = totals_of(account)
        if account.unexplained:
            report.problems.append(
                f"{report.topic}-{partition}: the broker cannot explain {account.unexplained} of "
                f"the offsets {ledger.start} to {ledger.end}; `ottla log ledger` tells more"
            )
