"""A client that has logged in, at a steady rate: `python -m bench.known_client PORT TOPIC…`.

Prints how long its produce requests took, each counted from the moment when it was due.
"""

import argparse
import asyncio
import json
import ssl
import struct
import time
from typing import Any

import uvloop

from ottla.security.sasl.client import ScramClient
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.notation import Message
from rig.frames import batch

USER, PASSWORD = "bench", "a password of the measurement"
_SCRAM = ScramMechanism.SCRAM_SHA_256
_PRODUCE_VERSION = 9


class KnownClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def connect(port: int) -> "KnownClient":
        """Over TLS, and log in."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        client = KnownClient(*await asyncio.open_connection("127.0.0.1", port, ssl=context))
        await client.log_in()
        return client

    async def log_in(self) -> None:
        await self.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        scram = ScramClient(_SCRAM, USER, PASSWORD, "clientnonce", {})
        first = await self.call(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
        last = await self.call(SaslAuthenticateRequest(auth_bytes=scram.step(first.auth_bytes)), 2)
        assert last.error_code == 0, last.error_message

    async def call(self, message: Message, version: int) -> Any:
        self.send(message, version)
        return await self.receive(type(message).__api_key__, version)

    def send(self, message: Message, version: int) -> None:
        parts = encode_request(message, version, 1, "known")
        self._writer.write(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]

    async def receive(self, api_key: int, version: int) -> Any:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(api_key, version, await self._reader.readexactly(size))[1]

    async def produce(self, topic: str, rate: float, seconds: float) -> list[float]:
        """Milliseconds from when each request was due to its answer."""
        records = bytes(batch(1000, 100, int(time.time() * 1000)).data)
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            acks=1,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        took_ms: list[float] = []
        began_s = time.perf_counter()
        for number in range(int(rate * seconds)):
            due_s = began_s + number / rate
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            answer = await self.call(request, _PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0
            took_ms.append((time.perf_counter() - due_s) * 1000)
        return took_ms


async def play(arguments: argparse.Namespace) -> None:
    client = await KnownClient.connect(arguments.port)
    await client.produce(arguments.topic, arguments.rate, 1.0)
    took_ms = sorted(await client.produce(arguments.topic, arguments.rate, arguments.seconds))
    began_s = time.perf_counter()
    await KnownClient.connect(arguments.port)
    print(
        json.dumps(
            {
                "p50_ms": took_ms[len(took_ms) // 2],
                "p99_ms": took_ms[len(took_ms) * 99 // 100],
                "max_ms": took_ms[-1],
                "login_ms": (time.perf_counter() - began_s) * 1000,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("topic")
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    uvloop.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
