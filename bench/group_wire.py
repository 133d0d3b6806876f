"""What a light member of a group says, and the connection it says it on."""

import asyncio
import struct
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.classic_membership import HeartbeatRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.notation import Message

# Known to Ottla and to Kafka 4.3; the fetch names its topics, which suits both protocols.
VERSIONS = {1: 11, 3: 12, 10: 4, 11: 9, 12: 4, 13: 5, 14: 5, 68: 1}


class Wire:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Wire":
        """Connect to the broker on this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, message: Message) -> Any:
        """Send a request; its answer."""
        key = type(message).__api_key__
        assert key is not None
        version = VERSIONS[key]
        parts = encode_request(message, version, 1, "bench")
        self._writer.write(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(key, version, await self._reader.readexactly(size))[1]

    def close(self) -> None:
        """As a process that is killed: nothing is said any more."""
        self._writer.transport.abort()


def fetch_of(topic: str, partitions: Iterable[int], wait_ms: int) -> FetchRequest:
    """A fetch of these partitions from their beginnings, which are their ends."""
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1_048_576,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=0,
                        log_start_offset=-1,
                        partition_max_bytes=65_536,
                    )
                    for index in sorted(partitions)
                ],
            )
        ],
    )


async def topic_id_of(port: int, topic: str) -> UUID:
    """The id of a topic that exists."""
    wire = await Wire.open(port)
    answer = await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    wire.close()
    found: UUID = answer.topics[0].topic_id
    return found


async def await_coordinator(port: int, group: str) -> None:
    """Until the group has a coordinator that answers."""
    wire = await Wire.open(port)
    while True:
        found = await wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
        if found.coordinators[0].error_code == 0:
            beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
            if (await wire.ask(beat)).error_code == 25:  # UNKNOWN_MEMBER_ID: it has looked.
                break
        await asyncio.sleep(0.1)
    wire.close()
