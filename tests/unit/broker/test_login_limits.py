"""Logins and limits of connections: of users, and of addresses that fail."""

import asyncio
import logging

from ottla.security.sasl.scram_keys import ScramMechanism

from .test_login import PASSWORD, credential, play

SCRAM = ScramMechanism.SCRAM_SHA_256


async def is_served(caller):
    try:
        return (await caller.log_in()).error_code == 0
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


def test_a_user_has_so_many_connections(caplog):
    """One more is closed after its login, and the log says why; another user's is not."""

    async def scenario(broker, connect):
        await broker.parts.users.alter("bob", {SCRAM: credential(PASSWORD)})
        callers = [await connect() for _ in range(4)]
        assert [await is_served(each) for each in callers[:3]] == [True, True, False]
        assert (await callers[3].log_in("bob")).error_code == 0
        await callers[0].close()
        late = await connect()
        while not await is_served(late):
            late = await connect()

    play(scenario, max_connections_per_user="5", max_connections_per_user_overrides="alice:2")
    assert "user alice already has max.connections.per.user (2) of them" in caplog.text


def test_an_address_that_fails_too_often_is_closed(caplog):
    """Once its connections would wait for long; its open ones are served on. One line says so."""

    async def fail(caller):
        try:
            return (await caller.log_in("alice", "wrong")).error_code
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def scenario(broker, connect):
        known = await connect()
        assert await is_served(known)
        # 3 failures are too many here; of the connections that follow 6 fit into five seconds.
        for _ in range(3):
            assert await fail(await connect()) != 0
        (listener,) = broker.listeners.open
        waiting = [await connect() for _ in range(6)]
        while sum(each.is_muted for each in listener.connections) < 5:
            await asyncio.sleep(0.001)
        late = [await connect() for _ in range(20)]
        assert [await fail(each) for each in late].count(None) >= 15
        assert (await known.begin()).error_code != 0
        broker.settings.set_dynamic({"max.failed.authentication.rate": "1000"}, {})
        assert await is_served(await connect())
        for each in waiting:
            await each.close()

    caplog.set_level(logging.INFO)
    play(scenario, max_failed_authentication_rate="1")
    assert caplog.text.count("clients of its address fail to log in too often") == 1


def test_connections_that_give_up_their_logins_count_as_failures():
    """Not those that sent nothing: load balancers connect to see whether a broker lives."""

    async def scenario(broker, connect):
        failing = broker.parts.quotas.connections.failing
        for _ in range(3):
            caller = await connect()
            await caller.close()
        caller = await connect()
        await is_served(caller)
        await caller.close()
        (listener,) = broker.listeners.open
        while len(listener.connections) > 1:
            await asyncio.sleep(0.001)
        assert failing._addresses == {}
        caller = await connect()
        await caller.begin()
        await caller.close()
        while not failing._addresses:
            await asyncio.sleep(0.001)
        assert failing._addresses["127.0.0.1"].level == 1

    play(scenario)
