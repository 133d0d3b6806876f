"""Laws of the connections between coordinators and the leaders of partitions."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from ottla.base.ids import BrokerId
from ottla.broker.cluster.links import Links
from ottla.broker.cluster.peers import Peers
from ottla.testing.simulation.virtual.loop import run_virtual
from ottla.wire.messages.api_versions import ApiVersionsRequest

IDLE_MS = 20_000
OTHER = BrokerId(2)


class Wire:
    """Opens connections to a broker that answers after `delay_s`, and counts them."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.opened: list[Any] = []

    async def open(self, _broker_id: BrokerId) -> Any:
        connection = SimpleNamespace(is_open=True, in_flight=0)

        async def request(_message: object, *, timeout_ms: int) -> int:
            connection.in_flight += 1
            await asyncio.sleep(self.delay_s)
            connection.in_flight -= 1
            return timeout_ms

        def close() -> None:
            connection.is_open = False

        connection.request, connection.close = request, close
        self.opened.append(connection)
        return connection


def links_over(wire: Wire) -> Links:
    return Links(cast("Peers", wire), idle_ms=IDLE_MS)


async def ask(links: Links) -> None:
    assert await links.request(OTHER, ApiVersionsRequest(), timeout_ms=7) == 7


def test_what_is_in_use_stays_open() -> None:
    """Requests share a connection, also those that come while it is opened."""

    async def scenario() -> None:
        wire = Wire()
        links = links_over(wire)
        await asyncio.gather(ask(links), ask(links))
        for _ in range(10):
            await asyncio.sleep(IDLE_MS / 1000 - 1)
            await ask(links)
        assert len(wire.opened) == 1
        links.close()
        assert not wire.opened[0].is_open

    run_virtual(scenario())


def test_what_nobody_uses_is_given_back() -> None:
    """Before the other broker does so, which would look like its death; and opened again."""

    async def scenario() -> None:
        wire = Wire()
        links = links_over(wire)
        await ask(links)
        await asyncio.sleep(2 * IDLE_MS / 1000 + 1)
        assert not wire.opened[0].is_open
        await ask(links)
        assert len(wire.opened) == 2
        links.close()

    run_virtual(scenario())


def test_an_answer_that_takes_long_is_waited_for() -> None:
    """A connection with a request on its way is in use."""

    async def scenario() -> None:
        wire = Wire(delay_s=10 * IDLE_MS / 1000)
        links = links_over(wire)
        await ask(links)
        assert wire.opened[0].is_open
        links.close()

    run_virtual(scenario())


def test_one_that_broke_is_replaced() -> None:
    """The next request opens another."""

    async def scenario() -> None:
        wire = Wire()
        links = links_over(wire)
        await ask(links)
        wire.opened[0].is_open = False
        await ask(links)
        assert len(wire.opened) == 2
        links.close()

    run_virtual(scenario())


def test_who_has_died_is_not_waited_for() -> None:
    """A broker that left takes its connections with it; those of others stay."""

    async def scenario() -> None:
        wire = Wire()
        links = links_over(wire)
        await ask(links)
        links.keep_only({OTHER})
        assert wire.opened[0].is_open
        links.keep_only({BrokerId(1)})
        assert not wire.opened[0].is_open
        await ask(links)
        assert len(wire.opened) == 2
        links.close()

    run_virtual(scenario())
