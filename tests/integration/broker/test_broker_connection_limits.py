"""How fast connections are taken, and how many, from where."""

import asyncio

from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    produce,
    produced,
    until,
)
from tests.integration.broker.quota_client import alter, run, skipping


async def tries(port):
    """Whether a new connection is served."""
    client = await Client.connect(port)
    try:
        return (await client.call(ApiVersionsRequest(), 0)).error_code == 0
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    finally:
        client.close()


def test_an_address_that_connects_too_fast_is_closed():
    """connection_creation_rate of an ip; another's, or none, is not concerned."""

    async def scenario():
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        async with connected() as (broker, client):
            await alter(client, [("ip", "10.9.9.9")], connection_creation_rate=1.0)
            assert await tries(broker.port)
            await alter(client, [("ip", "127.0.0.1")], connection_creation_rate=1.0)
            outcomes = await asyncio.gather(*(tries(broker.port) for _ in range(30)))
            assert outcomes.count(True) >= 1
            assert outcomes.count(True) <= 1 + (loop.time() - started_s)
            await alter(client, [("ip", "127.0.0.1")], connection_creation_rate=None)
            assert await tries(broker.port)

    run(scenario())


def test_connections_beyond_the_rate_of_the_broker_are_served_later():
    """max.connection.creation.rate: nobody is closed."""
    loop = asyncio.new_event_loop()
    skipped_s = skipping(loop)

    async def scenario():
        async with connected({"max.connection.creation.rate": "1"}) as (broker, _):
            late = await Client.connect(broker.port)
            late.send(ApiVersionsRequest(), 0)
            await until(lambda: len(broker.serving.listeners.open[0].connections) == 2)
            *_, connection = broker.serving.listeners.open[0].connections
            if connection.is_muted:
                skipped_s.append(60)
            await late.receive_frame()
            late.close()

    loop.run_until_complete(scenario())
    loop.close()


def test_a_large_first_request_of_a_late_connection_is_served():
    """Its head comes while the connection is delayed, its rest when the delay is over."""
    loop = asyncio.new_event_loop()
    skipped_s = skipping(loop)

    async def scenario():
        async with connected({"max.connection.creation.rate": "1"}) as (broker, _):
            late = await Client.connect(broker.port)
            request = produce("a", batch(b"x" * 700_000))
            data = b"".join(bytes(part) for part in encode_request(request, 9, 1, "test"))
            late.writer.write(data[:1000])
            await until(lambda: len(broker.serving.listeners.open[0].connections) == 2)
            *_, connection = broker.serving.listeners.open[0].connections
            transport = connection._transport
            await until(lambda: not transport.is_reading() or not connection.is_muted)
            if connection.is_muted:
                skipped_s.append(60)
            late.writer.write(data[1000:])
            assert produced(await late.receive(0, 9)).error_code == 0
            late.close()

    loop.run_until_complete(scenario())
    loop.close()


def test_limits_of_connections_change_while_running():
    """max.connections, and an address with a limit of its own."""

    async def scenario():
        async with connected() as (broker, _):
            assert await tries(broker.port)
            broker.settings.set_dynamic({"max.connections.per.ip.overrides": "127.0.0.1:1"}, {})
            assert not await tries(broker.port)
            broker.settings.set_dynamic({}, {})
            await until(lambda: len(broker.serving.listeners.open[0].connections) == 1)
            assert await tries(broker.port)

    run(scenario())
