"""Logins with delegation tokens over a SASL listener of a broker in this process."""

import asyncio
import logging

import pytest
from rig.secret_search import register

from ottla.base.errors import ErrorCode
from ottla.security.principal import Principal
from ottla.security.sasl.client import ScramClient
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.security.tokens import token_password
from ottla.wire.frames import encode_request
from ottla.wire.messages.delegation_tokens import CreateDelegationTokenRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.integration.broker.test_login import play

ALICE = Principal("User", "alice")
KEY = {"delegation_token_secret_key": "the key"}


async def token_of(broker, lifetime_ms=-1):
    """A new token of alice, and its password."""
    tokens = broker.parts.login.tokens
    made = await tokens.create("an-id", ALICE, ALICE, [], lifetime_ms)
    password = token_password(tokens.hmac(made))
    register(password, "the HMAC of a token")
    return made, password


async def log_in(caller, user, password, mechanism=ScramMechanism.SCRAM_SHA_256, flag="true"):
    """The last answer of a login, and the shape of the first one."""
    assert (await caller.begin(mechanism.sasl_name)).error_code == 0
    client = ScramClient(mechanism, user, password, "clientnonce", {"tokenauth": flag})
    first = await caller.token(client.first)
    if first.error_code:
        return first, None
    shape = [(part[:2], len(part)) for part in first.auth_bytes.split(b",")]
    last = await caller.token(client.step(first.auth_bytes))
    if not last.error_code:
        assert client.step(last.auth_bytes) == b""
    return last, shape


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_client_with_a_token_is_its_owner(mechanism, caplog):
    """Until the token ends; its session says so, and it gets no other token."""

    async def scenario(broker, connect):
        made, password = await token_of(broker)
        caller = await connect()
        last, _ = await log_in(caller, made.id, password, mechanism)
        assert (last.error_code, last.session_lifetime_ms) == (0, 86_400_000)
        assert (await caller.call(MetadataRequest(topics=[]), 12)).controller_id == 1
        (listener,) = broker.serving.listeners.open
        assert [(str(each.principal), each.by_token) for each in listener.connections][-1] == (
            "User:alice",
            True,
        )
        refused = await caller.call(CreateDelegationTokenRequest(), 3)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert password not in caplog.text

    caplog.set_level(logging.DEBUG)
    play(scenario, sasl_enabled_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512", **KEY)


def test_an_unknown_token_and_a_wrong_password_get_the_same_answers(caplog):
    """As users do; an expired and a removed token are unknown."""

    async def scenario(broker, connect):
        made, password = await token_of(broker)
        answers = []

        async def attempt(user, secret):
            caller = await connect()
            last, shape = await log_in(caller, user, secret)
            answers.append((shape, last.error_code, last.error_message))
            assert await caller.is_closed()

        await attempt("no-id", password)
        await attempt(made.id, "wrong")
        broker.runtime.clock.advance(86_400_001)
        await attempt(made.id, password)
        await broker.parts.login.tokens.remove_expired()
        await attempt(made.id, password)
        assert answers == [answers[0]] * 4
        assert answers[0][1] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert password not in caplog.text

    play(scenario, **KEY)
    assert "there is no delegation token" in caplog.text


def test_users_and_tokens_are_kept_apart():
    """The password of a user is not that of a token of its name, nor the other way round."""

    async def scenario(broker, connect):
        made, password = await token_of(broker)
        for user, secret, flag in (
            (made.id, password, "false"),
            ("alice", "correct horse", "true"),
        ):
            last, _ = await log_in(await connect(), user, secret, flag=flag)
            assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(scenario, **KEY)


def test_without_a_key_no_client_logs_in_with_a_token(caplog):
    """The log names the setting."""

    async def scenario(_broker, connect):
        last, shape = await log_in(await connect(), "id", "secret")
        assert (last.error_code, shape) == (ErrorCode.SASL_AUTHENTICATION_FAILED, None)

    play(scenario)
    assert "set delegation.token.secret.key on all brokers" in caplog.text


def test_a_session_ends_with_its_token(caplog):
    """Its client logs in again while the token is good, or its connection ends."""

    async def scenario(broker, connect):
        made, password = await token_of(broker, lifetime_ms=50)
        caller = await connect()
        assert (await log_in(caller, made.id, password))[0].session_lifetime_ms == 50
        await asyncio.sleep(0.06)
        broker.runtime.clock.advance(60)
        for part in encode_request(MetadataRequest(topics=[]), 12, 7, "tester"):
            caller._writer.write(part)
        assert await caller.is_closed()

    play(scenario, **KEY)
    assert "the session of User:alice is over" in caplog.text


def test_the_controller_removes_expired_tokens():
    """At the interval of the setting."""

    async def scenario(broker, _connect):
        made, _ = await token_of(broker, lifetime_ms=50)
        store, removed = broker.storage.store, asyncio.Event()
        store.watch_children("/delegation_token/tokens", removed.set)
        broker.runtime.clock.advance(60)
        await removed.wait()
        assert await store.get(f"/delegation_token/tokens/{made.id}") is None

    play(scenario, delegation_token_expiry_check_interval_ms="5", **KEY)


def test_a_token_is_of_no_other_type_than_a_user():
    """`User:team-x` and `admin` would pass an ACL for `User:team-`, and log in as `User:admin`."""

    async def scenario(_broker, connect):
        caller = await connect()
        assert (await caller.log_in()).error_code == 0
        for kind, expected in (
            ("User", ErrorCode.NONE),
            ("User:team-x", ErrorCode.INVALID_PRINCIPAL_TYPE),
            ("Group", ErrorCode.INVALID_PRINCIPAL_TYPE),
        ):
            asked = CreateDelegationTokenRequest(
                owner_principal_type=kind, owner_principal_name="admin"
            )
            assert (await caller.call(asked, 3)).error_code == expected, kind

    play(scenario, **KEY)


def test_a_session_ends_when_its_token_is_removed(caplog):
    """Before its time; sessions of the owner and of other tokens go on."""

    async def scenario(broker, connect):
        tokens = broker.parts.login.tokens
        made, password = await token_of(broker)
        owner, job = await connect(), await connect()
        assert (await owner.log_in()).error_code == 0
        assert (await log_in(job, made.id, password))[0].error_code == 0
        await tokens.expire(tokens.hmac(made), made.owner, -1)
        assert await job.is_closed()
        assert (await owner.call(MetadataRequest(topics=[]), 12)).controller_id == 1

    play(scenario, **KEY)
    assert "User:alice logged in with the delegation token" in caplog.text
