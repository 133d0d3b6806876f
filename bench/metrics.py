"""What metrics cost: a broker with 1,000 partitions, read every 5 seconds and not.

Both are Ottla. A group has read a part of each partition, so that every kind of sample is there.
The share of a core is the processor time of the broker, idle, with scrapes less without. The rate
is that of requests of 8 KiB, five in flight, to one of the partitions.
"""

import contextlib
import functools
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.figures import AT_LEAST, AT_MOST, Figure, Scale, spread
from bench.sides import NO_FSYNC, alternate, child, create_topic
from rig.broker import ottla
from rig.memory import warm
from rig.nodes import Node
from rig.probe import free_port

_EVERY_S = 5.0
_SCRAPED, _ALONE = "scraped", "alone"


def measure(scale: Scale) -> list[Figure]:
    partitions, idle_s = scale.pick(1_000, 100), scale.pick(60, 10)
    seconds = scale.pick(10, 5)
    ports = {_SCRAPED: free_port(), _ALONE: free_port()}
    with contextlib.ExitStack() as stack:
        nodes = [
            stack.enter_context(
                ottla(settings={**NO_FSYNC, "metrics.listen": f"127.0.0.1:{port}"}, name=name)
            )
            for name, port in ports.items()
        ]
        topics = {node.name: _fill(node, partitions) for node in nodes}
        scrape = functools.partial(_scraping, ports[_SCRAPED])
        idle = functools.partial(_idle, scrape=scrape, seconds=idle_s)
        shares = alternate(nodes, Scale(scale.quick, 1), idle)
        act = functools.partial(_run, scrape=scrape, topics=topics, seconds=seconds)
        results = alternate(nodes, scale, act)
    shares_of = {side: [one["percent"] for one in each] for side, each in shares.items()}
    share = statistics.median(shares_of[_SCRAPED]) - statistics.median(shares_of[_ALONE])
    rates = {side: [one["requests/s"] for one in each] for side, each in results.items()}
    rate = statistics.median(rates[_SCRAPED]) / statistics.median(rates[_ALONE])
    name = f"metrics of {partitions:,} partitions, read every {_EVERY_S:.0f} s"
    idle_note = f"idle broker: {spread(shares_of[_ALONE])} %, with: {spread(shares_of[_SCRAPED])} %"
    return [
        Figure(f"{name}: cost", share, "% of a core", AT_MOST, 1, idle_note),
        Figure(f"{name}: produce", rate, "× without", AT_LEAST, 0.99, spread(rates[_SCRAPED])),
    ]


def _fill(node: Node, partitions: int) -> str:
    """A topic whose partitions have two records each, of which a group has read one."""
    topic = create_topic(node, partitions)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number in range(2 * partitions):
        producer.produce(topic, b"x" * 1024, partition=number % partitions)
    producer.flush()
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "bench", "log_level": 0})
    places = [TopicPartition(topic, number, 1) for number in range(partitions)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    return topic


@contextlib.contextmanager
def _scraping(port: int) -> Iterator[None]:
    """Read the metrics at intervals."""
    ended = threading.Event()

    def scrape() -> None:
        while not ended.is_set():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                answer.read()
            ended.wait(_EVERY_S)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _during(node: Node, scrape: Any) -> contextlib.AbstractContextManager[None]:
    context: contextlib.AbstractContextManager[None] = (
        scrape() if node.name == _SCRAPED else contextlib.nullcontext()
    )
    return context


def _idle(node: Node, scrape: Any, seconds: int) -> dict[str, Any]:
    with _during(node, scrape):
        time.sleep(2 * _EVERY_S)
        before_s, began_s = node.process.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        percent = (node.process.cpu_seconds() - before_s) / (time.monotonic() - began_s) * 100
    print(f"   {node.name:<8} idle {percent:.2f} % of a core", flush=True)
    return {"percent": percent}


def _run(node: Node, scrape: Any, topics: dict[str, str], seconds: int) -> dict[str, Any]:
    warm(1 << 28)
    with _during(node, scrape):
        result = child(
            "bench.load",
            *("--port", node.port, "--topic", topics[node.name]),
            *("--batch-bytes", 8_192, "--seconds", seconds),
        )
    result["requests/s"] = result["requests"] / result["seconds"]
    print(f"   {node.name:<8} {result['requests/s']:>8,.0f} requests/s", flush=True)
    return result
