"""What clients that are not known can cost: memory before login, and lines in the log."""

import asyncio
import logging
import struct

import pytest

from ottla.network.connection import RECEIVE_BUFFER_BYTES

from .inprocess import run
from .test_login import play


def test_what_a_client_sends_before_login_is_received_in_small_portions():
    """No more than one request of 64 KiB, however much it sends while an answer is delayed."""

    async def scenario(broker, connect):
        caller = await connect()
        assert (await caller.begin()).error_code == 0
        (listener,) = broker.listeners.open
        *_, connection = listener.connections
        assert len(connection.get_buffer(-1)) == (64 << 10) + 4
        other = await connect()
        await other.log_in()
        *_, connection = listener.connections
        assert len(connection.get_buffer(-1)) == RECEIVE_BUFFER_BYTES

    play(scenario)


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
    assert "too many elements of lists" in caplog.text
