"""How exactly quotas hold: over a minute, of one client and of a hundred that evade.

The clients are as greedy as they can be: they neither wait as they are told, nor keep their
client ids. What counts is what the quota counts: bytes of requests produced, of records fetched.
"""

import asyncio
import os
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench.figures import AT_MOST, Figure, Scale
from bench.sides import create_topic
from ottla.client.admin import Admin
from ottla.metadata.quota_entity import QuotaEntity
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.notation import Message
from rig.broker import ottla
from rig.frames import batch
from rig.nodes import Node

USER = "ANONYMOUS"
SINGLE = "single"
RATE = 2_000_000
CROWD = 100
BATCH_BYTES, RECORD_BYTES = 16_000, 1000
_PRODUCE_VERSION, _FETCH_VERSION = 9, 11
_IN_FLIGHT = 5


@dataclass(slots=True)
class Tally:
    """What the clients of one kind have got."""

    size_bytes: int = 0
    throttled: int = 0


class _Connection:
    """One connection; each request may come from a client of another name."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, message: Message, version: int, client_id: str) -> int:
        """Send a request; its size as the broker counts it."""
        parts = encode_request(message, version, 1, client_id)
        data = b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # No regions here.
        self._writer.write(data)
        return len(data) - 4

    async def receive(self, api_key: int, version: int) -> Any:
        """The next answer."""
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(api_key, version, await self._reader.readexactly(size))[1]


Client = Callable[[_Connection, Tally], Awaitable[None]]


def measure(scale: Scale) -> list[Figure]:
    seconds = scale.pick(60, 5)
    figures = asyncio.run(_windows(seconds, 11))
    return figures + asyncio.run(_windows(seconds, 30))[:2]


async def _windows(seconds: int, num: int) -> list[Figure]:
    """All four kinds of clients at once, each with a quota of its own."""
    with ottla(settings={"log.flush.policy": "os", "quota.window.num": str(num)}) as node:
        source, target = create_topic(node), create_topic(node)
        tally = Tally()
        async with _connections(node, 1) as (filling,):
            for _ in range(400):
                await _produce_once(filling, tally, source, "filler")
        limits = {"producer_byte_rate": float(RATE), "consumer_byte_rate": float(RATE)}
        async with Admin(node.bootstrap) as admin:
            await admin.quotas.alter(QuotaEntity(USER, SINGLE), limits)
            await admin.quotas.alter(QuotaEntity(USER), limits)
        kinds = {
            "produce, one connection": (1, _producer(target, lambda: SINGLE)),
            "fetch, one connection": (1, _consumer(source, lambda: SINGLE)),
            f"produce, {CROWD} connections, random client ids": (CROWD, _producer(target, _random)),
            f"fetch, {CROWD} connections, random client ids": (CROWD, _consumer(source, _random)),
        }
        tallies = {name: Tally() for name in kinds}
        loads: list[Coroutine[Any, Any, None]] = [
            _load(node, count, client, tallies[name], seconds)
            for name, (count, client) in kinds.items()
        ]
        await asyncio.gather(*loads)
    return [figure for name in kinds for figure in _figures(name, num, tallies[name], seconds)]


def _figures(name: str, num: int, tally: Tally, seconds: int) -> list[Figure]:
    off = (tally.size_bytes / seconds / RATE - 1) * 100
    note = f"{tally.size_bytes / seconds / 1e6:.3f} MB/s of {RATE / 1e6:.0f}, {num} windows of 1 s"
    title = f"quota: {name}"
    if str(CROWD) in name:
        return [Figure(f"{title}: too much", off, "%", AT_MOST, 5, note)]
    return [Figure(f"{title}: off by", abs(off), "%", AT_MOST, 5, f"{off:+.2f} %; {note}")]


async def _load(node: Node, count: int, client: Client, tally: Tally, seconds: int) -> None:
    async with _connections(node, count) as connections:
        tasks = [asyncio.ensure_future(client(one, tally)) for one in connections]
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            done, _ = await asyncio.wait(tasks, timeout=left_s, return_when="FIRST_EXCEPTION")
            for task in done:
                task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _connections(node: Node, count: int) -> AsyncIterator[list[_Connection]]:
    host, _, port = node.bootstrap.partition(":")
    streams = [await asyncio.open_connection(host, int(port)) for _ in range(count)]
    try:
        yield [_Connection(reader, writer) for reader, writer in streams]
    finally:
        for _, writer in streams:
            writer.close()


def _random() -> str:
    return f"client-{os.urandom(6).hex()}"


def _producer(topic: str, name: Callable[[], str]) -> Client:
    async def produce(connection: _Connection, tally: Tally) -> None:
        sizes = [_send_batch(connection, topic, name()) for _ in range(_IN_FLIGHT)]
        while True:
            answer: ProduceResponse = await connection.receive(0, _PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0
            tally.size_bytes += sizes.pop(0)
            tally.throttled += answer.throttle_time_ms > 0
            sizes.append(_send_batch(connection, topic, name()))

    return produce


async def _produce_once(connection: _Connection, tally: Tally, topic: str, name: str) -> None:
    tally.size_bytes += _send_batch(connection, topic, name)
    await connection.receive(0, _PRODUCE_VERSION)


def _send_batch(connection: _Connection, topic: str, name: str) -> int:
    data = PartitionProduceData(index=0, records=_batch())
    request = ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return connection.send(request, _PRODUCE_VERSION, name)


@cache
def _batch() -> bytes:
    return bytes(batch(BATCH_BYTES, RECORD_BYTES, int(time.time() * 1000)).data)


def _consumer(topic: str, name: Callable[[], str]) -> Client:
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
    )

    async def fetch(connection: _Connection, tally: Tally) -> None:
        while True:
            connection.send(request, _FETCH_VERSION, name())
            answer: FetchResponse = await connection.receive(1, _FETCH_VERSION)
            tally.throttled += answer.throttle_time_ms > 0
            for found in answer.responses:
                tally.size_bytes += sum(len(part.records or b"") for part in found.partitions)

    return fetch
