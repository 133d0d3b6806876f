"""What users of other clients type works, or an error says what to type instead."""

import asyncio
import itertools
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import client
from ottla.client import sync
from ottla.testing import Broker
from tests.integration.client.natural_calls import ADMIN, ASYNCHRONOUS, CONSUMER, PRODUCER

PLAIN = [*PRODUCER, *CONSUMER, *ADMIN]
# The errors of the calls that do not work, with what they tell the user to write.
REFUSED = {
    'p = Producer({"bootstrap.servers"': 'write "host:9092", and then options as keywords',
    "for record in Consumer(topic, bootstrap_servers=host": "multiple values for argument",
    'c = Consumer({"bootstrap.servers"': 'write "host:9092", and then options as keywords',
    'with Consumer(host, topic, group_id="g") as c: c.poll(timeout_ms': "argument 'timeout_ms'",
    "with Admin(bootstrap_servers=host) as admin: assert topic in admin.list": "topics.list()",
    "producer = Producer(host)\nawait producer.start()": "async with Producer(",
    'async with Consumer(host, topic, auto_offset_reset="earliest") as consumer:\n'
    "    record = await consumer.getone()": "anext(consumer)",
}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def names(broker: Broker) -> dict[str, Any]:
    """What a call finds."""
    number = next(_numbers)
    topic = f"natural-{number}"
    broker.create_topic(topic, partitions=2)
    with sync.Producer(broker.bootstrap) as producer:
        for partition in (0, 1):
            for value in (b"0", b"1", b"2"):
                producer.send(topic, value, b"k", partition=partition).result()
    return {
        "host": broker.bootstrap,
        "topic": topic,
        "new": f"new-{number}",
        "group": f"group-{number}",
        "json": json,
    }


def refusal(code: str) -> str | None:
    """What the error of a call must say; None for a call that works."""
    found = [words for start, words in REFUSED.items() if code.strip().startswith(start)]
    return found[0] if found else None


def check(code: str, run: Any) -> None:
    words = refusal(code)
    if words is None:
        run()
        return
    with pytest.raises((TypeError, AttributeError, client.ClientError)) as refused:
        run()
    assert words in str(refused.value)


@pytest.mark.parametrize("code", PLAIN, ids=range(1, len(PLAIN) + 1))
def test_plain_calls_work_or_name_the_right_one(code: str, names: dict[str, Any]) -> None:
    found = {
        **names,
        "Producer": sync.Producer,
        "Consumer": sync.Consumer,
        "Admin": sync.Admin,
    }
    check(code, lambda: exec(code, found))  # The calls are text, as users type them.


@pytest.mark.parametrize("code", ASYNCHRONOUS, ids=range(1, len(ASYNCHRONOUS) + 1))
def test_asynchronous_calls_work_or_name_the_right_one(code: str, names: dict[str, Any]) -> None:
    found = {
        **names,
        "Producer": client.Producer,
        "Consumer": client.Consumer,
        "Admin": client.Admin,
    }
    exec(f"async def call():\n{textwrap.indent(code.strip(), '    ')}", found)
    check(code, lambda: asyncio.run(found["call"]()))


def test_at_least_68_of_75_work() -> None:
    codes = [*PLAIN, *ASYNCHRONOUS]
    assert len(codes) == 75
    assert sum(refusal(code) is None for code in codes) >= 68
    assert all(any(code.strip().startswith(start) for code in codes) for start in REFUSED)
