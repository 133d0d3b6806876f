"""Clients that are not let in, as many and as fast as they can: `python -m bench.strangers PORT…`.

Each kind has addresses of its own (127.1.x.y), as clients of other machines would. Prints what
they have reached every second, and stops with its standard input.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import socket
import ssl
import struct
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

import uvloop

from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.notation import Message

# So many of the idle ones are opened at a time.
_AT_ONCE = 50
_AGAIN_S = 0.5
_ADDRESSES = 20


def frame(message: Message, version: int) -> bytes:
    parts = encode_request(message, version, 7, "stranger")
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # No regions here.


_GREETING = frame(ApiVersionsRequest(), 0) + frame(
    SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1
)
_FIRST = frame(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=clientnonce"), 2)
# A ClientHello of which the rest never comes.
_HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200))


class Strangers:
    """All of them, in one process."""

    def __init__(self, tls_port: int, plain_port: int) -> None:
        self.ports = {"tls": tls_port, "plain": plain_port}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.count: Counter[str] = Counter()
        self._opening = asyncio.Semaphore(_AT_ONCE)
        self._numbers = itertools.count()

    async def idle(self, kind: str) -> None:
        """Connect, greet, and say no more; connect anew when it is closed."""
        async with self._opening:
            reader, writer = await self._open(kind, 1)
            writer.write(_GREETING)
            await reader.readexactly(100)
        self.count["open"] += 1
        self.count["most open"] = max(self.count["most open"], self.count["open"])
        try:
            while await reader.read(4096):
                pass
        finally:
            self.count["open"] -= 1
            writer.close()

    async def stall(self, _kind: str) -> None:
        """Half of a ClientHello."""
        loop = asyncio.get_running_loop()
        stalled = socket.socket()
        stalled.setblocking(False)
        try:
            stalled.bind((self._address(2), 0))
            await loop.sock_connect(stalled, ("127.0.0.1", self.ports["tls"]))
            await loop.sock_sendall(stalled, _HALF_HELLO)
            self.count["stalled"] += 1
            await loop.sock_recv(stalled, 1)
            self.count["stalled"] -= 1
        finally:
            stalled.close()

    async def shake(self, _kind: str) -> None:
        """A whole handshake, and nothing after it."""
        _, writer = await self._open("tls", 4)
        self.count["shaken"] += 1
        writer.transport.abort()

    async def fail(self, kind: str) -> None:
        """A wrong password, again and again, without waiting for the last answer."""
        reader, writer = await self._open(kind, 3)
        try:
            writer.write(frame(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1) + _FIRST)
            await self._answer(reader)
            first = await self._answer(reader)
            nonce = first[first.index(b"r=") + 2 : first.index(b",s=")]
            proof = b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"="
            writer.write(frame(SaslAuthenticateRequest(auth_bytes=proof), 2))
            self.count["failed"] += 1
        finally:
            writer.close()

    async def for_ever(
        self, one: Callable[[str], Awaitable[None]], kind: str, wait_s: float
    ) -> None:
        """Again, whatever the broker does."""
        while True:
            self.count["tries"] += 1
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
                await one(kind)
            await asyncio.sleep(wait_s)

    async def _open(
        self, kind: str, group: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1",
            self.ports[kind],
            ssl=self.context if kind == "tls" else None,
            local_addr=(self._address(group), 0),
        )

    def _address(self, group: int) -> str:
        return f"127.1.{group}.{next(self._numbers) % _ADDRESSES + 1}"

    @staticmethod
    async def _answer(reader: asyncio.StreamReader) -> bytes:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)


async def play(arguments: argparse.Namespace) -> None:
    strangers = Strangers(arguments.tls_port, arguments.plain_port)
    tasks: list[asyncio.Task[None]] = []

    def start(count: int, one: Callable[[str], Awaitable[None]], wait_s: float) -> None:
        for number in range(count):
            kind = ("tls", "plain")[number % 2]
            tasks.append(asyncio.ensure_future(strangers.for_ever(one, kind, wait_s)))

    start(arguments.idle, strangers.idle, _AGAIN_S)
    start(arguments.stall, strangers.stall, 0)
    start(arguments.fail, strangers.fail, 0)
    start(arguments.shake, strangers.shake, 0)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not ended.done():
        await asyncio.wait([ended], timeout=1)
        print(json.dumps(strangers.count), flush=True)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tls_port", type=int)
    parser.add_argument("plain_port", type=int)
    for kind in ("idle", "stall", "fail", "shake"):
        parser.add_argument(f"--{kind}", type=int, default=0)
    arguments = parser.parse_args()
    # Other machines would not take time from the broker and its clients.
    os.nice(10)
    uvloop.run(play(arguments))


if __name__ == "__main__":
    main()
