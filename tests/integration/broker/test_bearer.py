"""Logins by OAUTHBEARER, over a listener of a broker in this process."""

import asyncio
import logging

import pytest
from rig.issuer import AUDIENCE, Issuer, signed

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.peer_login import broker_identity
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.cluster.registration import agree_on_secret
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.network.dialer import LoopDialer
from ottla.security.sasl.bearer import CLIENT_GIVES_UP, write_bearer
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.integration.broker.test_login import play

INVALID = b'{"status":"invalid_token"}'


@pytest.fixture
def issuer():
    return Issuer()


class Bearer:
    """A broker whose issuer's keys are in a file."""

    def __init__(self, issuer, folder):
        self.issuer = issuer
        self.file = folder / "keys.json"
        self.publish()

    def publish(self):
        self.file.write_bytes(self.issuer.jwks())

    def play(self, scenario, **settings):
        url = f"file://{self.file}"
        chosen = {
            "sasl_enabled_mechanisms": "OAUTHBEARER",
            "sasl_oauthbearer_allowed_urls": url,
            "sasl_oauthbearer_jwks_endpoint_url": url,
            "sasl_oauthbearer_expected_audience": AUDIENCE,
            "sasl_oauthbearer_expected_issuer": self.issuer.name,
            **settings,
        }

        async def with_now(broker, connect):
            await scenario(broker, connect, broker.runtime.clock.now_ms() / 1000)

        play(with_now, **{name: value for name, value in chosen.items() if value is not None})


@pytest.fixture
def bearer(issuer, tmp_path):
    return Bearer(issuer, tmp_path)


async def log_in(caller, token):
    assert (await caller.begin("OAUTHBEARER")).error_code == 0
    return await caller.token(write_bearer(token, {"traceId": "7"}))


async def fail(caller, token):
    """The refusal of a token: its text, then an error with the same words, then the end."""
    answer = await log_in(caller, token)
    assert (answer.error_code, answer.auth_bytes) == (0, INVALID)
    last = await caller.token(CLIENT_GIVES_UP)
    assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert last.error_message.encode() == INVALID
    assert await caller.is_closed()


def test_a_token_is_a_session_until_it_expires(bearer, issuer, caplog):
    """Its subject is the user; the client may log in again on the connection with a newer one."""

    async def scenario(broker, connect, now_s):
        caller = await connect()
        answer = await log_in(caller, issuer.token("alice", now_s))
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 599_000 <= answer.session_lifetime_ms <= 600_000
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        (listener,) = broker.serving.listeners.open
        assert "User:alice" in [str(each.principal) for each in listener.connections]
        again = await log_in(caller, issuer.token("alice", now_s, exp=now_s + 60))
        assert 59_000 <= again.session_lifetime_ms <= 60_000

    caplog.set_level(logging.INFO)
    bearer.play(scenario)
    assert "keys.json: 'key-1'" in caplog.text


def test_a_session_is_not_longer_than_the_setting_allows(bearer, issuer):
    """The sooner of connections.max.reauth.ms and the token's end."""

    async def scenario(_broker, connect, now_s):
        answer = await log_in(await connect(), issuer.token("alice", now_s))
        assert answer.session_lifetime_ms == 5_000
        answer = await log_in(await connect(), issuer.token("alice", now_s, exp=now_s + 2))
        assert answer.session_lifetime_ms <= 2_000

    bearer.play(scenario, connections_max_reauth_ms="5000")


def test_a_token_that_is_over_within_the_skew_serves_no_request(bearer, issuer):
    """Not even those that were sent together with it; as with Kafka its session ends at once."""

    async def scenario(_broker, connect, now_s):
        caller = await connect()
        assert (await caller.begin("OAUTHBEARER")).error_code == 0
        token = issuer.token("alice", now_s - 60, exp=now_s - 10)
        for message, version in (
            (SaslAuthenticateRequest(auth_bytes=write_bearer(token)), 2),
            (MetadataRequest(topics=[]), 12),
        ):
            for part in encode_request(message, version, 7, "tester"):
                caller._writer.write(part)
        assert await _all_answers(caller) == 1

    bearer.play(scenario)


def test_a_token_of_another_user_does_not_take_a_session_over(bearer, issuer, caplog):
    """Nor does one that has become bad."""

    async def scenario(_broker, connect, now_s):
        caller = await connect()
        await log_in(caller, issuer.token("alice", now_s))
        answer = await log_in(caller, issuer.token("bob", now_s))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await caller.is_closed()
        caller = await connect()
        await log_in(caller, issuer.token("alice", now_s))
        await fail(caller, issuer.token("alice", now_s - 1000))

    bearer.play(scenario)
    assert "User:alice logged in again as User:bob" in caplog.text


def test_a_refused_token_is_answered_as_by_kafka(bearer, issuer, caplog):
    """Whatever is wrong with it; the log says what, and has nothing of the token in it."""
    tokens = []

    async def scenario(_broker, connect, now_s):
        claims = issuer.claims("alice", now_s)
        tokens[:] = [
            issuer.token("alice", now_s - 1000),
            issuer.token("alice", now_s, nbf=now_s + 100),
            issuer.token("alice", now_s, aud="billing"),
            issuer.token("alice", now_s, iss="https://other"),
            issuer.token("alice", now_s, sub=None),
            signed(claims, Issuer().keys[0], "ES256"),
            "opaque",
        ]
        for token in tokens:
            await fail(await connect(), token)

    bearer.play(scenario, connection_failed_authentication_delay_ms="0")
    for words in (
        "token expired 400 s ago",
        "valid only in 100 s",
        "for audience 'billing'",
        "of issuer 'https://other'",
        "no claim sub",
        "is not of the issuer's key",
        "no signed JWT",
    ):
        assert words in caplog.text
    assert all(part not in caplog.text for token in tokens[:-1] for part in token.split("."))


def test_after_a_refusal_no_other_message_is_taken(bearer, issuer):
    """Kafka takes another token there, so that tokens could be tried on one connection."""

    async def scenario(_broker, connect, now_s):
        caller = await connect()
        assert (await log_in(caller, "a.b.c")).auth_bytes == INVALID
        last = await caller.token(write_bearer(issuer.token("alice", now_s)))
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await caller.is_closed()

    bearer.play(scenario)


def test_a_client_that_leaves_after_its_refusal_is_logged(bearer, caplog):
    """Its cause stands in the log, and the failure counts."""

    async def scenario(broker, connect, _now_s):
        caller = await connect()
        assert (await log_in(caller, "a.b.c")).auth_bytes == INVALID
        await caller.close()

    bearer.play(scenario)
    assert "its login failed: OAUTHBEARER: its token is no signed JWT" in caplog.text


def test_a_client_that_is_too_quick_waits_for_the_answer(bearer, issuer):
    """Requests sent behind the token are served after it, and not at all after a bad one."""

    async def scenario(_broker, connect, now_s):
        caller = await connect()
        assert (await caller.begin("OAUTHBEARER")).error_code == 0
        for message, version in (
            (write_bearer("a.b.c"), None),
            (MetadataRequest(topics=[]), 12),
        ):
            await _send(caller, message, version)
        assert await _all_answers(caller) == 1

    bearer.play(scenario, connection_failed_authentication_delay_ms="20")


async def _send(caller, message, version):
    if version is None:
        message, version = SaslAuthenticateRequest(auth_bytes=message), 2
    for part in encode_request(message, version, 7, "tester"):
        caller._writer.write(part)


async def _all_answers(caller):
    """How many answers come before the end of the connection."""
    count = 0
    try:
        while True:
            await caller.receive()
            count += 1
    except asyncio.IncompleteReadError:
        return count


def test_a_name_to_act_under_is_the_tokens(bearer, issuer, caplog):
    """Another one fails; there is no acting as others."""

    async def scenario(_broker, connect, now_s):
        token = issuer.token("alice", now_s)
        for name, code in (("alice", 0), ("bob", ErrorCode.SASL_AUTHENTICATION_FAILED)):
            caller = await connect()
            await caller.begin("OAUTHBEARER")
            message = write_bearer(token).replace(b"n,,", f"n,a={name},".encode())
            assert (await caller.token(message)).error_code == code

    bearer.play(scenario)
    assert "asks to act as 'bob'" in caplog.text


def test_tokens_go_without_headers_after_a_handshake_of_version_0(bearer, issuer):
    """As old clients send them: the refusal is a token, too."""

    async def scenario(_broker, connect, now_s):
        request = SaslHandshakeRequest(mechanism="OAUTHBEARER")
        caller = await connect()
        assert (await caller.call(request, 0)).error_code == 0
        await caller.send(write_bearer(issuer.token("alice", now_s)))
        assert await caller.receive() == b""
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        other = await connect()
        assert (await other.call(request, 0)).error_code == 0
        await other.send(write_bearer("a.b.c"))
        assert await other.receive() == INVALID
        await other.send(CLIENT_GIVES_UP)
        assert await other.is_closed()

    bearer.play(scenario)


def test_a_new_key_of_the_issuer_is_found_at_once_but_not_at_any_pace(bearer, issuer, caplog):
    """An unknown key has the keys read again; a stranger's do so once in ten seconds."""

    async def scenario(broker, connect, now_s):
        await log_in(await connect(), issuer.token("alice", now_s))
        issuer.rotate()
        bearer.publish()
        answer = await log_in(await connect(), issuer.token("alice", now_s))
        assert answer.session_lifetime_ms
        issuer.rotate()
        bearer.publish()
        assert (await log_in(await connect(), issuer.token("alice", now_s))).auth_bytes == INVALID
        broker.runtime.clock.advance(10_000)
        now_s += 10
        assert (await log_in(await connect(), issuer.token("alice", now_s))).auth_bytes == b""

    bearer.play(scenario)
    assert "'key-3', which is not at sasl.oauthbearer.jwks.endpoint.url" in caplog.text


def test_the_last_good_keys_stay_where_the_address_fails(bearer, issuer, caplog):
    """And the log says so; a key that is not known is refused."""

    async def scenario(_broker, connect, now_s):
        good = issuer.token("alice", now_s)
        await log_in(await connect(), good)
        bearer.file.write_bytes(b"<html>")
        issuer.rotate()
        assert (await log_in(await connect(), issuer.token("alice", now_s))).auth_bytes == INVALID
        assert (await log_in(await connect(), good)).auth_bytes == b""

    bearer.play(scenario)
    assert "cannot be read (it is no JSON), and the last good ones stay in use" in caplog.text


def test_keys_that_the_issuer_withdraws_are_good_no_longer(bearer, issuer, caplog):
    """A document without keys is one; the log says so once, with short names of keys."""
    issuer.rotate("long" * 500)

    async def scenario(broker, connect, now_s):
        good = issuer.token("alice", now_s, exp=now_s + 3600)
        issuer.keys.reverse()
        known = issuer.token("alice", now_s, exp=now_s + 3600)
        assert (await log_in(await connect(), known)).auth_bytes == b""
        bearer.file.write_bytes(b'{"keys": []}')
        for _ in range(2):
            broker.runtime.clock.advance(10_000)
            # Its key's name is too long for a token, the next one's is not known.
            await fail(await connect(), good)
            issuer.rotate()
            await fail(await connect(), issuer.token("alice", now_s, exp=now_s + 3600))
            await fail(await connect(), known)

    caplog.set_level(logging.INFO)
    bearer.play(scenario, connection_failed_authentication_delay_ms="0")
    assert caplog.text.count("there is no public key for signatures") == 1
    assert "long" * 400 not in caplog.text


def test_without_keys_no_token_is_good_until_they_come(bearer, issuer, caplog):
    """The broker starts without its issuer, and finds it later by itself."""
    bearer.file.unlink()

    async def scenario(_broker, connect, now_s):
        good = issuer.token("alice", now_s)
        await fail(await connect(), good)
        bearer.publish()
        while (await log_in(await connect(), good)).auth_bytes:
            """The refusals wait for the next read."""

    bearer.play(
        scenario,
        sasl_oauthbearer_jwks_endpoint_retry_backoff_ms="1",
        sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms="1",
        connection_failed_authentication_delay_ms="0",
    )
    assert "(No such file or directory), and no client can log in by OAUTHBEARER" in caplog.text


def test_a_listener_has_settings_of_its_own(bearer, issuer):
    """With the mechanism in front, as in Kafka."""
    own = {
        "sasl_oauthbearer_jwks_endpoint_url": f"file://{bearer.file}",
        "sasl_oauthbearer_expected_audience": "own",
        "sasl_oauthbearer_sub_claim_name": "name",
        "sasl_server_callback_handler_class": VALIDATOR,
        "connections_max_reauth_ms": "1000",
    }

    async def scenario(_broker, connect, now_s):
        answer = await log_in(await connect(), issuer.token("x", now_s, aud="own", name="alice"))
        assert (answer.auth_bytes, answer.session_lifetime_ms) == (b"", 1000)

    bearer.play(
        scenario,
        listeners="CLIENTS://127.0.0.1:0",
        inter_broker_listener_name="CLIENTS",
        listener_security_protocol_map="CLIENTS:SASL_PLAINTEXT",
        sasl_oauthbearer_jwks_endpoint_url=None,
        **{f"listener_name_clients_oauthbearer_{name}": value for name, value in own.items()},
    )


PACKAGE = "org.apache.kafka.common.security.oauthbearer."
VALIDATOR = f"{PACKAGE}OAuthBearerValidatorCallbackHandler"
UNSECURED = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl_oauthbearer_jwks_endpoint_url": None}, "unsecured tokens, which Kafka accepts"),
        ({"sasl_oauthbearer_allowed_urls": None}, "is not allowed: add it to"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "file:///etc/passwd"}, "is not allowed"),
        ({"sasl_server_callback_handler_class": UNSECURED}, "Ottla loads no classes"),
        ({"sasl_oauthbearer_sub_claim_name": " "}, "it is the name of a claim"),
    ],
)
def test_a_listener_that_would_believe_anything_is_refused_at_start(bearer, settings, words):
    """Unsecured tokens above all, which Kafka accepts by default."""

    async def scenario(_broker, _connect, _now_s):
        raise AssertionError

    with pytest.raises(OttlaError) as raised:
        bearer.play(scenario, **settings)
    assert words in raised.value.message


def test_tokens_for_other_services_are_warned_of(bearer, caplog):
    """Without an audience and an issuer any token of the issuer would do."""

    async def scenario(_broker, _connect, _now_s):
        pass

    bearer.play(
        scenario, sasl_oauthbearer_expected_audience=None, sasl_oauthbearer_expected_issuer=None
    )
    assert "set sasl.oauthbearer.expected.audience and sasl.oauthbearer.expected.is" in caplog.text
    assert "the network sees the tokens" in caplog.text


@pytest.mark.parametrize("is_good", [True, False])
def test_brokers_log_in_with_a_token_before_they_prove_themselves(
    bearer, issuer, tmp_path, is_good
):
    """With the settings of a client; a token of another issuer keeps a broker out."""
    token = tmp_path / "token"

    async def scenario(broker, _connect, now_s):
        token.write_text((issuer if is_good else Issuer()).token("broker", now_s))
        identity = broker_identity(broker.settings)
        assert identity is not None
        secret = await agree_on_secret(broker.storage.store, random_bytes)
        view = broker.parts.cluster.view
        own = Credentials(2, view.cluster_id, secret, random_bytes, lambda: 1)
        there = BrokerImage(1, {"SASL_PLAINTEXT": Endpoint("127.0.0.1", broker.port)}, None, 0)
        image = view.image.with_broker(there)
        peers = Peers(own, lambda: image, "SASL_PLAINTEXT", LoopDialer(), PeerLimits(), identity)
        try:
            if is_good:
                assert (await peers.request(1, ApiVersionsRequest(), version=0)).error_code == 0
                return
            with pytest.raises(OttlaError, match="refused the token of this client") as raised:
                await peers.request(1, ApiVersionsRequest(), version=0)
            assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        finally:
            peers.close()

    urls = f"file://{bearer.file},file://{token}"
    bearer.play(
        scenario,
        sasl_mechanism_inter_broker_protocol="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=f"file://{token}",
        sasl_oauthbearer_allowed_urls=urls,
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "sasl.oauthbearer.token.endpoint.url is missing"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://x/"}, "https://x/ is not allowed"),
    ],
)
def test_brokers_without_a_token_are_refused_at_start(bearer, settings, words):
    """They could not reach each other."""

    async def scenario(_broker, _connect, _now_s):
        raise AssertionError

    with pytest.raises(OttlaError, match=words):
        bearer.play(scenario, sasl_mechanism_inter_broker_protocol="OAUTHBEARER", **settings)
