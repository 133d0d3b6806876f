"""A browser for all tests; a broker, a console and windows for each module."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

import ottla.testing
from tests.system.console.pages import WindowMaker, a_browser, console, windows


# Of the package: its driver has an event loop, beside which other tests could start none.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    yield from a_browser()


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker() as running:
        yield running


@pytest.fixture(scope="module")
def address(broker: ottla.testing.Broker) -> Iterator[str]:
    with console(broker.bootstrap) as place:
        yield place


@pytest.fixture
def window(browser: Browser, address: str) -> Iterator[WindowMaker]:
    """Opens windows on the console of the module's broker."""
    with windows(browser, address) as make:
        yield make
