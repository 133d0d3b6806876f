"""New records appear by themselves, those that match, and what is typed is no script there."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

import ottla.testing
from ottla.client import sync
from tests.system.console.pages import WindowMaker, console, windows


def send(broker: ottla.testing.Broker, *values: str) -> None:
    with sync.Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send("news", value, key="k", headers=[("<b>h</b>", b"1")])
        producer.flush()


@pytest.fixture(scope="module", autouse=True)
def topic(broker: ottla.testing.Broker) -> None:
    broker.create_topic("news", 2)


def test_new_records_come_at_the_top(window: WindowMaker, broker: ottla.testing.Broker) -> None:
    send(broker, "old")
    here = window()
    page = here.open("/topics/news/records")
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#live-status")).to_contain_text("new records appear")
    send(broker, "<img src=x onerror=alert(1)>")
    expect(page.locator("#records tr").first).to_contain_text("<img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#live-status")).to_be_empty()


def test_only_what_matches_comes(window: WindowMaker, broker: ottla.testing.Broker) -> None:
    here = window()
    page = here.open("/topics/news/records?where=value.n%3D2")
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#live-status")).to_contain_text("new records appear")
    send(broker, '{"n": 1}', '{"n": 2, "it": "matches"}', "last")
    expect(page.locator("#records tr").first).to_contain_text("matches")
    assert "last" not in page.locator("#records").inner_text()


@pytest.fixture
def masked(
    browser: Browser, broker: ottla.testing.Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WindowMaker]:
    file = tmp_path_factory.mktemp("masks") / "masks.toml"
    file.write_text("[[mask]]\ntopics = 'news'\nfields = ['card']\n")
    with console(broker.bootstrap, "--mask", str(file)) as address, windows(browser, address) as m:
        yield m


def test_masks_hold_in_lists_records_and_live(
    masked: WindowMaker, broker: ottla.testing.Broker
) -> None:
    send(broker, '{"card": "4111-secret", "who": "anna"}')
    here = masked()
    page = here.open("/topics/news/records?where=anna")
    expect(page.locator("#records tr").first).to_contain_text("(hidden)")
    assert "4111" not in page.content()
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#live-status")).to_contain_text("new records appear")
    send(broker, '{"card": "4222-secret", "who": "anna too"}')
    expect(page.locator("#records tr").first).to_contain_text("anna too")
    assert "4222" not in page.content()
    page.locator("#records a").first.click()
    expect(page.locator("pre").nth(1)).to_contain_text("(hidden)")
    page = here.open("/topics/news/records?where=4111-secret")
    expect(page.locator(".none")).to_contain_text("No record matches")
