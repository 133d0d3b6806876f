"""Writes metrics of a pipeline's last run and its table, for Prometheus or as JSON.

Prometheus' node exporter reads such files from its folder (`--collector.textfile.directory`). The
file is replaced atomically, so that no reader sees a part of it. `METRICS` and
docs/how-to/write-a-pipeline.md list all metrics.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

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


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """The metrics of one run."""

    success: bool
    ended_ms: int
    seconds: float
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    terms: Mapping[str, int] = field(default_factory=dict)  # The counts of its ledgers, by name.

    @classmethod
    def of(cls, done: LoadResult | None, seconds: float) -> Self:
        """Return the metrics of a run that ended now. `done` is None if it failed."""
        if done is None:
            return cls(False, now_ms(), seconds)
        files = done.manifest.files if done.manifest and done.files else ()
        size_bytes, terms = bytes_of_files(files), terms_of(done.ledgers)
        return cls(True, now_ms(), seconds, done.rows, done.files, size_bytes, terms)


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric with its value and labels."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def samples(topic: str, table: str, run: RunNumbers, status: TableStatus | None) -> list[Sample]:
    """Return all known metrics. `status` is None if the table could not be read."""
    base = (("topic", topic), ("table", table))
    values: list[tuple[str, float | None, tuple[tuple[str, str], ...]]] = [
        ("last_run_success", int(run.success), ()),
        ("last_run_timestamp_seconds", run.ended_ms / 1000, ()),
        ("last_run_duration_seconds", round(run.seconds, 3), ()),
        ("last_run_rows", run.rows, ()),
        ("last_run_files", run.files, ()),
        ("last_run_bytes", run.size_bytes, ()),
    ]
    values += [("last_run_offsets", count, (("term", term),)) for term, count in run.terms.items()]
    if status is not None:
        values += [
            ("last_load_timestamp_seconds", _seconds(status.last_load_ms), ()),
            ("commits", status.commits, ()),
            ("rows", status.rows, ()),
            ("files", status.files, ()),
            ("bytes", status.size_bytes, ()),
            ("orphan_files", len(status.orphans), ()),
            ("writer_epoch", status.writer_epoch, ()),
            ("overridden_problems", len(status.overridden), ()),
            ("watermark_timestamp_seconds", _seconds(status.watermark_ms), ()),
            ("late_rows", None if status.watermark_ms is None else status.late_rows, ()),
        ]
    for one in status.partitions if status else ():
        of = (("partition", str(one.partition)),)
        values += [
            ("position", one.position, of),
            ("lag_offsets", one.lag_offsets, of),
            ("lag_seconds", 0.0 if one.lag_offsets == 0 else one.lag_s, of),
        ]
    return [
        Sample(f"ottla_lake_{name}", value, (*base, *labels))
        for name, value, labels in values
        if value is not None
    ]


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def prometheus_text(found: list[Sample]) -> str:
    """Return the samples in Prometheus' text format."""
    lines = []
    for name, meaning in METRICS.items():
        of_name = [sample for sample in found if sample.name == name]
        if of_name:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        for sample in of_name:
            labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels)
            lines.append(f"{name}{{{labels}}} {sample.value}")
    return "\n".join(lines) + "\n"


def json_text(found: list[Sample]) -> str:
    """Return the samples as a JSON list of objects with name, value and labels."""
    rows = [{"name": s.name, "value": s.value, **dict(s.labels)} for s in found]
    return json.dumps(rows, indent=1) + "\n"


def write_metrics(path: str, found: list[Sample]) -> None:
    """Replace the file at `path`, as JSON if its name ends in `.json`. Raises OttlaError."""
    replace_file(path, json_text(found) if path.endswith(".json") else prometheus_text(found))


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


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
