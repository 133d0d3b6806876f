"""Behind a page a broker stands still, or all do: the page says so in time and stays usable."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from rig.clusters import Cluster, Member
from rig.ottla_cluster import ottla_cluster

from ottla.client import sync
from tests.system.console.pages import Window, WindowMaker, console, windows


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A broker that stands still stays a member for as long as these tests take.
    with ottla_cluster({"broker.session.timeout.ms": "600000"}) as running:
        with sync.Admin(running.bootstrap) as admin:
            admin.topics.create("spread", 3, 1)
        with sync.Producer(running.bootstrap) as producer:
            for number in range(30):
                producer.send("spread", f"value-{number}", partition=number % 3)
            producer.flush()
        yield running


@pytest.fixture
def window(browser: Browser, cluster: Cluster) -> Iterator[WindowMaker]:
    with console(cluster.bootstrap) as address, windows(browser, address) as make:
        yield make


def leader_of(cluster: Cluster, partition: int) -> Member:
    with sync.Admin(cluster.bootstrap) as admin:
        return cluster.members[admin.topics.describe("spread").partitions[partition].leader]


def read(here: Window, path: str) -> str:
    here.open(path)
    return here.text()


def test_pages_name_the_broker_that_stands_still(window: WindowMaker, cluster: Cluster) -> None:
    here = window()
    assert "Nothing is wrong" in read(here, "/")
    member = leader_of(cluster, 1)
    member.pause()
    try:
        overview = read(here, "/")
        assert "Brokers that do not answer" in overview
        assert f"Broker {member.number} did not answer within 2 s" in overview
        topic = read(here, "/topics/spread")
        assert f"broker {member.number} did not answer" in topic
        records = read(here, "/topics/spread/records")
        assert "Some partitions are missing" in records
        assert f"spread-1: broker {member.number} did not answer within 2 s" in records
        assert "value-0" in records
        assert "value-1\n" not in records
        assert "spread" in read(here, "/topics")
    finally:
        member.resume()
    expect(here.open("/").locator(".fine")).to_contain_text("Nothing is wrong")
    assert "value-1" in read(here, "/topics/spread/records")


def test_pages_say_that_no_broker_answers(window: WindowMaker, cluster: Cluster) -> None:
    here = window()
    read(here, "/topics")
    for member in cluster.members.values():
        member.pause()
    try:
        for path in ("/", "/topics", "/topics/spread/records"):
            text = read(here, path)
            assert "not answer" in text or "be reached" in text, text
    finally:
        for member in cluster.members.values():
            member.resume()
    assert "spread" in read(here, "/topics")
