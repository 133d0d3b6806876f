"""What people come for, in a few clicks each, on a desk's screen and on a telephone's."""

import json

import pytest
from playwright.sync_api import ViewportSize, expect

import ottla.testing
from ottla.client import sync
from tests.system.console.pages import SIZES, WindowMaker, names

CLICKS_MAX = 5
_DAY_MS = 86_400_000
_FIRST_MS = 1_704_067_200_000  # 2024-01-01.

sizes = pytest.mark.parametrize("size", SIZES, ids=names(SIZES))


@pytest.fixture(scope="module", autouse=True)
def orders(broker: ottla.testing.Broker) -> None:
    """A topic with a record a day for a hundred days."""
    broker.create_topic("orders", 3, {"retention.ms": "-1"})
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(100):
            value = json.dumps({"number": number, "city": ("Bern", "Paris")[number % 2]})
            producer.send(
                "orders",
                value,
                key=f"order-{number}",
                timestamp_ms=_FIRST_MS + number * _DAY_MS,
                headers=[("trace", f"t{number}".encode())],
            )
        producer.flush()


@sizes
def test_find_a_record_by_its_key(window: WindowMaker, size: ViewportSize) -> None:
    here = window(size)
    here.open("/")
    here.click("Topics")
    here.click("orders")
    here.click("Records")
    here.type("Find", "key=order-42")
    here.page.keyboard.press("Enter")
    expect(here.page.locator("#records tr")).to_have_count(1)
    here.clicks += 1
    here.page.locator("#records a").click()
    expect(here.page.locator("pre").nth(1)).to_contain_text('"number": 42')
    assert here.clicks <= CLICKS_MAX
    assert here.overflow() <= 0


@sizes
def test_find_records_by_time(window: WindowMaker, size: ViewportSize) -> None:
    here = window(size)
    here.open("/topics")
    here.click("records")
    here.type("From", "2024-02-12T00:00:00Z")
    here.click("Search", "button")
    expect(here.page.locator("#records tr").first).to_contain_text("2024-02-12T00:00:00.000Z")
    expect(here.page.locator("#records tr")).to_have_count(50)
    assert "the oldest first" in here.text()
    assert here.clicks <= CLICKS_MAX


@sizes
def test_produce_a_record(window: WindowMaker, size: ViewportSize) -> None:
    here = window(size)
    here.open("/topics/orders")
    here.click("Produce")
    here.type("Key", "new-order")
    here.type("Value", "über <b>alles</b>")
    here.click("Write the record", "button")
    expect(here.page.locator(".notes")).to_contain_text("Written to orders-")
    assert "über <b>alles</b>" in here.text()
    assert here.clicks <= CLICKS_MAX
    assert here.overflow() <= 0


@sizes
def test_see_a_setting_and_why(window: WindowMaker, size: ViewportSize) -> None:
    here = window(size)
    here.open("/topics")
    here.click("orders")
    here.click("Settings")
    here.clicks += 1
    here.page.locator("summary", has_text="retention.ms").first.click()
    here.page.locator("details[open] .origins").wait_for()
    said = here.page.locator("details[open]").first.inner_text()
    assert "Age at which closed segments are deleted" in said
    assert "retention.ms=-1 set for this topic: this one counts" in said
    assert here.clicks <= CLICKS_MAX
    assert here.overflow() <= 0


@sizes
def test_create_a_topic(
    window: WindowMaker, size: ViewportSize, broker: ottla.testing.Broker
) -> None:
    name = f"created-{size['width']}"
    here = window(size)
    here.open("/")
    here.click("Topics")
    here.click("New topic")
    here.type("Name", name)
    here.page.get_by_label("Settings", exact=True).fill("retention.ms=7d")
    here.click("Create", "button")
    expect(here.page.locator(".notes")).to_contain_text(f"Created {name}: 1 partition")
    assert "Records are deleted after 7 days." in here.text()
    assert here.clicks <= CLICKS_MAX
    with sync.Admin(broker.bootstrap) as admin:
        assert admin.configs.describe("topic", name)["retention.ms"].value == "604800000"
