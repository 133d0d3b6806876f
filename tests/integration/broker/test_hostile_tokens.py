"""No message of OAUTHBEARER lets a client in that should not be, or breaks a broker."""

import asyncio
import logging

from rig.issuer import Issuer

from ottla.security.sasl.bearer import CLIENT_GIVES_UP
from tests.integration.broker.hostile_tokens import good, hostile
from tests.integration.broker.test_bearer import Bearer

_PARALLEL = 20


def test_only_tokens_of_the_issuer_let_a_client_in(tmp_path, caplog):
    """Nearly 200 messages, each wrong in one way; the log has few lines, and no part of a token."""
    issuer = Issuer(algorithm="RS256")
    bearer = Bearer(issuer, tmp_path)
    sent = []

    async def scenario(_broker, connect, now_s):
        for messages, expected in ((good, True), (hostile, False)):
            found = list(messages(issuer, now_s))
            sent.extend(found)
            for start in range(0, len(found), _PARALLEL):
                some = found[start : start + _PARALLEL]
                came = await asyncio.gather(*(outcome(connect, each) for _, each in some))
                assert [what for (what, _), is_in in zip(some, came, strict=True) if is_in] == [
                    what for what, _ in some if expected
                ]

    caplog.set_level(logging.INFO)
    bearer.play(
        scenario,
        connection_failed_authentication_delay_ms="0",
        max_failed_authentication_rate="1000000",
    )
    assert len(sent) > 180
    assert "unexpectedly" not in caplog.text
    assert sum("closing the connection" in line for line in caplog.messages) < 50
    assert max(map(len, caplog.messages)) < 1000
    assert "before its login the client announced a request of 65575 bytes" in caplog.text
    assert "socket.request.max.bytes" not in caplog.text
    for _, message in sent:
        for part in message.rpartition(b"auth=Bearer ")[2].partition(b"\1")[0].split(b"."):
            assert len(part) < 20 or part[:20].decode("latin-1") not in caplog.text


async def outcome(connect, message):
    """Whether the message makes a session; whatever else comes, the connection ends."""
    caller = await connect()
    try:
        assert (await caller.begin("OAUTHBEARER")).error_code == 0
        answer = await caller.token(message)
        if answer.error_code == 0 and answer.auth_bytes:
            assert (await caller.token(CLIENT_GIVES_UP)).error_code
        elif answer.error_code == 0:
            return True
        assert await caller.is_closed()
    except (asyncio.IncompleteReadError, ConnectionError):
        """Too many bytes for a client that is not known."""
    return False
