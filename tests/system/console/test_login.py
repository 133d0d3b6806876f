"""Visitors log in as users of the cluster; each sees and does what the brokers let this user do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize, expect
from rig.secret_search import register
from rig.secured import Secured, secured

from tests.system.console.pages import SIZES, Window, WindowMaker, console, names, windows

PASSWORDS = {"anna": "anna-secret-1", "bert": "bert-secret-2"}
sizes = pytest.mark.parametrize("size", SIZES, ids=names(SIZES))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Secured]:
    for password in PASSWORDS.values():
        register(password)
    with secured(dict(PASSWORDS)) as running:
        running.create_topic("open-to-anna")
        running.create_topic("closed")
        for operation in ("describe", "read", "describe-configs"):
            running.allow("anna", operation, "topic:open-to-anna")
        yield running


@pytest.fixture(scope="module")
def place(cluster: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = Path(tmp_path_factory.mktemp("console")) / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={cluster.files.authority}\n"
    )
    with console(cluster.sasl, config=file) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, place: str) -> Iterator[WindowMaker]:
    with windows(browser, place) as make:
        yield make


def log_in(here: Window, user: str, password: str) -> None:
    here.page.get_by_label("Name", exact=True).fill(user)
    here.page.get_by_label("Password", exact=True).fill(password)
    here.page.get_by_role("button", name="Log in").click()


@sizes
def test_a_user_sees_what_the_brokers_let_this_user_see(
    visitor: WindowMaker, size: ViewportSize
) -> None:
    here = visitor(size)
    page = here.open("/topics")
    expect(page.get_by_label("Password")).to_be_visible()
    log_in(here, "anna", PASSWORDS["anna"])
    expect(page.locator("h1")).to_have_text("Topics")
    assert "open-to-anna" in here.text()
    assert "closed" not in here.text()
    page.goto(f"{here.address}/topics/open-to-anna/records")
    expect(page.locator(".none")).to_contain_text("There is no record")
    page.goto(f"{here.address}/topics/open-to-anna/produce")
    page.get_by_label("Value", exact=True).fill("no right")
    page.get_by_role("button", name="Write the record").click()
    expect(page.locator(".problem")).to_contain_text("You have no right to do this")
    expect(page.locator(".problem")).to_contain_text(
        "ottla acl add User:NAME write topic:open-to-anna"
    )
    assert page.get_by_label("Value", exact=True).input_value() == "no right"


@sizes
def test_a_user_without_any_right_has_usable_pages(
    visitor: WindowMaker, size: ViewportSize
) -> None:
    here = visitor(size)
    page = here.open("/")
    log_in(here, "bert", PASSWORDS["bert"])
    expect(page.locator("h1")).to_have_text("Overview")
    assert "bert" in page.locator(".user").inner_text() or size["width"] < 700
    for path in ("/topics", "/topics/closed", "/topics/closed/records", "/topics/closed/settings"):
        page.goto(here.address + path)
        expect(page.locator("nav").first).to_be_visible()
        assert here.overflow() <= 0
    assert "no right" in here.text() or "There is no such topic" in here.text()


def test_a_wrong_password_is_said_and_attempts_are_limited(visitor: WindowMaker) -> None:
    here = visitor()
    page = here.open("/")
    for _ in range(5):
        log_in(here, "carl", "guess")
        expect(page.locator(".wrong")).to_contain_text("The brokers refuse this name and password")
    log_in(here, "carl", "guess")
    expect(page.locator(".wrong")).to_contain_text("Too many attempts failed: wait 5 minutes")
    log_in(here, "anna", PASSWORDS["anna"])
    expect(page.locator("h1")).to_have_text("Overview")


def test_the_cookie_is_no_ones_after_the_log_out(visitor: WindowMaker) -> None:
    here = visitor()
    page = here.open("/")
    log_in(here, "anna", PASSWORDS["anna"])
    expect(page.locator("h1")).to_have_text("Overview")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    answer = page.request.get(
        f"{here.address}/topics",
        headers={"cookie": f"ottla_console={cookie['value']}"},
        max_redirects=0,
    )
    assert answer.status == 303
    assert answer.headers["location"] == "/login?next=%2Ftopics"


def test_a_log_in_leads_only_into_the_console(visitor: WindowMaker) -> None:
    here = visitor()
    page = here.open("/login?next=//evil.example/")
    log_in(here, "anna", PASSWORDS["anna"])
    expect(page.locator("h1")).to_have_text("Overview")
    assert page.url == f"{here.address}/"


@pytest.mark.parametrize("user", ["<b>x</b>", "a,b=c", "\u202eü 漢", "x" * 5_000, "anna\t"])
def test_hostile_names_cannot_log_in(visitor: WindowMaker, user: str) -> None:
    here = visitor()
    page = here.open("/")
    log_in(here, user, "'; --")
    expect(page.locator(".wrong")).to_be_visible()
    assert here.overflow() <= 0
