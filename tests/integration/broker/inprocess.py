"""A whole broker in this process, in memory, and a connection to it."""

import asyncio
import struct

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.memory import MemoryStore
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.frames import decode_response, encode_request

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/data", "node.id": "1"}


class Caller:
    """One client connection; `call` sends a message and returns the answer."""

    def __init__(self, broker, reader, writer):
        self.broker = broker
        self._reader = reader
        self._writer = writer

    async def call(self, body, version):
        self.write_request(body, version)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        _, answer = decode_response(type(body).__api_key__, version, frame)
        return answer

    def write_request(self, body, version):
        """Send a message that has no answer."""
        for part in encode_request(body, version, 7, "tester"):
            self._writer.write(part)

    async def close(self):
        self._writer.close()
        await self._writer.wait_closed()


def run(scenario, settings=None, *, store=None, filesystem=None, clean=True):
    """Start a broker, run `scenario(caller)`, stop the broker."""

    async def main():
        broker = Broker(
            BrokerSettings({**SETTINGS, **(settings or {})}),
            clock=ManualClock(),
            filesystem=filesystem or MemoryFileSystem(),
            store=store or MemoryStore(),
        )
        await broker.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            caller = Caller(broker, reader, writer)
            try:
                await scenario(caller)
            finally:
                await caller.close()
        finally:
            await broker.stop(clean=clean)

    asyncio.run(main())
