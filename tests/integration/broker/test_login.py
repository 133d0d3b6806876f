"""Logins over a SASL listener of a broker in this process: what is served, and what is logged."""

import asyncio
import contextlib
import logging
import struct

import pytest
from rig.secret_search import register

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.registration import agree_on_secret
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.network.dialer import LoopDialer
from ottla.security.sasl.client import SaslIdentity, ScramClient
from ottla.security.sasl.plain import write_plain
from ottla.security.sasl.scram_keys import (
    ScramMechanism,
    credential_of,
    new_credential,
    salted_password,
)
from ottla.security.sasl.session import LoginState
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from tests.integration.broker.broker_client import until
from tests.integration.broker.inprocess import Caller, run

SCRAM = ScramMechanism.SCRAM_SHA_256
PASSWORD = "correct horse"
register(PASSWORD)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "connection.failed.authentication.delay.ms": "1",
}


class Raw(Caller):
    """A connection that can also be ended by the broker, and send what is no request."""

    async def send(self, content):
        self._writer.write(struct.pack(">i", len(content)) + content)

    async def send_part(self, size, part):
        """The beginning of a request."""
        self._writer.write(struct.pack(">i", size) + bytes(part))
        await self._writer.drain()

    async def receive(self):
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    async def is_closed(self):
        return await self._reader.read(1) == b""

    async def token(self, content, version=2):
        return await self.call(SaslAuthenticateRequest(auth_bytes=content), version)

    async def begin(self, mechanism="SCRAM-SHA-256"):
        return await self.call(SaslHandshakeRequest(mechanism=mechanism), 1)

    async def log_in(self, user="alice", password=PASSWORD):
        assert (await self.begin()).error_code == 0
        client = ScramClient(SCRAM, user, password, "clientnonce", {})
        answer = await self.token(client.first)
        assert answer.error_code == 0
        final = client.step(answer.auth_bytes)
        register(final.partition(b",p=")[2], "a client's proof")
        last = await self.token(final)
        if not last.error_code:
            assert client.step(last.auth_bytes) == b""
        return last


def play(scenario, **settings):
    """Run `scenario(broker, connect)` on a broker that knows alice."""

    async def with_broker(caller):
        broker = caller.broker
        await broker.parts.login.users.alter("alice", {SCRAM: credential(PASSWORD)})
        opened = []

        async def connect():
            opened.append(Raw(broker, *await asyncio.open_connection("127.0.0.1", broker.port)))
            return opened[-1]

        await scenario(broker, connect)
        for each in opened:
            # The broker may have left bytes of it unread.
            with contextlib.suppress(ConnectionError):
                await each.close()

    run(with_broker, {**SETTINGS, **{k.replace("_", "."): v for k, v in settings.items()}})


def credential(password, iterations=4096):
    # As long as the salts of Ottla's own users, which unknown users are shown.
    salt = b"salt" * 8
    salted = salted_password(SCRAM, password, salt, iterations)
    return credential_of(SCRAM, salted, salt, iterations)


def test_a_user_logs_in_and_is_served(caplog):
    """ApiVersions, handshake, tokens; then requests as on any listener, in her name."""

    async def scenario(broker, connect):
        caller = await connect()
        versions = await caller.call(ApiVersionsRequest(), 0)
        assert versions.error_code == 0
        last = await caller.log_in()
        assert (last.error_code, last.error_message, last.session_lifetime_ms) == (0, None, 0)
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        (listener,) = broker.serving.listeners.open
        assert "User:alice" in [str(each.principal) for each in listener.connections]
        again = await caller.begin()
        assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE

    play(scenario)
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "request_", [MetadataRequest(topics=[]), SaslAuthenticateRequest(auth_bytes=b"x")]
)
def test_nothing_is_served_before_login(request_, caplog):
    """The connection ends, and the log says what to do."""

    async def scenario(_broker, connect):
        caller = await connect()
        for part in encode_request(request_, 1, 7, "tester"):
            caller._writer.write(part)
        assert await caller.is_closed()

    play(scenario)
    assert "before it logged in: set security.protocol" in caplog.text


def test_wrong_password_and_unknown_user_get_the_same_answers(caplog):
    """Code, words and shape of every answer; the log has the cause, and no secret."""

    async def scenario(_broker, connect):
        answers = []
        for user in ("alice", "mallory"):
            caller = await connect()
            assert (await caller.begin()).error_code == 0
            client = ScramClient(SCRAM, user, "wrong secret", "clientnonce", {})
            first = await caller.token(client.first)
            shape = [(part[:2], len(part)) for part in first.auth_bytes.split(b",")]
            final = await caller.token(client.step(first.auth_bytes))
            answers.append((shape, final.error_code, final.error_message, final.auth_bytes))
            assert await caller.is_closed()
        assert answers[0] == answers[1]
        assert answers[0][1] == ErrorCode.SASL_AUTHENTICATION_FAILED

    caplog.set_level(logging.INFO)
    play(scenario)
    assert "the proof of user 'alice' is wrong" in caplog.text
    assert "there is no user 'mallory'" in caplog.text
    assert "wrong secret" not in caplog.text


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are():
    """Then the connection ends."""

    async def scenario(_broker, connect):
        caller = await connect()
        answer = await caller.begin("GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["SCRAM-SHA-256"]
        assert await caller.is_closed()

    play(scenario)


def test_tokens_go_without_headers_after_a_handshake_of_version_0():
    """As old clients send them."""

    async def scenario(_broker, connect):
        caller = await connect()
        request = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
        assert (await caller.call(request, 0)).error_code == 0
        client = ScramClient(SCRAM, "alice", PASSWORD, "clientnonce", {})
        await caller.send(client.first)
        await caller.send(client.step(await caller.receive()))
        assert client.step(await caller.receive()) == b""
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        other = await connect()
        assert (await other.call(request, 0)).error_code == 0
        await other.send(b"\x00")
        assert await other.is_closed()

    play(scenario)


def test_large_requests_are_for_users():
    """64 KiB before login; a frame that announces more ends the connection."""

    async def scenario(_broker, connect):
        caller = await connect()
        caller._writer.write(struct.pack(">ihhi", 65_537, 18, 0, 1))
        assert await caller.is_closed()
        caller = await connect()
        await caller.log_in()
        request = MetadataRequest(topics=None)
        parts = [bytes(part) for part in encode_request(request, 1, 7, "x" * 30_000)]
        assert sum(map(len, parts)) > 30_000
        frame = b"".join(parts)
        caller._writer.write(frame * 4)
        for _ in range(4):
            decode_response(3, 1, await caller.receive())

    play(scenario)


def test_a_client_that_does_not_log_in_is_closed(caplog):
    """Within the time that the setting gives."""

    async def scenario(_broker, connect):
        assert await (await connect()).is_closed()

    play(scenario, connection_authentication_timeout_ms="50")
    assert "did not log in within 50 ms" in caplog.text


def test_a_session_goes_on_when_its_client_logs_in_again():
    """In time, over the same connection; the answer says how long the session lasts."""

    async def scenario(broker, connect):
        caller = await connect()
        assert (await caller.log_in()).session_lifetime_ms == 60_000
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        broker.runtime.clock.advance(50_000)
        assert (await caller.log_in()).session_lifetime_ms == 60_000
        broker.runtime.clock.advance(50_000)
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1

    play(scenario, connections_max_reauth_ms="60000")


def test_a_session_that_is_over_ends_with_the_next_request(caplog):
    """Unless that begins a login."""

    async def scenario(broker, connect):
        late, too_late = await connect(), await connect()
        await late.log_in()
        await too_late.log_in()
        await asyncio.sleep(0.06)
        broker.runtime.clock.advance(60)
        await late.log_in()
        for part in encode_request(MetadataRequest(topics=[]), 12, 7, "tester"):
            too_late._writer.write(part)
        assert await too_late.is_closed()

    play(scenario, connections_max_reauth_ms="50")
    assert "the session of User:alice is over" in caplog.text


def test_a_timer_that_is_early_does_not_end_a_session(caplog):
    """Two clocks measure a session: what the session's own still allows is served."""

    async def scenario(broker, connect):
        caller = await connect()
        await caller.log_in()
        # The timer is the loop's; the broker's own clock stands still.
        await asyncio.sleep(0.06)
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        broker.runtime.clock.advance(50)
        for part in encode_request(MetadataRequest(topics=[]), 12, 7, "tester"):
            caller._writer.write(part)
        assert await caller.is_closed()

    play(scenario, connections_max_reauth_ms="50")
    assert "failed unexpectedly" not in caplog.text
    assert "the session of User:alice is over" in caplog.text


def test_another_user_does_not_take_a_session_over(caplog):
    """The same principal, or the connection ends."""

    async def scenario(broker, connect):
        await broker.parts.login.users.alter("bob", {SCRAM: credential("other")})
        caller = await connect()
        await caller.log_in()
        last = await caller.log_in("bob", "other")
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await caller.is_closed()

    play(scenario, connections_max_reauth_ms="60000")
    assert "User:alice logged in again as User:bob" in caplog.text


def test_credentials_are_altered_and_described_as_by_kafka():
    """Its codes for each mistake; a removed credential lets nobody in."""

    async def scenario(_broker, connect):
        caller = await connect()
        await caller.log_in()

        async def alter(**changes):
            answer = await caller.call(AlterUserScramCredentialsRequest(**changes), 0)
            return {each.user: ErrorCode(each.error_code).name for each in answer.results}

        def upsert(name, mechanism=1, iterations=4096, salt=b"s", hashed=bytes(32)):
            return ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism,
                iterations=iterations,
                salt=salt,
                salted_password=hashed,
            )

        assert await alter(
            upsertions=[
                upsert("few", iterations=4095),
                upsert("many", iterations=16_385),
                upsert("no salt", salt=b""),
                upsert("no hash", hashed=b""),
                upsert("odd", mechanism=3),
                upsert("twice"),
                upsert("twice"),
                upsert(""),
                upsert("both"),
                upsert("both", mechanism=2, iterations=8192, hashed=bytes(64)),
            ],
            deletions=[ScramCredentialDeletion(name="none", mechanism=1)],
        ) == {
            "few": "UNACCEPTABLE_CREDENTIAL",
            "many": "UNACCEPTABLE_CREDENTIAL",
            "no salt": "UNACCEPTABLE_CREDENTIAL",
            "no hash": "UNACCEPTABLE_CREDENTIAL",
            "odd": "UNSUPPORTED_SASL_MECHANISM",
            "twice": "DUPLICATE_RESOURCE",
            "": "UNACCEPTABLE_CREDENTIAL",
            "both": "NONE",
            "none": "RESOURCE_NOT_FOUND",
        }

        async def described(*names):
            users = [UserName(name=name) for name in names] or None
            answer = await caller.call(DescribeUserScramCredentialsRequest(users=users), 0)
            return {
                each.user: (
                    ErrorCode(each.error_code).name,
                    [(info.mechanism, info.iterations) for info in each.credential_infos],
                )
                for each in answer.results
            }

        assert await described() == {
            "alice": ("NONE", [(1, 4096)]),
            "both": ("NONE", [(1, 4096), (2, 8192)]),
        }
        assert await described("both", "nobody") == {
            "both": ("NONE", [(1, 4096), (2, 8192)]),
            "nobody": ("RESOURCE_NOT_FOUND", []),
        }
        deletion = ScramCredentialDeletion(name="alice", mechanism=1)
        assert await alter(deletions=[deletion]) == {"alice": "NONE"}
        last = await (await connect()).log_in()
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(scenario)


JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize("listed", [False, True])
def test_plain_takes_the_users_of_the_settings_or_those_of_the_store(listed, caplog):
    """Answers to a wrong password and to an unknown user are the same."""
    settings = {"sasl_jaas_config": f'{JAAS} user_alice="{PASSWORD}";'} if listed else {}

    async def scenario(_broker, connect):
        async def log_in(user, password):
            caller = await connect()
            assert (await caller.begin("PLAIN")).error_code == 0
            answer = await caller.token(write_plain(user, password))
            return caller, (answer.error_code, answer.error_message, answer.auth_bytes)

        caller, answer = await log_in("alice", PASSWORD)
        assert answer == (0, None, b"")
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        _, wrong = await log_in("alice", "wrong secret")
        _, unknown = await log_in("mallory", "wrong secret")
        assert wrong == unknown
        assert wrong[0] == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(
        scenario,
        sasl_enabled_mechanisms="PLAIN",
        sasl_plain_without_tls_enable="true",
        **settings,
    )
    assert "wrong secret" not in caplog.text
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl_enabled_mechanisms": "PLAIN"}, "sasl.plain.without.tls.enable=true"),
        ({"sasl_enabled_mechanisms": "GSSAPI"}, "there is no GSSAPI here"),
        ({"sasl_mechanism_inter_broker_protocol": "PLAIN"}, "plain.sasl.jaas.config is missing"),
        (
            {"sasl_mechanism_inter_broker_protocol": "PLAIN", "sasl_jaas_config": "secret"},
            "sasl.jaas.config: it does not begin",
        ),
    ],
)
def test_a_listener_that_could_let_nobody_in_is_refused_at_start(settings, words):
    """And so is one that would show passwords to the network."""

    async def scenario(_broker, _connect):
        raise AssertionError

    with pytest.raises(OttlaError) as raised:
        play(scenario, **settings)
    assert words in raised.value.message
    assert "secret" not in raised.value.message


def test_a_plain_token_is_no_scram_token():
    """Nor is a message of anything else."""

    async def scenario(_broker, connect):
        caller = await connect()
        await caller.begin()
        answer = await caller.token(write_plain("alice", PASSWORD))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await caller.is_closed()

    play(scenario)


@pytest.mark.parametrize("password", [PASSWORD, "wrong secret"])
def test_brokers_log_in_before_they_prove_that_they_know_the_secret(password, caplog):
    """A wrong password keeps a broker out, though it knows the cluster's secret."""

    async def scenario(broker, _connect):
        view = broker.parts.cluster.view
        secret = await agree_on_secret(broker.storage.store, random_bytes)
        own = Credentials(2, view.cluster_id, secret, random_bytes, lambda: 1)
        there = BrokerImage(1, {"SASL_PLAINTEXT": Endpoint("127.0.0.1", broker.port)}, None, 0)
        image = view.image.with_broker(there)
        identity = SaslIdentity("SCRAM-SHA-256", "alice", password)
        peers = Peers(own, lambda: image, "SASL_PLAINTEXT", LoopDialer(), PeerLimits(), identity)
        try:
            if password == PASSWORD:
                answer = await peers.request(1, ApiVersionsRequest(), version=0)
                assert answer.error_code == 0
                return
            with pytest.raises(OttlaError, match="refused the login of user 'alice'") as raised:
                await peers.request(1, ApiVersionsRequest(), version=0)
            assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        finally:
            peers.close()

    play(scenario)
    assert password not in caplog.text


def test_a_user_that_is_removed_is_served_no_more(caplog):
    """By any mechanism; its last answer still comes. Others go on, also with a new password."""

    async def scenario(broker, connect):
        users = broker.parts.login.users
        await users.alter("bob", {SCRAM: credential(PASSWORD)})
        alice, again, bob = [await connect() for _ in range(3)]
        assert (await alice.log_in()).error_code == 0
        assert (await bob.log_in("bob")).error_code == 0
        assert (await again.begin("PLAIN")).error_code == 0
        assert (await again.token(write_plain("alice", PASSWORD))).error_code == 0
        await users.alter("alice", {SCRAM: credential("another one")})
        for each in (alice, again):
            assert (await each.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        removal = AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="alice", mechanism=1)]
        )
        answer = await alice.call(removal, 0)
        assert [each.error_code for each in answer.results] == [0]
        assert await alice.is_closed()
        assert await again.is_closed()
        assert (await bob.call(MetadataRequest(topics=[]), 12)).controller_id == 1

    play(
        scenario,
        sasl_enabled_mechanisms="SCRAM-SHA-256,PLAIN",
        sasl_plain_without_tls_enable="true",
    )
    assert "User:alice logged in with the user 'alice', which was removed" in caplog.text


@pytest.mark.parametrize("after", [None, credential("another one")])
def test_no_session_of_plain_begins_with_a_password_that_was_replaced_meanwhile(after):
    """While it was hashed: the user was removed, or has another."""

    async def scenario(broker, connect):
        users = broker.parts.login.users
        await users.alter("alice", {SCRAM: credential(PASSWORD, 300_000)})
        (listener,) = broker.serving.listeners.open
        caller = await connect()
        assert (await caller.begin("PLAIN")).error_code == 0
        login = asyncio.create_task(caller.token(write_plain("alice", PASSWORD)))
        *_, connection = listener.connections
        session = connection._serve.__self__._session
        await until(lambda: session.state is LoginState.JUDGING)
        await users.alter("alice", {SCRAM: after})
        assert (await login).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(
        scenario,
        sasl_enabled_mechanisms="SCRAM-SHA-256,PLAIN",
        sasl_plain_without_tls_enable="true",
    )


def test_an_unknown_user_of_plain_costs_the_hash_that_users_have():
    """Its answer takes as long, where all have SCRAM-SHA-512; where some do, some do."""

    async def scenario(broker, _connect):
        users, other = broker.parts.login.users, ScramMechanism.SCRAM_SHA_512
        made = new_credential(other, PASSWORD, b"salt", 4096)
        names = [f"unknown {number}" for number in range(100)]
        await users.alter("alice", {SCRAM: None, other: made})
        assert {users.mechanism_of_unknown(name) for name in names} == {other}
        await users.alter("bob", {SCRAM: credential(PASSWORD)})
        found = [users.mechanism_of_unknown(name) for name in names]
        assert 25 < found.count(other) < 75
        assert found == [users.mechanism_of_unknown(name) for name in names]

    play(scenario)


def test_a_user_of_the_settings_is_none_of_the_store():
    """A removal in the store does not end the session that another password began."""

    async def scenario(broker, connect):
        caller = await connect()
        assert (await caller.begin("PLAIN")).error_code == 0
        assert (await caller.token(write_plain("alice", "of the settings"))).error_code == 0
        await broker.parts.login.users.alter("alice", {SCRAM: None})
        await asyncio.sleep(0.2)
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1

    play(
        scenario,
        sasl_enabled_mechanisms="PLAIN",
        sasl_plain_without_tls_enable="true",
        sasl_jaas_config="org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' user_alice="of the settings";',
    )


def test_no_session_begins_with_a_credential_that_was_removed_meanwhile():
    """Between the first and the last message of SCRAM."""

    async def scenario(broker, connect):
        caller = await connect()
        assert (await caller.begin()).error_code == 0
        client = ScramClient(SCRAM, "alice", PASSWORD, "clientnonce", {})
        final = client.step((await caller.token(client.first)).auth_bytes)
        register(final.partition(b",p=")[2], "a client's proof")
        await broker.parts.login.users.alter("alice", {SCRAM: None})
        last = await caller.token(final)
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(scenario)
