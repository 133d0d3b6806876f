"""Damaged TLS handshakes: a broker ends them, and goes on.

By hand: `python -m tests.integration.broker.test_tls_fuzz --count 100000 --seed 1`.
"""

import argparse
import asyncio
import logging
import random
import resource
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ottla.operations.certificates import make_development_files
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.integration.broker.broker_client import until
from tests.integration.broker.inprocess import run
from tests.integration.broker.test_login_fuzz import damaged

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
# Answers are awaited, so that the second half of a handshake is reached.
AT_ONCE = 20


def settings(files):
    return {
        "listeners": "SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.location": str(files.authority),
        "ssl.client.auth": "requested",
        "max.failed.authentication.rate": "1000000",
    }


class Client:
    """A client's end of TLS without a socket."""

    def __init__(self, files, version):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        context.load_cert_chain(files.client)
        self._received, self._written = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._end = context.wrap_bio(self._received, self._written)

    def step(self, received=b""):
        """What to send next; None once it is through, or does not like what came."""
        self._received.write(received)
        try:
            self._end.do_handshake()
        except ssl.SSLWantReadError:
            return self._written.read()
        except ssl.SSLError:
            return self._written.read() or None
        parts = encode_request(ApiVersionsRequest(), 0, 7, "fuzz")
        self._end.write(b"".join(bytes(part) for part in parts))
        return self._written.read()


def hurt(chance, content):
    """Records in another order, cut off, doubled, with other headers, or rubbish."""
    kind = chance.randrange(6)
    if kind == 0:
        return content[: chance.randrange(len(content) + 1)]
    if kind == 1:
        return content + content
    if kind == 2:
        head = bytes([chance.randrange(18, 26), 3, chance.randrange(5)])
        return head + chance.randrange(1 << 16).to_bytes(2, "big") + content[5:]
    if kind == 3:
        return chance.randbytes(chance.randrange(1, 2000))
    return damaged(chance, content)


async def talk(port, files, chance):
    """One handshake that is damaged at its first or at a later message."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        client = Client(files, chance.choice(VERSIONS))
        sent = client.step()
        for _ in range(chance.choice((0, 0, 1))):
            writer.write(sent)
            sent = client.step(await reader.read(1 << 16)) or b""
        writer.write(hurt(chance, sent))
        writer.write_eof()
        async with asyncio.timeout(60):
            while await reader.read(1 << 16):
                pass
    except ConnectionError:
        pass
    finally:
        writer.close()


async def talks(port, files, count, seed):
    chance = random.Random(seed)
    for number in range(0, count, AT_ONCE):
        some = min(AT_ONCE, count - number)
        await asyncio.gather(*(talk(port, files, chance) for _ in range(some)))


async def answer(port, files):
    """Whether a client that does nothing wrong is served."""
    context = ssl.create_default_context(cafile=str(files.authority))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    parts = encode_request(ApiVersionsRequest(), 0, 7, "fuzz")
    writer.write(b"".join(bytes(part) for part in parts))
    received = await reader.readexactly(8)
    writer.close()
    return received[4:] == (7).to_bytes(4, "big")


def play(folder, scenario):
    """Run `scenario(broker, files)` on a broker with a TLS listener."""
    files = make_development_files(Path(folder) / "certs", [], "alice", datetime.now(UTC))

    async def with_broker(caller):
        await scenario(caller.broker, files)

    run(with_broker, settings(files))


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_handshakes_do_not_break_a_broker(seed, tmp_path, caplog):
    """Few lines in the log, no failure of ours, no connection left; others are served."""

    async def scenario(broker, files):
        await talks(broker.port, files, 200, seed)
        assert await answer(broker.port, files)
        quotas = broker.parts.quotas.connections
        # The one that every scenario has stands in the middle of its handshake.
        await until(lambda: quotas._count == 1)

    caplog.set_level(logging.WARNING)
    play(tmp_path, scenario)
    assert "unexpectedly" not in caplog.text
    assert "Traceback" not in caplog.text
    assert sum("closing the connection" in line for line in caplog.text.splitlines()) < 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    loud = []

    class Watch(logging.Handler):
        def emit(self, record):
            if record.levelno >= logging.ERROR:
                loud.append(record.getMessage())

    for name in ("ottla", "asyncio"):
        logging.getLogger(name).addHandler(Watch())
        logging.getLogger(name).propagate = False

    async def scenario(broker, files):
        await talks(broker.port, files, 1000, given.seed)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began_s = time.perf_counter()
        await talks(broker.port, files, given.count, given.seed + 1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        seconds = time.perf_counter() - began_s
        print(f"{given.count} in {seconds:.0f} s, {len(loud)} errors, {grown} KiB more")  # noqa: T201
        assert not loud, loud[:5]
        assert await answer(broker.port, files)

    with tempfile.TemporaryDirectory() as folder:
        play(folder, scenario)


if __name__ == "__main__":
    main()
