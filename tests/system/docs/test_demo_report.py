"""The demo's report: what stands on it, and that it can be read on a phone."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from demo.failover import Failover
from demo.machine import described
from demo.plots import Plot
from demo.report import print_summary, write_report
from demo.story import FLIGHTS, PLANES, Story, Succession
from demo.tables import Planes
from rich.console import Console

import ottla
from ottla.lake.check.report import Verification
from ottla.ledger.partition import PartitionLedger

DIED_AT = 1_000.0
GAP_S = 0.13


def told(at: float, count: int) -> dict[str, Any]:
    return {"at": at, "count": count, "partitions": [[0, count // 2], [1, count // 2]]}


def flight(year: str, carrier: str) -> bytes:
    row = {"year": year, "month": "9", "day": "3", "carrier": carrier, "flight": "12"}
    return json.dumps(row | {"origin": "JFK", "dest": "<SEA>"}).encode()


def conclude(story: Story, planes: Planes, rows: int = 400) -> None:
    """Four hundred flights, ten of them without a tail number."""
    flights = Verification("flights", rows=400, hash="ab" * 16, compared=400)
    flights.ledgers = {0: PartitionLedger(0, 0, 400, loaded=400)}
    changes = Verification("flights", rows=2, compared=2)
    changes.ledgers = {0: PartitionLedger(0, 0, 400, loaded=390, keyless=10)}
    story.conclude(
        {"count": 400, "hash": "ab" * 16},
        (flights, changes),
        (rows, "ab" * 16),
        planes,
        source_rows=400,
        differing=0,
    )


@pytest.fixture
def story() -> Story:
    """Forty seconds in which broker 1 died and one partition waited for 130 ms."""
    failover = Failover("flights", 1, True, DIED_AT, {0: 1, 1: 2}, {0: 3, 1: 2}, elected_s=0.08)
    failover.in_sync = {0: (1, 2, 3), 1: (1, 2, 3)}
    failover.measure([{"partition": 0, "began": DIED_AT - 0.01, "seconds": GAP_S}])
    story = Story("flights", failover=failover)
    story.delivered = [told(DIED_AT - 15 + 0.1 * step, 900 * step) for step in range(400)]
    commit = {"at": DIED_AT - 10, "rows": 100, "total": 100, "seconds": 0.5, "epoch": 1}
    story.committed(commit)
    story.succession = Succession(DIED_AT + 5, took_over_at=DIED_AT + 5.5)
    story.committed(commit | {"at": DIED_AT + 10, "rows": 300, "total": 400, "epoch": 2})
    story.runs = [{"at": DIED_AT + 11, "changes": 390, "keys": 2, "seconds": 0.4}]
    story.mark("broker 1 killed (-9)", DIED_AT)
    before = [(DIED_AT - 0.01 - 0.02 * step, 1000 - 90 * step) for step in range(20)]
    after = [(DIED_AT - 0.01 + GAP_S + 0.02 * step, 1100 + 90 * step) for step in range(20)]
    story.steps = {0: [*reversed(before), *after]}
    found = {b"N1": flight("2013", "UA"), b"N2": flight("2013", "AA")}
    conclude(story, Planes(dict(found), 2, found, {b"N1": 300, b"N2": 90}, keyless=10))
    story.machine = described("python -m demo --rate 9000 --every 1.5")
    return story


@pytest.fixture
def page(story: Story, tmp_path: Path) -> str:
    """The report of that."""
    path = tmp_path / "report.html"
    write_report(story, path)
    return path.read_text()


def test_the_gap_can_be_seen(page: str) -> None:
    """Its wait of 130 ms is a sixth or more of an axis in milliseconds, and named on it."""
    close = page.partition("The longest wait, from close by")[2].partition("</figure>")[0]
    assert "milliseconds from the death" in close
    assert "nothing acknowledged: 130 ms" in close
    for kind, width in (("broad", 860), ("narrow", 380)):
        drawing = close.partition(f"<svg class={kind} ")[2].partition("</svg>")[0]
        shaded = re.search(r"<rect class=span x=[\d.]+ y=\d+ width=([\d.]+)", drawing)
        assert shaded is not None
        assert float(shaded[1]) > width / 6
        assert ">130 ms<" in drawing
    assert re.findall(r"<b class=mark>\d</b>([^<]+)", close) == [
        "broker 1 killed (-9), at 0 ms",
        "the others name new leaders, at 80 ms",
    ]


def test_the_wait_across_the_death_is_shown_beside_a_longer_one(
    story: Story, tmp_path: Path
) -> None:
    """A busy machine makes clients wait for other reasons soon after: both are seen."""
    assert story.failover is not None
    story.failover.measure([{"partition": 0, "began": DIED_AT + 0.3, "seconds": 0.5}])
    assert story.failover.longest == 0
    write_report(story, tmp_path / "report.html")
    close = (tmp_path / "report.html").read_text().partition("from close by")[2]
    close = close.partition("</figure>")[0]
    assert "nothing acknowledged: 500 ms and 130 ms" in close
    assert len(re.findall("<rect class=span ", close)) == 4


def test_it_fits_a_phone(page: str) -> None:
    """Each drawing is there for a narrow screen, in letters of 14 px or near; tables scroll."""
    assert '<meta name=viewport content="width=device-width, initial-scale=1">' in page
    assert page.count("<svg class=broad ") == page.count("<svg class=narrow ") == 5
    # Shown at 358 px on a phone of 390: hardly smaller than it was drawn.
    assert page.count('<svg class=narrow viewBox="0 0 380 300"') == 5
    sizes = [int(size) for size in re.findall(r"font-size: (\d+)px", page)]
    assert min(sizes) >= 13
    tables = re.findall(r"(<div class=wide>)?<table( class=(?:machine|checks))?>", page)
    assert len(tables) == 7
    assert all(scrolls or folds for scrolls, folds in tables)
    assert "div.wide { overflow-x: auto }" in page


def test_it_says_what_it_ran_on(page: str) -> None:
    """Versions, system, processor, cores, memory, day and command."""
    part = page.partition("On what it ran")[2]
    rows = dict(re.findall(r"<tr><th>([^<]+)<td>([^<]+)", part))
    assert rows["Ottla"] == ottla.__version__
    assert re.match(r"CPython 3\.\d+\.\d+", rows["Python"])
    assert "confluent-kafka" in rows["Clients"]
    assert re.search(r"\d+ cores? for this process", rows["Processor"])
    assert re.match(r"\d{4}-\d\d-\d\d", rows["Made"])
    assert rows["Command"] == "python -m demo --rate 9000 --every 1.5"
    assert rows["System"]


def heads(part: str) -> list[str]:
    return re.findall(r"<th class=number>(\w+)", part.replace("&shy;", ""))


def test_numbers_of_close_moments_stand_side_by_side() -> None:
    """Two moments at the same place: two circles that do not touch, two lines where they were."""
    plot = Plot(860, 100.0, 10)
    plot.mark(50.0, 1)
    plot.mark(50.1, 2)
    drawn = plot.svg("", "broad")
    first, second = map(float, re.findall(r"cx=([\d.]+)", drawn))
    assert second - first == 22
    lines = [float(x) for x in re.findall(r"x1=([\d.]+)", drawn)]
    assert lines[1] - lines[0] < 1


def test_both_tables_are_proven(story: Story, page: str) -> None:
    """The page has a proof and a ledger of each; a keyless flight has its column."""
    assert story.proven
    assert (
        "<h1>Every flight is in its table exactly once, and every plane has its latest.</h1>"
        in page
    )
    flights, _, planes = page.partition("Proof: table flights")[2].partition("Proof: table planes")
    assert flights.count("<td class=right>equal") == 9
    assert planes.count("<td class=right>equal") == 7
    assert heads(flights) == [
        "partition", "start", "end", "loaded", "unexplained",
    ]  # fmt: skip
    assert heads(planes) == [
        "partition", "start", "end", "loaded", "keyless", "unexplained",
    ]  # fmt: skip


def test_the_planes_that_flew_most_are_shown(page: str) -> None:
    """With their latest flight, and what is in it escaped."""
    row = "<tr><td>N1<td class=number>300<td>UA 12<td>JFK → &lt;SEA&gt;<td>2013-09-03"
    assert row in page
    assert page.index("<td>N1<") < page.index("<td>N2<")
    assert "390 flights with a tail number became 2 rows; 10 flights have" in page


def test_the_succession_is_told(page: str) -> None:
    """How soon the second loader took over, with which writer epoch, and when it committed."""
    part = page.partition("<h2>The death of the loader</h2>")[2].partition("<h2>")[0]
    assert "0.5 s later" in part
    assert "from 1 to\n2" in part
    assert "came 5.0 s after the death, with 300 rows" in part


def test_one_wrong_plane_is_no_proof(story: Story, tmp_path: Path) -> None:
    """A plane whose record is not the replay's is counted, on the page and in the terminal."""
    right = {b"N1": flight("2013", "UA"), b"N2": flight("2013", "AA")}
    wrong = right | {b"N2": flight("2012", "AA")}
    conclude(story, Planes(right, 2, wrong, {b"N1": 300, b"N2": 90}, keyless=10))
    assert not story.proven
    assert [check.what for check in story.checks if not check.right] == [
        "hash of keys and values: replay, and table",
        "planes that differ from the replay",
    ]
    assert {check.table for check in story.checks if not check.right} == {PLANES}
    write_report(story, tmp_path / "report.html")
    assert (
        "<h1>The proof does not hold: see the checks.</h1>"
        in (tmp_path / "report.html").read_text()
    )
    said = io.StringIO()
    print_summary(story, Console(file=said, width=110))
    assert said.getvalue().count("DIFFERS") == 2
    assert "the proof does not hold" in said.getvalue()


def test_a_missing_flight_is_no_proof(story: Story) -> None:
    """Rows that another program reads count, not only those that verify finds."""
    assert story.planes is not None
    conclude(story, story.planes, rows=399)
    assert not story.proven
    assert {check.table for check in story.checks if not check.right} == {FLIGHTS}
