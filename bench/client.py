"""Our own client beside confluent-kafka, both in Python, against Ottla without fsync.

One record at a time as users write it, and by batches. 100-byte values, one partition; each run
in a process of its own, alternating. Both sides with acks=all; ours idempotent, as it is by
default. Before each run that writes memory is warmed for whoever writes next (see rig.memory).
`python -m bench.client SIDE WHAT BOOTSTRAP TOPIC RECORDS` is one run: it prints the
seconds from the first record to the last acknowledged or read.
"""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer as TheirConsumer
from confluent_kafka import Producer as TheirProducer
from confluent_kafka import TopicPartition as TheirPartition

from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, create_topic, topic
from ottla.client import Producer, sync
from rig.broker import ottla
from rig.memory import warm
from rig.nodes import Node
from rig.paths import ROOT

_VALUE = b"x" * 100
_OURS, _THEIRS = "ottla", "confluent"
# What a run writes, and more.
_WARMED_BYTES = 512 << 20


def our_send(bootstrap: str, topic: str, count: int) -> float:
    with sync.Producer(bootstrap) as producer:
        producer.send_and_wait(topic, _VALUE)
        began_s = time.perf_counter()
        for _ in range(count):
            producer.send(topic, _VALUE)
        producer.flush()
        return time.perf_counter() - began_s


def our_async_send(bootstrap: str, topic: str, count: int) -> float:
    async def run() -> float:
        async with Producer(bootstrap) as producer:
            await producer.send_and_wait(topic, _VALUE)
            began_s = time.perf_counter()
            for _ in range(count):
                await producer.send(topic, _VALUE)
            await producer.flush()
            return time.perf_counter() - began_s

    return asyncio.run(run())


def their_send(bootstrap: str, topic: str, count: int) -> float:
    producer = TheirProducer({"bootstrap.servers": bootstrap})
    producer.produce(topic, _VALUE)
    producer.flush()
    began_s = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, _VALUE)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    return time.perf_counter() - began_s


def our_send_batch(bootstrap: str, topic: str, count: int) -> float:
    values = [_VALUE] * 100_000
    with sync.Producer(bootstrap) as producer:
        producer.send_and_wait(topic, _VALUE)
        began_s = time.perf_counter()
        for _ in range(count // len(values)):
            producer.send_batch(topic, values)
        producer.flush()
        return time.perf_counter() - began_s


def their_send_batch(bootstrap: str, topic: str, count: int) -> float:
    producer = TheirProducer({"bootstrap.servers": bootstrap})
    producer.produce(topic, _VALUE)
    producer.flush()
    messages = [{"value": _VALUE} for _ in range(50_000)]
    began_s = time.perf_counter()
    left = count
    while left:
        # It says how many found room; the others are to be given again.
        part = messages[: min(left, len(messages))]
        left -= producer.produce_batch(topic, part)
        producer.poll(0)
        for message in part:
            message.pop("_error", None)
    producer.flush()
    return time.perf_counter() - began_s


def our_iterate(bootstrap: str, topic: str, count: int) -> float:
    with sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        records = iter(consumer)
        next(records)
        began_s = time.perf_counter()
        size = 0
        for _, record in zip(range(count - 1), records, strict=False):
            size += len(record.value or b"")
        return time.perf_counter() - began_s


def their_poll(bootstrap: str, topic: str, count: int) -> float:
    consumer = _their_consumer(bootstrap, topic)
    while consumer.poll(1.0) is None:
        pass
    began_s = time.perf_counter()
    size = 0
    left = count - 1
    while left:
        message = consumer.poll(1.0)
        if message is not None:
            size += len(message.value())
            left -= 1
    seconds = time.perf_counter() - began_s
    consumer.close()
    return seconds


def our_poll(bootstrap: str, topic: str, count: int) -> float:
    with sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        left = count - sum(
            len(batch.records) for batch in consumer.poll(5, max_records=1).by_partition
        )
        began_s = time.perf_counter()
        while left > 0:
            left -= sum(len(batch.records) for batch in consumer.poll().by_partition)
        return time.perf_counter() - began_s


def their_consume(bootstrap: str, topic: str, count: int) -> float:
    consumer = _their_consumer(bootstrap, topic)
    left = count
    while left == count:
        left -= len(consumer.consume(1, 1.0))
    began_s = time.perf_counter()
    while left > 0:
        left -= len(consumer.consume(10_000, 1.0))
    seconds = time.perf_counter() - began_s
    consumer.close()
    return seconds


def _their_consumer(bootstrap: str, topic: str) -> TheirConsumer:
    """Its default pauses for a second whenever its queue is full: 150,000 records/s at most."""
    consumer = TheirConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.queue.backoff.ms": 10}
    )
    consumer.assign([TheirPartition(topic, 0, 0)])
    return consumer


Run = Callable[[str, str, int], float]
RUNS: dict[str, dict[str, Run]] = {
    "send": {_OURS: our_send, _THEIRS: their_send},
    "send-async": {_OURS: our_async_send, _THEIRS: their_send},
    "send-batch": {_OURS: our_send_batch, _THEIRS: their_send_batch},
    "read": {_OURS: our_iterate, _THEIRS: their_poll},
    "read-batch": {_OURS: our_poll, _THEIRS: their_consume},
}
_NAMES = {
    "send": ("own producer, one record at a time, against confluent-kafka", 0.7),
    "send-async": ("the same with asyncio", 0.7),
    "send-batch": ("own producer by batches, against confluent-kafka's produce_batch", 4.0),
    "read": ("own consumer, one record at a time, against confluent-kafka", 0.7),
    "read-batch": ("own consumer by batches, against confluent-kafka's consume", 4.0),
}


def measure(scale: Scale) -> list[Figure]:
    """Ratios of records per second."""
    count = scale.pick(1_000_000, 100_000)
    figures: list[Figure] = []
    with ottla(settings=NO_FSYNC) as node:
        filled = create_topic(node)
        our_send_batch(node.bootstrap, filled, count)
        for what, (title, bound) in _NAMES.items():
            rates: dict[str, list[float]] = {_OURS: [], _THEIRS: []}
            for round_number in range(scale.rounds + 1):
                for side, seen in rates.items():
                    with _topic(node, filled, what) as name:
                        rate = _child(side, what, node.bootstrap, name, count)
                    # The first round warms up.
                    if round_number:
                        seen.append(rate)
            print(f"   {what}: {rates}", flush=True)
            figures.append(_figure(title, rates, bound))
    return figures


@contextlib.contextmanager
def _topic(node: Node, filled: str, what: str) -> Iterator[str]:
    """The topic to read, or one to write, with memory at hand for what is written to it."""
    if what.startswith("read"):
        yield filled
        return
    with topic(node) as name:
        warm(_WARMED_BYTES)
        yield name


def _figure(name: str, rates: dict[str, list[float]], bound: float) -> Figure:
    ours, theirs = statistics.median(rates[_OURS]), statistics.median(rates[_THEIRS])
    note = f"Ottla {spread(rates[_OURS])}; theirs {spread(rates[_THEIRS])} records/s"
    return Figure(name, ours / theirs, "× theirs", AT_LEAST, bound, note, dict(rates))


def _child(side: str, what: str, bootstrap: str, topic: str, count: int) -> float:
    """Records per second of one run in a process of its own."""
    command = [sys.executable, "-m", "bench.client", side, what, bootstrap, topic, str(count)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return count / float(done.stdout)


if __name__ == "__main__":
    side, what, bootstrap, name, records = sys.argv[1:]
    print(RUNS[what][side](bootstrap, name, int(records)))
