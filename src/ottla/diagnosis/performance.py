"""Measures how fast one client produces and consumes, and the latency of acknowledgements."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from ottla.base.ids import TopicPartition
from ottla.client import Consumer, Delivery, Producer, ProducerOptions
from ottla.client.connection.cluster import connections_of
from ottla.diagnosis.partitions import partitions_of

_AT_ONCE = 1_000
_MOST = 100_000
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Performance:
    """One client's results. A batch's latency is the time from the call to the acknowledgement."""

    records: int
    bytes: int
    seconds: float
    latencies_ms: Sequence[float] = ()

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds

    def latency_ms(self, share: float) -> float | None:
        """Return the latency that `share` of the batches did not exceed (0.99: 99th percentile)."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


async def produce(
    bootstrap: str, topic: str, count: int, record_bytes: int, options: ProducerOptions
) -> Performance:
    """Send `count` records of random bytes as fast as they are accepted. Raises DeliveryFailed."""
    # Each record is a different slice of it, so no two are equal.
    random = os.urandom(record_bytes + _AT_ONCE)
    values = [random[start : start + record_bytes] for start in range(_AT_ONCE)]
    begun: dict[Delivery, float] = {}
    ended: dict[Delivery, float] = {}
    async with Producer(
        bootstrap, **options, on_delivery=lambda one: ended.update({one: monotonic()})
    ) as producer:
        # Find the topic and its leaders before the clock starts.
        await partitions_of(connections_of(producer), topic)
        began_s = monotonic()
        for start in range(0, count, _AT_ONCE):
            called_s = monotonic()
            batches = await producer.send_batch(topic, values[: count - start])
            begun.update(dict.fromkeys(batches, called_s))
        await producer.flush()
        seconds = monotonic() - began_s
    for delivery in begun:
        if delivery.error is not None:
            raise delivery.error
    latencies = [(end_s - begun[one]) * 1000 for one, end_s in ended.items() if one in begun]
    return Performance(count, count * record_bytes, seconds, latencies)


async def consume(bootstrap: str, topic: str, most: int | None) -> Performance:
    """Read a topic from its beginning to its present end, or at most `most` records."""
    records = size = 0
    async with Consumer(bootstrap, client_id="ottla-cli") as consumer:
        places: list[TopicPartition] = await partitions_of(connections_of(consumer), topic)
        ends = await consumer.end_offsets(places)
        await consumer.assign(places)
        began_s = monotonic()
        while most is None or records < most:
            for found in (await consumer.poll(_POLL_S, _MOST)).by_partition:
                records += len(found)
                size += sum(len(one.key or b"") + len(one.value or b"") for one in found)
            behind = [place for place, end in ends.items() if await consumer.position(place) < end]
            if not behind:
                break
        return Performance(records, size, max(monotonic() - began_s, 1e-9))
