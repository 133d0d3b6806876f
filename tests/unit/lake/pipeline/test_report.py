"""The report is one page that needs nothing else, and it has the numbers of the table."""

import re

from ottla.lake.edges.report import Delay, report_page
from ottla.lake.edges.status import Commit, PartitionStatus, TableStatus
from ottla.ledger.partition import PartitionLedger

STATUS = TableStatus(
    "/lake/<flights>",
    "delta",
    topic="flights",
    commits=2,
    loads=2,
    rows=1_500,
    files=2,
    size_bytes=3 << 20,
    last_load_ms=1_700_000_000_000,
    partitions=(PartitionStatus(0, 1_700, 1_720, 65.0),),
)
COMMITS = [
    Commit(1, "load", 1_699_999_000_000, 1_000, 1, 2 << 20, 0, 1_000, None, 0, ()),
    Commit(2, "load", 1_700_000_000_000, 500, 1, 1 << 20, 0, 1_500, None, 0, ("<b> lost",)),
]
LEDGERS = {0: PartitionLedger(0, 0, 1_700, loaded=1_500, deleted=200)}


def page() -> str:
    return report_page(STATUS, COMMITS, LEDGERS, [Delay(1, 30.0, 2.0)], 1_700_000_001_000)


def test_page_needs_nothing_from_elsewhere() -> None:
    """No script, no link, no image: it can be mailed, and opened without a network."""
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", page())


def test_names_are_text_and_not_markup() -> None:
    assert "/lake/&lt;flights&gt;" in page()
    assert "&lt;b&gt; lost" in page()


def test_tables_have_the_numbers() -> None:
    """Commits with rows, size and age of rows; offsets by what became of them."""
    cells = re.findall(r"<t[dh] class=number>([^<]*)", page())
    first = ["1", "2023-11-14 21:56", "1,000", "2.0 MiB", "1", "2 s to 30 s"]
    second = ["2", "2023-11-14 22:13", "500", "1.0 MiB", "1", "-"]
    at = cells.index("age of rows") + 1
    assert cells[at : at + 12] == [*second, *first]
    at = cells.index("loaded") - 1
    assert cells[at : at + 6] == ["partition", "loaded", "deleted", "0", "1,500", "200"]
    assert "20 offsets, 1 min 5 s" in page()


def test_empty_table_has_a_page() -> None:
    """A load that never counted leaves one."""
    assert "No load yet." in report_page(TableStatus("/lake", "parquet"), [], {}, [], 1)
