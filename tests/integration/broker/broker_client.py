"""A client of bare wire messages, and a broker in the same loop, in memory."""

import asyncio
import struct
from contextlib import asynccontextmanager

from ottla.base.clock import SystemClock
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.record.builder import BatchBuilder
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class Client:
    """One connection. `call` sends a message and gives the response; raw bytes go too."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0

    @classmethod
    async def connect(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, message, version):
        self.send(message, version)
        return await self.receive(type(message).__api_key__, version)

    def send(self, message, version):
        self.correlation_id += 1
        parts = encode_request(message, version, self.correlation_id, "test")
        self.writer.write(b"".join(bytes(part) for part in parts))
        return self.correlation_id

    async def receive(self, api_key, version):
        _, response = decode_response(api_key, version, await self.receive_frame())
        return response

    async def receive_frame(self):
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def is_closed(self):
        """Whether the broker closes the connection, without another byte."""
        try:
            return await asyncio.wait_for(self.reader.read(1), 60) == b""
        except ConnectionError:
            return True

    def close(self):
        self.writer.close()


@asynccontextmanager
async def running(settings=None, **parts):
    """A broker that serves on a free port, with the topics `a` (1 partition) and `b` (2)."""
    parts.setdefault("filesystem", MemoryFileSystem())
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/logs", **(settings or {})}
    broker = Broker(BrokerSettings(given), clock=SystemClock(), **parts)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def until(condition):
    """Wait for it; the time limit of the test is the only one."""
    while not condition():  # noqa: ASYNC110  # Nothing tells of it.
        await asyncio.sleep(0.001)


@asynccontextmanager
async def connected(settings=None, *, topics=("a",), **parts):
    """A broker with `topics` of one partition each, and a client of it."""
    async with running(settings, **parts) as broker:
        for topic in topics:
            await broker.parts.metadata.topics.auto_create(topic)
        client = await Client.connect(broker.port)
        try:
            yield broker, client
        finally:
            client.close()


def batch(*values, timestamp=None, **attributes):
    """A batch of records with these values, at a time of now unless `timestamp` says other."""
    builder = BatchBuilder(**attributes)
    at = SystemClock().now_ms() if timestamp is None else timestamp
    for value in values:
        builder.append(at, None, value)
    return bytes(builder.build())


def produce(topic, records, *, acks=-1, partition=0, timeout_ms=60_000, topic_id=None):
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=partition, records=records)]
    )
    if topic_id is not None:
        data.topic_id = topic_id
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def produced(response):
    """The answer for the only partition."""
    return response.responses[0].partition_responses[0]


def fetch(topic, offset, *, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, **more):
    partition = {
        name: more.pop(name)
        for name in ("current_leader_epoch", "last_fetched_epoch", "partition_max_bytes")
        if name in more
    }
    partition.setdefault("partition_max_bytes", 1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(topic=topic, partitions=[FetchPartition(fetch_offset=offset, **partition)])
        ],
        **more,
    )


def fetched(response):
    """The answer for the only partition."""
    return response.responses[0].partitions[0]
