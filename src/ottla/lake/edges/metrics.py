"""Writes metrics of a pipeline's last run and its table in a file for Prometheus.

Prometheus' node exporter reads such files from its folder (`--collector.textfile.directory`). The
file is replaced atomically, so that no reader sees a part of it. `METRICS` and
docs/how-to/write-a-pipeline.md list all metrics.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.status import TableStatus, bytes_of_files, now_ms, terms_of
from ottla.lake.job.task import LoadResult

METRICS: Mapping[str, str] = {
    "ottla_lake_last_run_success": "1 where the last run loaded or found nothing new, else 0",
    "ottla_lake_last_run_timestamp_seconds": "When the last run ended",
    "ottla_lake_last_run_duration_seconds": "How long it took",
    "ottla_lake_last_run_rows": "Rows that it loaded",
    "ottla_lake_last_run_files": "Files that it wrote",
    "ottla_lake_last_run_bytes": "Their size in bytes",
    "ottla_lake_last_run_offsets": "Offsets that it accounted for, by term of the ledger",
    "ottla_lake_last_load_timestamp_seconds": "When the newest load was committed",
    "ottla_lake_commits": "Commits of the table",
    "ottla_lake_rows": "Rows of the table",
    "ottla_lake_files": "Files that count in the table",
    "ottla_lake_bytes": "Their size in bytes",
    "ottla_lake_orphan_files": "Files of loads that did not count, or do not count yet",
    "ottla_lake_writer_epoch": "Writer epoch of the table",
    "ottla_lake_overridden_problems": "Problems that an operator chose to build on",
    "ottla_lake_watermark_timestamp_seconds": "All rows of earlier event times are in the table",
    "ottla_lake_late_rows": "Rows that came behind the watermark, in all commits",
    "ottla_lake_position": "The next offset that the table wants of a partition",
    "ottla_lake_lag_offsets": "Offsets of a partition that are not loaded yet",
    "ottla_lake_lag_seconds": "Age of the first record of a partition that is not loaded yet",
}


# The name of a metric without its prefix, its value, and labels beside topic and table.
Sample = tuple[str, float | None, Mapping[str, str]]


def prometheus_text(
    topic: str, table: str, done: LoadResult | None, seconds: float, status: TableStatus | None
) -> str:
    """Return all known metrics of a run that ended now, in Prometheus' text format.

    `done` is None if the run failed, and `status` is None if the table could not be read.
    """
    base = {"topic": topic, "table": table}
    lines: dict[str, list[str]] = {}
    for name, value, labels in (*_of_run(done, seconds), *_of_table(status)):
        if value is not None:
            shown = ",".join(f'{k}="{_escaped(v)}"' for k, v in {**base, **labels}.items())
            lines.setdefault(f"ottla_lake_{name}", []).append(f"{{{shown}}} {value}")
    found = []
    for name, of_name in lines.items():
        found += [f"# HELP {name} {METRICS[name]}", f"# TYPE {name} gauge"]
        found += [f"{name}{line}" for line in of_name]
    return "\n".join(found) + "\n"


def _of_run(done: LoadResult | None, seconds: float) -> Iterator[Sample]:
    files = done.manifest.files if done and done.manifest and done.files else ()
    yield "last_run_success", int(done is not None), {}
    yield "last_run_timestamp_seconds", now_ms() / 1000, {}
    yield "last_run_duration_seconds", round(seconds, 3), {}
    yield "last_run_rows", done.rows if done else 0, {}
    yield "last_run_files", done.files if done else 0, {}
    yield "last_run_bytes", bytes_of_files(files), {}
    for term, count in terms_of(done.ledgers).items() if done else ():
        yield "last_run_offsets", count, {"term": term}


def _of_table(status: TableStatus | None) -> Iterator[Sample]:
    if status is None:
        return
    has_watermark = status.watermark_ms is not None
    yield "last_load_timestamp_seconds", _seconds(status.last_load_ms), {}
    yield "commits", status.commits, {}
    yield "rows", status.rows, {}
    yield "files", status.files, {}
    yield "bytes", status.size_bytes, {}
    yield "orphan_files", len(status.orphans), {}
    yield "writer_epoch", status.writer_epoch, {}
    yield "overridden_problems", len(status.overridden), {}
    yield "watermark_timestamp_seconds", _seconds(status.watermark_ms), {}
    yield "late_rows", status.late_rows if has_watermark else None, {}
    for one in status.partitions:
        of = {"partition": str(one.partition)}
        yield "position", one.position, of
        yield "lag_offsets", one.lag_offsets, of
        yield "lag_seconds", 0.0 if one.lag_offsets == 0 else one.lag_s, of


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def replace_file(path: str, content: str) -> None:
    """Replace the content of the file at `path` atomically. Raises OttlaError."""
    target = Path(path).expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(name, 0o644)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} can't be written: {error.strerror or error}; what was loaded stays loaded",
        ) from error
