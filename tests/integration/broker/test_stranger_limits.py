"""What clients that are not known can cost: memory before login, and lines in the log."""

import asyncio
import logging
import struct

import pytest

from ottla.base.errors import ErrorCode
from ottla.network.connection import RECEIVE_BUFFER_BYTES
from ottla.network.memory_budget import BytesBeforeLogin
from tests.integration.broker.broker_client import until
from tests.integration.broker.inprocess import run
from tests.integration.broker.test_login import play


def test_what_a_client_sends_before_login_is_received_in_small_portions():
    """16 KiB until it has chosen a mechanism; then no more than one request of 64 KiB."""

    async def scenario(broker, connect):
        caller = await connect()
        (listener,) = broker.serving.listeners.open
        await until(lambda: len(listener.connections) == 2)
        *_, connection = listener.connections
        assert len(connection.get_buffer(-1)) == (16 << 10) + 4
        assert (await caller.begin()).error_code == 0
        assert len(connection.get_buffer(-1)) == (64 << 10) + 4
        other = await connect()
        await other.log_in()
        *_, connection = listener.connections
        assert len(connection.get_buffer(-1)) == RECEIVE_BUFFER_BYTES

    play(scenario)


def test_a_first_request_of_more_than_16_kib_is_refused(caplog):
    """It is no login; what it needs is said. After the handshake a token may be larger."""

    async def scenario(_, connect):
        caller = await connect()
        await caller.send_part(17 << 10, 10)
        assert await caller.is_closed()
        caller = await connect()
        assert (await caller.begin()).error_code == 0
        answer = await caller.token(b"n,,n=alice,r=" + b"x" * (40 << 10))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    play(scenario)
    assert "before its login the client announced a request of 17408 bytes" in caplog.text
    assert "or it is not set to log in" in caplog.text


def test_parts_of_logins_are_bounded_over_all_connections(caplog):
    """The oldest end, so that a client that logs in finds room; what logs in counts no more."""

    async def scenario(broker, connect):
        (listener,) = broker.serving.listeners.open
        bound = listener.budget.before_login = BytesBeforeLogin(40_000)
        hostile = []
        for least in (11_000, 22_000, 33_000, 22_000):
            each = await connect()
            await each.send_part(12_000, 11_000)
            hostile.append(each)
            await until(lambda least=least: bound.noted_bytes >= least)
        assert await hostile[0].is_closed()
        assert bound.noted_bytes == 22_008
        known = await connect()
        assert (await known.log_in()).error_code == ErrorCode.NONE
        for each in hostile:
            await each.close()
        await until(lambda: bound.noted_bytes == 0)

    play(scenario)
    assert "it has sent one of the oldest" in caplog.text


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        (
            [struct.pack(">hhih", 3, 12, 7, 30_000 + n) for n in range(40)],
            "no valid request",
        ),
        ([struct.pack(">hhih", 5_000 + n, 0, 7, -1) for n in range(40)], "unknown here"),
        ([struct.pack(">hhih", 1, 99 + n, 7, -1) for n in range(40)], "FETCH in version"),
    ],
)
def test_bad_requests_are_one_line_in_the_log(bodies, said, caplog):
    """For each address and kind, whatever the bytes are; the number of the others is kept."""

    async def scenario(caller):
        for body in bodies:
            reader, writer = await asyncio.open_connection("127.0.0.1", caller.broker.port)
            writer.write(struct.pack(">i", len(body)) + body)
            assert await reader.read() == b""
            writer.close()

    caplog.set_level(logging.INFO)
    run(scenario)
    lines = [line for line in caplog.text.splitlines() if "closing the connection" in line]
    assert len(lines) == 1
    assert said in lines[0]


def test_a_request_of_nothing_but_list_elements_is_refused(caplog):
    """Three bytes each, a hundred of memory: decoding them would hold up all others."""

    async def scenario(caller):
        reader, writer = await asyncio.open_connection("127.0.0.1", caller.broker.port)
        # AlterUserScramCredentials, version 0: deletions without names.
        body = (
            struct.pack(">hhihB", 51, 0, 7, -1, 0) + b"\xb1\xea\x0f" + bytes(3 * 259_376 + 300_000)
        )
        writer.write(struct.pack(">i", len(body)) + body)
        assert await reader.read() == b""
        writer.close()

    run(scenario)
    assert "elements in its lists" in caplog.text
