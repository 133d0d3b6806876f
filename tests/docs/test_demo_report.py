"""The demo's report: what stands on it, and that it can be read on a phone."""

import re
from pathlib import Path
from typing import Any

import pytest
from demo.failover import Failover
from demo.machine import described
from demo.report import Story, write_report

import ottla

DIED_AT = 1_000.0
GAP_S = 0.13


def told(at: float, count: int) -> dict[str, Any]:
    return {"at": at, "count": count, "partitions": [[0, count // 2], [1, count // 2]]}


@pytest.fixture
def story() -> Story:
    """Forty seconds in which broker 1 died and one partition waited for 130 ms."""
    failover = Failover("flights", 1, True, DIED_AT, {0: 1, 1: 2}, {0: 3, 1: 2}, elected_s=0.08)
    failover.in_sync = {0: (1, 2, 3), 1: (1, 2, 3)}
    failover.measure([{"partition": 0, "began": DIED_AT - 0.01, "seconds": GAP_S}])
    story = Story("flights", failover=failover)
    story.delivered = [told(DIED_AT - 15 + 0.1 * step, 900 * step) for step in range(400)]
    story.loads = [
        {"at": DIED_AT - 10, "rows": 100, "total": 100, "seconds": 0.5},
        {"at": DIED_AT + 10, "rows": 300, "total": 400, "seconds": 0.7},
    ]
    story.mark("broker 1 killed (-9)", DIED_AT)
    before = [(DIED_AT - 0.01 - 0.02 * step, 1000 - 90 * step) for step in range(20)]
    after = [(DIED_AT - 0.01 + GAP_S + 0.02 * step, 1100 + 90 * step) for step in range(20)]
    story.steps = {0: [*reversed(before), *after]}
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
    assert page.count("<svg class=broad ") == page.count("<svg class=narrow ") == 4
    # Shown at 358 px on a phone of 390: hardly smaller than it was drawn.
    assert page.count('<svg class=narrow viewBox="0 0 380 300"') == 4
    sizes = [int(size) for size in re.findall(r"font-size: (\d+)px", page)]
    assert min(sizes) >= 13
    tables = re.findall(r"(<div class=wide>)?<table( class=(?:machine|checks))?>", page)
    assert len(tables) == 4
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
