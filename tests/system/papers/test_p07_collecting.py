"""What a producer collects before it sends, by bytes and by time, and how it may be waited for."""

import asyncio
import time
from collections.abc import Callable

from rig.nodes import Node

from ottla.client import Delivery, Producer, ProducerOptions
from ottla.record.reader import batches

from .raw import stored

# The papers' example.
BYTES, LINGER_MS = 64 * 1024, 10


def options(**more: object) -> ProducerOptions:
    return ProducerOptions(**{"batch_size": BYTES, "linger_ms": LINGER_MS, **more})  # type: ignore[arg-type]


def sizes(node: Node, topic: str) -> list[int]:
    """Records in each batch on the disk."""
    return [header.record_count for _, header in batches(stored(node, topic))]


def test_records_leave_when_64_kb_are_there_or_10_ms_have_passed(
    node: Node, make_topic: Callable[..., str]
) -> None:
    """P7: 200 records of 1 KB, at once, are batches of up to 64 KB; one alone goes after 10 ms."""
    full, alone = make_topic(), make_topic()

    async def send() -> float:
        async with Producer(node.bootstrap, **options(linger_ms=60_000)) as producer:
            for _ in range(200):
                await producer.send(full, bytes(1000), partition=0)
            await producer.flush()
        async with Producer(node.bootstrap, **options()) as producer:
            await producer.send_and_wait(alone, b"warm", partition=0)
            began_s = time.monotonic()
            # Nothing else is sent, and nothing flushed.
            await (await producer.send(alone, b"one", partition=0))
            return time.monotonic() - began_s

    took_s = asyncio.run(send())
    assert took_s > LINGER_MS / 1000 * 0.9
    assert sum(sizes(node, full)) == 200
    assert len(sizes(node, full)) == 4
    assert max(sizes(node, full)) in range(60, 66)
    assert sizes(node, alone) == [1, 1]


def test_memory_bounds_what_is_collected(node: Node, make_topic: Callable[..., str]) -> None:
    """P7: with room for two batches 5 MB pass through it, and all arrive; three ways to wait."""
    topic = make_topic()
    told: list[Delivery] = []
    room = options(buffer_memory=2 * BYTES)

    async def send() -> int:
        most = 0
        async with Producer(node.bootstrap, **room, on_delivery=told.append) as producer:
            for _ in range(5000):  # Fire and forget.
                await producer.send(topic, bytes(1000), partition=0)
                most = max(most, producer._accumulator.used_bytes)
            waited = await producer.send(topic, b"asynchronous", partition=0)
            await waited
            await producer.send_and_wait(topic, b"synchronous", partition=0)
        return most

    most = asyncio.run(send())
    assert most <= 2 * BYTES
    assert sum(sizes(node, topic)) == 5002
    assert all(delivery.error is None for delivery in told)
