"""Memory of connections that have ended."""

import asyncio
import contextlib
import gc
import platform
import socket
import ssl
import struct
import time
from datetime import UTC, datetime

import pytest
from rig.broker import ottla as broker_process
from rig.probe import free_port

import ottla.testing
from ottla.network.connection import Connection
from ottla.operations.certificates import make_development_files
from ottla.security.sasl.scram_server import ScramServer

VERSIONS = struct.pack(">ihhih", 12, 18, 0, 7, 2) + b"me"
HANDSHAKE = struct.pack(">ihhihh", 25, 17, 1, 7, 0, 13) + b"SCRAM-SHA-256"
COUNT = 5


def connections() -> int:
    return sum(type(one) in (Connection, ScramServer) for one in gc.get_objects())


async def come_and_go(port: int, context: ssl.SSLContext | None) -> None:
    """Ask for the versions, begin a login, and leave."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(VERSIONS + HANDSHAKE)
    await reader.readexactly(4)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_connection_that_has_ended_is_no_garbage(tmp_path, listener):
    """It is freed at once: cycles would wait for a collection, which is rare in a broker."""
    files = make_development_files(tmp_path / "certs", [], "nobody", datetime.now(UTC))
    port = free_port()
    settings = {
        "listeners": f"INTERNAL://127.0.0.1:{free_port()},{listener}://127.0.0.1:{port}",
        "listener.security.protocol.map": f"INTERNAL:PLAINTEXT,{listener}:{listener}",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.location": str(files.server),
    }
    context = None
    if listener.endswith("SSL"):
        context = ssl.create_default_context(cafile=files.authority)
        context.check_hostname = False

    async def several() -> None:
        for _ in range(COUNT):
            await come_and_go(port, context)

    def await_their_end() -> None:
        deadline = time.monotonic() + 20
        while connections() > before and time.monotonic() < deadline:
            time.sleep(0.05)

    with ottla.testing.Broker(settings=settings):
        asyncio.run(come_and_go(port, context))
        gc.collect()
        before = connections()
        gc.disable()
        try:
            asyncio.run(several())
            await_their_end()
            assert connections() <= before
        finally:
            gc.enable()


# A ClientHello of which the rest never comes.
HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200))
MANY = 500
MIB = 1 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to")
def test_the_memory_of_ended_handshakes_goes_back_to_the_system(tmp_path):
    """What 500 handshakes took is not there for the next 500: glibc gives them new memory."""
    files = make_development_files(tmp_path / "certs", [], "nobody", datetime.now(UTC))
    tls_port, port = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.location": str(files.server),
        "max.failed.authentication.rate": "1000000",
        "log.flush.policy": "os",
    }
    with broker_process(settings=settings, port=port) as node:

        def await_memory(is_enough) -> int:
            deadline = time.monotonic() + 60
            while not is_enough(node.process.rss_bytes()) and time.monotonic() < deadline:
                time.sleep(0.1)
            return node.process.rss_bytes()

        before = node.process.rss_bytes()
        with contextlib.ExitStack() as opened:
            for _ in range(MANY):
                each = opened.enter_context(socket.create_connection(("127.0.0.1", tls_port)))
                each.sendall(HALF_HELLO)
            assert await_memory(lambda rss: rss > before + 10 * MIB) > before + 10 * MIB
        assert await_memory(lambda rss: rss < before + 5 * MIB) < before + 5 * MIB
