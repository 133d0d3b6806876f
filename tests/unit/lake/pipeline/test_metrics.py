"""Numbers of a run in the form that Prometheus reads."""

import re
from pathlib import Path

from ottla.lake.edges.metrics import METRICS, prometheus_text, replace_file
from ottla.lake.edges.status import PartitionLag, TableStatus
from ottla.lake.job.task import LoadResult
from ottla.ledger.partition import PartitionLedger

DONE = LoadResult(None, 60, 2, 2.5, (PartitionLedger(0, 0, 60, loaded=60),), ())
STATUS = TableStatus(
    "/lake/flights",
    "parquet",
    topic="flights",
    commits=3,
    loads=3,
    rows=160,
    files=6,
    size_bytes=9_000,
    last_load_ms=1_700_000_000_000,
    watermark_ms=1_699_999_000_000,
    partitions=(PartitionLag(0, 80, 80), PartitionLag(1, 80, 90, 4.5)),
)


def text(table: str = "/lake", status: TableStatus | None = STATUS) -> str:
    return prometheus_text("flights", table, DONE, 2.5, status)


def test_every_number_has_a_name_of_the_table() -> None:
    """So that none is missing in the documentation, and all are there."""
    found = re.findall(r"^(ottla_lake_\w+)\{", text(), re.MULTILINE)
    assert set(found) == set(METRICS)


def test_prometheus_text_has_help_type_and_labels() -> None:
    lines = text().splitlines()
    assert lines[:3] == [
        "# HELP ottla_lake_last_run_success "
        "1 where the last run loaded or found nothing new, else 0",
        "# TYPE ottla_lake_last_run_success gauge",
        'ottla_lake_last_run_success{topic="flights",table="/lake"} 1',
    ]
    assert 'ottla_lake_last_run_rows{topic="flights",table="/lake"} 60' in lines
    assert 'ottla_lake_rows{topic="flights",table="/lake"} 160' in lines
    assert 'ottla_lake_lag_offsets{topic="flights",table="/lake",partition="1"} 10' in lines
    assert 'ottla_lake_lag_seconds{topic="flights",table="/lake",partition="0"} 0.0' in lines
    assert 'ottla_lake_lag_seconds{topic="flights",table="/lake",partition="1"} 4.5' in lines


def test_quotes_in_a_path_are_escaped() -> None:
    (line,) = [
        line
        for line in text('a"b\\c', None).splitlines()
        if line.startswith("ottla_lake_last_run_rows")
    ]
    assert line == 'ottla_lake_last_run_rows{topic="flights",table="a\\"b\\\\c"} 60'


def test_file_is_replaced_whole(tmp_path: Path) -> None:
    """And nothing else stays in its folder."""
    path = tmp_path / "new" / "flights.prom"
    replace_file(str(path), text(status=None))
    replace_file(str(path), text())
    assert "ottla_lake_rows" in path.read_text()
    assert [one.name for one in path.parent.iterdir()] == ["flights.prom"]
