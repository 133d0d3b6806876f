"""Logins and limits of connections: of users, and of addresses that fail."""

import asyncio
import logging

from ottla.broker.quotas.quota_settings import QuotaChange
from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.security.sasl.plain import write_plain
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.security.sasl.session import LoginState
from ottla.wire.frames import encode_request
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest
from tests.integration.broker.broker_client import until
from tests.integration.broker.test_login import PASSWORD, credential, play

SCRAM = ScramMechanism.SCRAM_SHA_256


async def is_served(caller):
    try:
        return (await caller.log_in()).error_code == 0
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


def test_a_user_has_so_many_connections(caplog):
    """One more is closed after its login, and the log says why; another user's is not."""

    async def scenario(broker, connect):
        await broker.parts.login.users.alter("bob", {SCRAM: credential(PASSWORD)})
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
        (listener,) = broker.serving.listeners.open
        waiting = [await connect() for _ in range(6)]
        await until(lambda: sum(each.is_muted for each in listener.connections) >= 5)
        late = [await connect() for _ in range(20)]
        assert (await asyncio.gather(*(fail(each) for each in late))).count(None) >= 15
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
        (listener,) = broker.serving.listeners.open
        await until(lambda: len(listener.connections) == 1)
        assert failing._addresses == {}
        caller = await connect()
        await caller.begin()
        await caller.close()
        await until(lambda: failing._addresses)
        assert failing._addresses["127.0.0.1"].level == 1

    play(scenario)


def test_a_quota_is_of_the_user_that_has_logged_in():
    """Its own, else that of the default user; before its login a client has none."""

    async def scenario(broker, connect):
        users = broker.parts.login.users
        for name in ("bob", "carol"):
            await users.alter(name, {SCRAM: credential(PASSWORD)})
        quotas = broker.parts.quotas.stored
        # Of percents of the loop's time: less than any request takes.
        for entity, percent in (
            (QuotaEntity("alice"), 1e-6),
            (QuotaEntity("bob"), 1e6),
            (QuotaEntity(DEFAULT), 1e-6),
            (QuotaEntity("carol", "tester"), 1e6),
        ):
            change = QuotaChange("request_percentage", percent)
            await quotas.alter(entity, [change], validate_only=False)
        throttled = {}
        for name in ("alice", "bob", "carol"):
            caller = await connect()
            await caller.log_in(name)
            answer = await caller.call(MetadataRequest(topics=[]), 12)
            throttled[name] = answer.throttle_time_ms > 0
        assert throttled == {"alice": True, "bob": False, "carol": False}
        await quotas.alter(
            QuotaEntity("bob"), [QuotaChange("request_percentage", None)], validate_only=False
        )
        caller = await connect()
        await caller.log_in("bob")
        assert (await caller.call(MetadataRequest(topics=[]), 12)).throttle_time_ms > 0

    play(scenario)


def test_a_client_that_ends_while_its_password_is_hashed_is_not_counted():
    """Neither then nor later: its user's other connections have their places."""

    async def scenario(broker, connect):
        (listener,) = broker.serving.listeners.open
        await broker.parts.login.users.alter("alice", {SCRAM: credential(PASSWORD, 300_000)})
        for _ in range(2):
            caller = await connect()
            assert (await caller.begin("PLAIN")).error_code == 0
            token = SaslAuthenticateRequest(auth_bytes=write_plain("alice", PASSWORD))
            for part in encode_request(token, 2, 7, "tester"):
                caller._writer.write(part)
            *_, connection = listener.connections
            session = connection._serve.__self__._session
            await until(lambda session=session: session.state is not LoginState.EXCHANGE)
            assert session.state is LoginState.JUDGING
            connection._transport.abort()
            await until(lambda session=session: session.state is not LoginState.JUDGING)
        assert not broker.parts.quotas.connections._per_user
        assert await is_served(await connect())

    play(
        scenario,
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256",
        sasl_plain_without_tls_enable="true",
    )
