"""Batches and requests as bytes: what goes out, what comes back, what lies on the disk."""

import time
from pathlib import Path
from typing import Any

from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.record.builder import BatchBuilder
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# Versions that name topics instead of numbering them.
PRODUCE_VERSION, FETCH_VERSION = 9, 11
# Base offset and leader epoch: all that a leader writes into a batch. The length between stays.
OWN_BYTES = [*range(8), *range(12, 16)]


def batch(*values: bytes, **attributes: Any) -> bytes:
    """A batch of records with these values, keyed `k`, with a header each."""
    builder = BatchBuilder(**attributes)
    for value in values:
        builder.append(time.time_ns() // 1_000_000, b"k", value, [("trace", b"1")])
    return bytes(builder.build())


def without_own_bytes(stored: bytes) -> bytes:
    """A batch but for what the leader writes into it."""
    return bytes(value for at, value in enumerate(stored) if at not in OWN_BYTES)


def produce_request(topic: str, records: bytes, *, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def produce(client: WireClient, topic: str, records: bytes, *, acks: int = -1) -> int:
    """Send one batch to partition 0; its base offset."""
    response = client.call(produce_request(topic, records, acks=acks), PRODUCE_VERSION)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == 0, answer.error_message
    return int(answer.base_offset)


def fetch_request(
    topic: str, offset: int, *, max_wait_ms: int = 60_000, min_bytes: int = 1, max_bytes: int = 1
) -> FetchRequest:
    """From partition 0; by default exactly one batch, whatever its size."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def fetch(client: WireClient, topic: str, offset: int, **wanted: int) -> bytes:
    """The bytes a fetch from `offset` brings."""
    response = client.call(fetch_request(topic, offset, **wanted), FETCH_VERSION)
    answer = response.responses[0].partitions[0]
    assert answer.error_code == 0
    return bytes(answer.records or b"")


def stored(node: Node, topic: str) -> bytes:
    """All batches of partition 0 as they lie on the disk."""
    folder = node.folder / "logs" / f"{topic}-0"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def counter(pid: int, name: str) -> int:
    """One of the counters the system keeps of a process's input and output."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise KeyError(name)
