"""The same pages about Apache Kafka: all that its brokers can answer."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ViewportSize, expect
from rig import kafka as kafka_rig
from rig.nodes import Node

from tests.system.console.pages import SIZES, WindowMaker, console, names, windows

sizes = pytest.mark.parametrize("size", SIZES, ids=names(SIZES))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Node]:
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with kafka_rig.kafka(quick=True) as node:
        yield node


@pytest.fixture(scope="module")
def place(kafka: Node) -> Iterator[str]:
    with console(kafka.bootstrap) as address:
        yield address


@pytest.fixture
def window(browser: Browser, place: str) -> Iterator[WindowMaker]:
    with windows(browser, place) as make:
        yield make


@sizes
def test_every_page_works(window: WindowMaker, size: ViewportSize) -> None:
    name = f"topic-{size['width']}"
    here = window(size)
    page = here.open("/")
    expect(page.locator(".fine")).to_contain_text("Nothing is wrong")
    here.click("Topics")
    here.click("New topic")
    here.type("Name", name)
    here.page.get_by_label("Settings", exact=True).fill("retention.ms=7d")
    here.click("Create", "button")
    expect(page.locator(".notes")).to_contain_text(f"Created {name}: 1 partition")
    here.click("Produce")
    here.type("Key", "k1")
    here.type("Value", '{"n": 1}')
    here.click("Write the record", "button")
    expect(page.locator(".notes")).to_contain_text(f"Written to {name}-0 at offset 0.")
    here.click("Records")
    here.type("Find", "value.n=1")
    here.click("Search", "button")
    expect(page.locator("#records tr")).to_have_count(1)
    here.click("Settings")
    page.locator("summary", has_text="retention.ms").first.click()
    why = page.locator("details[open]").first
    expect(why).to_contain_text("retention.ms=604800000 set for this topic: this one counts")
    why.get_by_label("New value").fill("1d")
    why.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".notes")).to_contain_text(
        "retention.ms was 604800000 and is 86400000 now."
    )
    here.click("Partitions")
    expect(page.locator("table.rows tbody tr")).to_have_count(1)
    assert "Records are deleted after 1 day." in here.text()
    assert here.overflow() <= 0
