"""Hostile names and values, records of strange times and sizes: pages show them as text."""

import time

import pytest
from playwright.sync_api import ViewportSize, expect

import ottla.testing
from ottla.client import sync
from tests.system.console.pages import NARROW, SIZES, WindowMaker, names

HOSTILE = (
    "<script>document.title='hacked'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus=alert(1) autofocus x='",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202egnp.exe\u0000\u0007 ü 漢字 😀 \u200b",
    "../../etc/passwd",
    "x" * 20_000,
    "",
    " ",
    "-1",
    "99999999999999999999999",
    "value~(((((",
    "key='",
)
_HOUR_MS = 3_600_000

hostile = pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
sizes = pytest.mark.parametrize("size", SIZES, ids=names(SIZES))


@pytest.fixture(scope="module", autouse=True)
def topic(broker: ottla.testing.Broker) -> None:
    """A topic whose records have hostile keys, values and headers."""
    broker.create_topic("hostile", 1, {"max.message.bytes": str(128 << 20)})
    with sync.Producer(broker.bootstrap) as producer:
        for text in HOSTILE:
            content = text.encode()
            producer.send("hostile", content, key=content, headers=[(text or "h", content)])
        producer.flush()


@hostile
@sizes
def test_hostile_records_are_text(window: WindowMaker, size: ViewportSize, text: str) -> None:
    """They run nothing, break out of nothing, and are no wider than the page."""
    here = window(size)
    page = here.open("/topics/hostile/records")
    expect(page.locator("#records tr")).to_have_count(len(HOSTILE))
    assert here.overflow() <= 0
    assert page.title() == "Records of hostile · Ottla"
    page.goto(f"{here.address}/topics/hostile/records/0/{HOSTILE.index(text)}")
    key = page.locator("pre").first.text_content()
    seen = text.replace("\u202e", r"\u202e").replace("\0", r"\x00").replace("\a", r"\x07")
    assert key == (seen or "empty")
    assert page.title() == f"hostile-0 at {HOSTILE.index(text)} · Ottla"
    assert here.overflow() <= 0


@hostile
def test_hostile_text_in_every_field(window: WindowMaker, text: str) -> None:
    """A page with what was typed comes back, or says what is wrong with it."""
    here = window(NARROW)
    page = here.open("/topics/hostile/records")
    for label in ("Find", "From", "Partition"):
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_role("button", name="Search").click()
        page.wait_for_load_state()
        assert page.locator("h1").inner_text() == "hostile"
        assert page.get_by_label(label, exact=True).input_value() == text.strip().replace(
            "\u0000", "\ufffd"
        )
        page.goto(f"{here.address}/topics/hostile/records")

    page.goto(f"{here.address}/topics")
    page.get_by_label("Filter", exact=True).fill(text)
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_load_state()
    assert page.locator("h1").inner_text() == "Topics"

    page.goto(f"{here.address}/new-topic")
    page.get_by_label("Name", exact=True).fill(text or "a/b")
    page.get_by_label("Partitions", exact=True).fill(text)
    page.get_by_label("Settings", exact=True).fill(f"{text}\nretention.ms={text}")
    page.get_by_role("button", name="Create").click()
    page.wait_for_load_state()
    assert page.locator("h1").inner_text() == "New topic"

    page.goto(f"{here.address}/topics/hostile/settings?setting=retention.ms")
    page.locator("details[open] input[name=value]").fill(text)
    page.get_by_role("button", name="Set", exact=True).locator("visible=true").click()
    page.wait_for_load_state()
    expect(page.locator(".problem, .notes").first).to_be_visible()
    assert page.locator("h1").inner_text() == "hostile"
    assert here.overflow() <= 0


@hostile
def test_hostile_text_is_produced_as_it_is(
    window: WindowMaker, text: str, broker: ottla.testing.Broker
) -> None:
    broker.create_topic(f"sent-{HOSTILE.index(text)}")
    here = window()
    page = here.open(f"/topics/sent-{HOSTILE.index(text)}/produce")
    page.get_by_label("Key", exact=True).fill(text)
    page.get_by_label("Value", exact=True).fill(text)
    page.get_by_role("button", name="Write the record").click()
    expect(page.locator(".notes")).to_contain_text("Written to sent-")
    with sync.Consumer(broker.bootstrap, f"sent-{HOSTILE.index(text)}") as consumer:
        (record,) = consumer.poll(60)
    # A browser's field of one line has no line ends and no null characters.
    assert record.key == text.replace("\u0000", "\ufffd").encode() or "\u0000" in text
    assert record.value is not None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/topics/<b>", 400),
        ("/topics/..%2f..", 404),
        ("/topics/hostile/records?partition=7", 200),
        ("/topics/hostile/records?older=nonsense", 200),
        ("/topics/hostile/records?newer=0:99999999999999999999", 200),
        ("/topics/hostile/records/0/99", 200),
        ("/topics/hostile/records/x/y", 400),
        ("/topics?start=-3", 400),
        ("/topics?sort=<b>&filter=%00%ff", 200),
        ("/no-such-page", 404),
        ("/login?next=//evil.example", 303),
    ],
)
def test_a_wrong_address_is_a_page(window: WindowMaker, path: str, status: int) -> None:
    here = window()
    answer = here.page.request.get(here.address + path, max_redirects=0)
    assert answer.status == status
    if status != 303:
        assert "</html>" in answer.text()
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_form_without_the_sessions_token_changes_nothing(
    window: WindowMaker, broker: ottla.testing.Broker
) -> None:
    """Another site's page can send a form with the visitor's cookie, but not its token."""
    here = window()
    here.open("/")
    answer = here.page.request.post(
        f"{here.address}/new-topic", form={"name": "forged", "token": "guess"}
    )
    assert answer.status == 403
    assert "nothing was changed" in answer.text().lower()
    with sync.Admin(broker.bootstrap) as admin:
        assert "forged" not in admin.topics.list()


def test_another_name_for_this_machine_is_refused(window: WindowMaker) -> None:
    """A page of the internet whose name leads here must not read the console."""
    here = window()
    answer = here.page.request.get(here.address, headers={"host": "evil.example"})
    assert answer.status == 400


def test_a_record_of_100_mb_is_shown_cut(window: WindowMaker, broker: ottla.testing.Broker) -> None:
    broker.create_topic("large", 1, {"max.message.bytes": str(128 << 20)})
    value = b"y" * 100_000_000
    limit = 1 << 28
    with sync.Producer(
        broker.bootstrap, max_request_size=limit, batch_size=limit, buffer_memory=2 * limit
    ) as producer:
        producer.send("large", b"small", key="before")
        producer.flush()
        producer.send("large", value, key="huge")
        producer.flush()
    here = window()
    page = here.open("/topics/large/records")
    expect(page.locator("#records tr")).to_have_count(2)
    assert len(page.content()) < 100_000
    assert "95.4 MiB" in here.text()
    page.goto(f"{here.address}/topics/large/records/0/1")
    assert "cut: 95.4 MiB in all" in here.text()
    assert len(page.content()) < 200_000


@sizes
def test_times_hours_away_are_shown_beside_this_clock(
    window: WindowMaker, size: ViewportSize, broker: ottla.testing.Broker
) -> None:
    name = f"clocks-{size['width']}"
    broker.create_topic(name, 2, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    now_ms = time.time_ns() // 1_000_000
    times = (now_ms - 30 * _HOUR_MS, now_ms + 5 * _HOUR_MS + 60_000, 0, 2**62)
    with sync.Producer(broker.bootstrap) as producer:
        for number, at_ms in enumerate(times):
            producer.send(name, f"v{number}", partition=number % 2, timestamp_ms=at_ms)
        producer.flush()
    here = window(size)
    page = here.open(f"/topics/{name}/records")
    expect(page.locator("#records tr")).to_have_count(4)
    page.goto(f"{here.address}/topics/{name}/records/1/0")
    assert "in 5 hours, by this machine's clock" in here.text()
    page.goto(f"{here.address}/topics/{name}/records/0/0")
    assert "1 day 6 hours ago" in here.text()
    page.goto(f"{here.address}/topics/{name}/records/1/1")
    assert str(2**62) in here.text()
    page.goto(f"{here.address}/topics/{name}/records?from=1h")
    expect(page.locator("#records tr").first).to_be_visible()
    assert here.overflow() <= 0
