"""A client logs in again over an open connection before its session ends."""

import asyncio

import pytest
from rig.issuer import AUDIENCE, Issuer

from ottla.base.errors import ErrorCode
from ottla.broker.login.login import Login
from ottla.client.common.errors import BrokerRefused, ClientError, ConnectionFailed
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.connection import connect
from ottla.client.connection.security import ClientSecurity, security_of, supply_tokens
from ottla.client.connection.view import Address
from ottla.security.sasl.bearer import OAuthBearerToken
from ottla.security.sasl.client import SaslIdentity
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest
from tests.integration.broker.test_login import PASSWORD, SCRAM, credential, play

ALICE = ClientSecurity("SASL_PLAINTEXT", SaslIdentity("SCRAM-SHA-256", "alice", PASSWORD))
ASK = MetadataRequest(topics=[])
MINUTE = {"connections_max_reauth_ms": "60000"}


def make_late(connection, broker):
    """The connection's session is over, for both ends."""
    assert connection._session is not None
    is_over(connection._session)
    connection._session._allowed_s = 0.0
    expire(broker)


def is_over(session):
    """Its time has passed; but the login before is not long ago."""
    session._begin_s = session._hold_s = 0.0


def expire(broker):
    """The broker's clock and its timers are past the end of all sessions."""
    broker.runtime.clock.advance(61_000)
    for connection in connections_of(broker):
        for callback in connection.on_lost:
            if isinstance(owner := getattr(callback, "__self__", None), Login):
                owner._on_expired()


def connections_of(broker):
    (listener,) = broker.serving.listeners.open
    return set(listener.connections)


async def open_to(broker, security=ALICE):
    return await connect(Address("127.0.0.1", broker.port), "tester", 60, security=security)


def ask(connection):
    return connection.submit(ASK, 60)


def test_requests_wait_for_the_new_login_and_are_answered():
    """All of them, over the same connection, though the broker's session was over."""

    async def scenario(broker, _connect):
        connection = await open_to(broker)
        before = connections_of(broker)
        for _ in range(3):
            make_late(connection, broker)
            answers = await asyncio.gather(*(ask(connection) for _ in range(4)))
            assert [each.controller_id for each in answers] == [1] * 4
            assert connection._session._begin_s > 0
            assert (await ask(connection)).controller_id == 1
        assert connections_of(broker) == before
        connection.close()

    play(scenario, **MINUTE)


def test_what_was_sent_before_is_answered_first():
    """And what comes in the last part of the session only waits: nothing fails."""

    async def scenario(broker, _connect):
        connection = await open_to(broker)
        early = [ask(connection) for _ in range(3)]
        is_over(connection._session)
        connection._session._allowed_s = 0.0
        late = [ask(connection) for _ in range(3)]
        connection.send_unanswered(ProduceRequest(acks=0, timeout_ms=1))
        assert connection.in_flight == 7
        assert [(await each).controller_id for each in (*early, *late)] == [1] * 6
        connection.close()

    play(scenario, **MINUTE)


def test_a_session_of_less_than_a_second_fails_no_request():
    """A broker allows a login each second: what comes after the session's end waits for it."""

    async def scenario(broker, _connect):
        connection = await open_to(broker)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        connection._session.opened(1, began_s)
        is_over(connection._session)
        expire(broker)
        assert (await ask(connection)).controller_id == 1
        assert loop.time() - began_s >= 1.0
        connection.close()

    play(scenario, **MINUTE)


def test_a_user_who_may_no_longer_log_in_is_refused():
    """The requests that wait fail with the cause, and the connection is closed."""

    async def scenario(broker, _connect):
        connection = await open_to(broker)
        await broker.parts.login.users.alter("alice", {SCRAM: credential("another")})
        make_late(connection, broker)
        with pytest.raises(BrokerRefused, match="refused the login of user 'alice'") as raised:
            await ask(connection)
        assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        assert not connection.is_open

    play(scenario, **MINUTE)


def test_a_connection_that_breaks_meanwhile_fails_what_waits():
    """With the error that callers repeat requests for."""

    async def scenario(broker, _connect):
        connection = await open_to(broker)
        make_late(connection, broker)
        waiting = ask(connection)
        for each in connections_of(broker):
            each.close_quietly()
        with pytest.raises(ConnectionFailed):
            await waiting

    play(scenario, **MINUTE)


class Program:
    """Gives tokens of an issuer, as a program does."""

    def __init__(self, issuer, now_s):
        self.issuer = issuer
        self.now_s = now_s
        self.given = 0
        self.fails = False

    def supply(self):
        if self.fails:
            raise ClientError(ErrorCode.SASL_AUTHENTICATION_FAILED, "the issuer is away")
        self.given += 1
        return OAuthBearerToken(self.issuer.token("alice", self.now_s))


@pytest.fixture
def issuer(tmp_path):
    issuer = Issuer()
    (tmp_path / "keys").write_bytes(issuer.jwks())
    return issuer


@pytest.fixture
def bearer(tmp_path):
    """Settings of a broker that knows the issuer."""
    url = f"file://{tmp_path / 'keys'}"
    return {
        "sasl_enabled_mechanisms": "OAUTHBEARER",
        "sasl_oauthbearer_allowed_urls": url,
        "sasl_oauthbearer_jwks_endpoint_url": url,
        "sasl_oauthbearer_expected_audience": AUDIENCE,
    }


CONFIG = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def test_a_program_gives_the_tokens_of_its_clients(issuer, bearer):
    """One for all connections; a new one when its time is mostly over."""

    async def scenario(broker, _connect):
        program = Program(issuer, broker.runtime.clock.now_ms() / 1000)
        supply_tokens(program.supply)
        try:
            connections = [await open_to(broker, security_of(CONFIG)) for _ in range(3)]
        finally:
            supply_tokens(None)
        # Their time is long over by this machine's clock.
        assert program.given == 3
        for connection in connections:
            assert (await ask(connection)).controller_id == 1
        program.now_s += 58
        make_late(connections[0], broker)
        assert (await ask(connections[0])).controller_id == 1
        assert program.given == 4
        for connection in connections:
            connection.close()

    play(scenario, **bearer)


def test_requests_go_on_while_there_is_no_new_token_yet(issuer, bearer):
    """Until the session ends; then its absence is the error."""

    async def scenario(broker, _connect):
        program = Program(issuer, broker.runtime.clock.now_ms() / 1000)
        supply_tokens(program.supply)
        try:
            connection = await open_to(broker, security_of(CONFIG))
        finally:
            supply_tokens(None)
        program.fails = True
        connection._session._begin_s = 0.0
        for _ in range(3):
            assert (await ask(connection)).controller_id == 1
        connection._session._hold_s = 0.0
        with pytest.raises(ClientError, match="the issuer is away"):
            await ask(connection)
        assert not connection.is_open

    play(scenario, **bearer)


def test_a_wrong_token_is_refused_with_what_to_check(issuer, bearer):
    """And without the token."""

    async def scenario(broker, _connect):
        token = Issuer().token("alice", broker.runtime.clock.now_ms() / 1000)
        supply_tokens(lambda: token)
        try:
            with pytest.raises(BrokerRefused, match="refused the token of this client") as raised:
                await open_to(broker, security_of(CONFIG))
        finally:
            supply_tokens(None)
        assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        assert token not in str(raised.value)

    play(scenario, **bearer)


def test_a_blocking_connection_logs_in_between_its_requests():
    """Answers that were asked for ahead come first, in their order."""

    async def scenario(broker, _connect):
        now_s = [100.0]

        async def later() -> None:
            broker.runtime.clock.advance(58_000)

        async def over() -> None:
            expire(broker)

        def read() -> list[int]:
            address = Address("127.0.0.1", broker.port)
            found = []
            with BlockingConnection(
                address, "tester", 60, security=ALICE, now_s=lambda: now_s[0]
            ) as connection:
                before = connections_of(broker)
                for _ in range(3):
                    connection.send(ASK)
                    connection.send(ASK)
                    now_s[0] += 58
                    asyncio.run_coroutine_threadsafe(later(), loop).result()
                    connection.send(ASK)
                    found += [connection.receive().controller_id for _ in range(3)]
                    now_s[0] += 58
                    asyncio.run_coroutine_threadsafe(over(), loop).result()
                    found.append(connection.ask(ASK, MetadataResponse).controller_id)
                assert connections_of(broker) == before
            return found

        loop = asyncio.get_running_loop()
        assert await asyncio.to_thread(read) == [1] * 12

    play(scenario, **MINUTE)
