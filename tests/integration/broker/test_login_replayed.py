"""Messages of SCRAM that were recorded or stolen: the client's code, and the broker's line."""

from rig.secret_search import register

from ottla.base.errors import ErrorCode
from ottla.security.sasl.client import ScramClient
from ottla.wire.messages.metadata import MetadataRequest
from tests.integration.broker.test_login import PASSWORD, SCRAM, play

REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


async def exchange(caller):
    """The client's two messages, and the server's answer between them; the last is not sent."""
    assert (await caller.begin()).error_code == 0
    client = ScramClient(SCRAM, "alice", PASSWORD, "clientnonce", {})
    answer = await caller.token(client.first)
    final = client.step(answer.auth_bytes)
    register(final.partition(b",p=")[2], "a client's proof")
    return client.first, answer.auth_bytes, final


def test_messages_that_were_recorded_log_no_one_in_again(caplog):
    """The server's nonce is another one in each exchange."""

    async def scenario(_broker, connect):
        recorded, thief = await connect(), await connect()
        first, _, final = await exchange(recorded)
        assert (await recorded.token(final)).error_code == 0
        assert (await thief.begin()).error_code == 0
        assert (await thief.token(first)).error_code == 0
        refused = await thief.token(final)
        assert (refused.error_code, refused.auth_bytes) == (REFUSED, b"")
        assert await thief.is_closed()
        assert (await recorded.call(MetadataRequest(topics=[]), 12)).controller_id == 1

    play(scenario)
    assert (
        "its login failed: SCRAM-SHA-256: its nonce is not the one of this exchange" in caplog.text
    )


def test_a_nonce_of_another_connection_is_worth_nothing(caplog):
    """Both logins are under way; the thief has seen the bytes of the other one."""

    async def scenario(_broker, connect):
        victim, thief = await connect(), await connect()
        _, _, stolen = await exchange(victim)
        await exchange(thief)
        refused = await thief.token(stolen)
        assert refused.error_code == REFUSED
        assert await thief.is_closed()
        assert (await victim.token(stolen)).error_code == 0

    play(scenario)
    assert "its nonce is not the one of this exchange" in caplog.text
