"""One task of a load: fetch a range, write its Parquet file, return what is in it.

Runs on any executor. Every attempt writes a file of its own name, so that a task run
twice, or a zombie of one, can never touch what another wrote.
"""

import json
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from ottla.lake.decode.decoder import NewField
from ottla.lake.decode.layout import DEAD, RAW, FileLayout
from ottla.lake.decode.rows import RowSorter, RowSorting
from ottla.lake.decode.types import parse_type
from ottla.lake.log.contents import DATA_FOLDER, DEAD_LETTERS_FOLDER
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
    # None: raw columns only.
    sorting: RowSorting | None = None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What it did: `file` is None where no record of the range was to be loaded."""

    ledger: PartitionLedger
    file: DataFile | None
    skipped: tuple[Unreadable, ...] = ()
    dead: DataFile | None = None
    # Fields that the schema does not have, and the first offset with each. Files of a task with
    # any are not to be committed: its rows are read again with a schema that has them.
    news: tuple[tuple[NewField, int], ...] = ()


def run(task: Task, attempt: str) -> TaskResult:
    """Load the range into a file named after `attempt`. Raises OttlaError; no file stays then."""
    wanted = task.wanted
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, task.compacted)
    path = f"{task.path}-{attempt}.parquet"
    sorter = RowSorter(task.sorting) if task.sorting else None
    output = ParquetOutput(task.store, path, layout=_layout(task.sorting))
    dead_path = path.replace(f"{DATA_FOLDER}/", f"{DEAD_LETTERS_FOLDER}/", 1)
    dead = ParquetOutput(task.store, dead_path, layout=DEAD)
    cluster = open_cluster(task.bootstrap, task.log_dirs)
    try:
        bad_times: dict[int, int] = {}
        for batch in read_range(
            wanted,
            cluster,
            account,
            skip_unreadable=task.skip_unreadable,
            null_bad_timestamps=task.null_bad_timestamps,
            bad_times=bad_times,
        ):
            _write(batch, sorter, bad_times, output, dead)
            bad_times.clear()
        output.finish()
        dead.finish()
    except BaseException:
        output.discard()
        dead.discard()
        raise
    finally:
        cluster.close()
    ledger = account.ledger_with_gaps()
    ledger = replace(ledger, loaded=ledger.loaded - dead.rows, dead_letters=dead.rows)
    return TaskResult(
        ledger,
        _file(wanted, path, output),
        tuple(account.skipped),
        _file(wanted, dead_path, dead),
        tuple(sorter.news.values()) if sorter else (),
    )


def _layout(sorting: RowSorting | None) -> FileLayout:
    if sorting is None or not sorting.decode.sides():
        return RAW
    return FileLayout(tuple(sorting.schema.fields), sorting.decode.keep_raw)


def _write(
    batch: pa.RecordBatch,
    sorter: RowSorter | None,
    bad_times: dict[int, int],
    output: ParquetOutput,
    dead: ParquetOutput,
) -> None:
    """Write a batch's rows where they belong."""
    if sorter is None:
        output.write(batch)
        return
    rows = sorter.sort(batch, bad_times)
    if rows.kept.num_rows:
        output.write(rows.kept, rows.typed)
    if rows.dead.num_rows:
        dead.write(rows.dead, rows.reasons)


def _file(wanted: Range, path: str, output: ParquetOutput) -> DataFile | None:
    """The file as a manifest describes it; None where it has no rows."""
    if output.rows == 0:
        return None
    return DataFile(
        path=path,
        partition=wanted.partition,
        start=wanted.start,
        end=wanted.end,
        rows=output.rows,
        size_bytes=output.size_bytes,
        hash=hash_text(output.hash),
        sha256=output.sha256,
    )


def result_to_text(result: TaskResult) -> str:
    """A result as it travels from a worker to the driver."""
    news = [
        {"side": new.side, "path": new.path, "type": str(new.type), "offset": offset}
        for new, offset in result.news
    ]
    return json.dumps({**asdict(replace(result, news=())), "news": news})


def result_from_text(text: str) -> TaskResult:
    """The inverse of `result_to_text`."""
    fields = json.loads(text)
    file, dead = (DataFile(**fields[one]) if fields[one] else None for one in ("file", "dead"))
    skipped = tuple(Unreadable(**one) for one in fields["skipped"])
    news = tuple(
        (NewField(one["side"], tuple(one["path"]), parse_type(one["type"]), 0), one["offset"])
        for one in fields["news"]
    )
    return TaskResult(PartitionLedger(**fields["ledger"]), file, skipped, dead, news)
