"""One task of a load: fetch a range, write its Parquet file, return what is in it.

Runs on any executor. Every attempt writes a file of its own name, so that a task run
twice, or a zombie of one, can never touch what another wrote.
"""

import json
from dataclasses import asdict, dataclass

from ottla.lake.manifest import DataFile
from ottla.lake.output import ParquetOutput
from ottla.lake.plan import Range
from ottla.lake.reader import read_range
from ottla.lake.replica.reading import open_cluster
from ottla.lake.row_hash import hash_text
from ottla.lake.stores.store import FileStore
from ottla.ledger.partition import PartitionLedger, RangeAccount, Unreadable


@dataclass(frozen=True, slots=True)
class Task:
    """What a task is to load."""

    wanted: Range
    bootstrap: str
    compacted: bool
    store: FileStore
    path: str  # Where its file goes in `store`; an attempt adds a name of its own.
    skip_unreadable: bool = False
    null_bad_timestamps: bool = False
    # About how many bytes of the log hold the range. By default too many to share a task of Spark.
    log_bytes: int = 1 << 62
    log_dirs: tuple[str, ...] = ()  # Where logs may be read as files.


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What it did: `file` is None where no record of the range was to be loaded."""

    ledger: PartitionLedger
    file: DataFile | None
    skipped: tuple[Unreadable, ...] = ()


def run(task: Task, attempt: str) -> TaskResult:
    """Load the range into a file named after `attempt`. Raises OttlaError; no file stays then."""
    wanted = task.wanted
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, task.compacted)
    path = f"{task.path}-{attempt}.parquet"
    output = ParquetOutput(task.store, path)
    cluster = open_cluster(task.bootstrap, task.log_dirs)
    try:
        for batch in read_range(
            wanted,
            cluster,
            account,
            skip_unreadable=task.skip_unreadable,
            null_bad_timestamps=task.null_bad_timestamps,
        ):
            output.write(batch)
        output.finish()
    except BaseException:
        output.discard()
        raise
    finally:
        cluster.close()
    ledger, skipped = account.ledger_with_gaps(), tuple(account.skipped)
    if output.rows == 0:
        return TaskResult(ledger, None, skipped)
    file = DataFile(
        path=path,
        partition=wanted.partition,
        start=wanted.start,
        end=wanted.end,
        rows=output.rows,
        size_bytes=output.size_bytes,
        hash=hash_text(output.hash),
        sha256=output.sha256,
    )
    return TaskResult(ledger, file, skipped)


def result_to_text(result: TaskResult) -> str:
    """A result as it travels from a worker to the driver."""
    return json.dumps(asdict(result))


def result_from_text(text: str) -> TaskResult:
    """The inverse of `result_to_text`."""
    fields = json.loads(text)
    file = DataFile(**fields["file"]) if fields["file"] else None
    skipped = tuple(Unreadable(**one) for one in fields["skipped"])
    return TaskResult(PartitionLedger(**fields["ledger"]), file, skipped)
