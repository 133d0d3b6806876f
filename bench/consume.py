"""Catching up a topic of 100-byte records: librdkafka's consumer and Java's ConsumerPerformance.

Records lie in one partition in 64 KiB batches, in the page cache.
"""

import contextlib
import functools
import re
import subprocess
import time
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from bench.sides import alternate, both, child, topic
from rig import kafka as kafka_rig
from rig.frames import batch, error_position, produce_request
from rig.nodes import Node
from rig.probe import connect, receive_frame
from rig.tools import CONSUMER_PERFORMANCE, command

_BATCH_BYTES = 64 * 1024
_GB = 1e9
_RATE = re.compile(r"^\d{4}-.*$", re.MULTILINE)


def measure(scale: Scale) -> list[Figure]:
    records = scale.pick(5_000_000, 200_000)
    with both() as nodes, contextlib.ExitStack() as stack:
        topics = {node.name: stack.enter_context(topic(node)) for node in nodes}
        for node in nodes:
            fill(node, topics[node.name], records)
        figures = _compare(
            "librdkafka consumer",
            alternate(nodes, scale, functools.partial(_rdkafka, topics=topics, records=records)),
        )
        if kafka_rig.available() is None:
            act = functools.partial(_java, topics=topics, records=records)
            figures += _compare("Java ConsumerPerformance", alternate(nodes, scale, act))
    return figures


def fill(node: Node, name: str, records: int, partitions: int = 1) -> int:
    """Write at least so many records, evenly over the partitions; gives the bytes written."""
    made = batch(_BATCH_BYTES, 100, int(time.time() * 1000))
    requests = [produce_request(name, index, made.data, 1) for index in range(partitions)]
    wanted = -(-records // made.records)
    with connect(node.port) as connection:
        for number in range(wanted):
            connection.sendall(requests[number % partitions])
            if number >= 5:
                _check(receive_frame(connection), name)
        for _ in range(min(5, wanted)):
            _check(receive_frame(connection), name)
    return wanted * len(made.data)


def _check(answer: bytes, name: str) -> None:
    at = error_position(name) - 4
    code = int.from_bytes(answer[at : at + 2], "big")
    if code:
        raise RuntimeError(f"produce was answered with error {code}")


def _rdkafka(node: Node, topics: dict[str, str], records: int) -> dict[str, Any]:
    return _reported(
        node,
        child(
            "bench.rdkafka",
            *("consume", "--bootstrap", node.bootstrap),
            *("--topic", topics[node.name], "--records", records),
        ),
    )


def _java(node: Node, topics: dict[str, str], records: int) -> dict[str, Any]:
    """Its own fetch time counts, not that of its JVM and its group."""
    before_s = node.process.cpu_seconds()
    fields = consumer_performance(node, topics[node.name], records)
    read = int(float(fields[4]))
    return _reported(
        node,
        {
            "records": read,
            "bytes": read * 100,
            "seconds": float(fields[7]) / 1000,
            "broker_cpu_s": node.process.cpu_seconds() - before_s,
        },
    )


def consumer_performance(node: Node, topic: str, records: int) -> list[str]:
    """Read with Java's ConsumerPerformance; return the fields of its row.

    They are: start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch
    records/s. Raises RuntimeError.
    """
    done = subprocess.run(
        command(
            CONSUMER_PERFORMANCE,
            *("--bootstrap-server", node.bootstrap, "--topic", topic),
            *("--num-records", records, "--timeout", 60_000, "--group", f"java-{time.time_ns()}"),
        ),
        check=False,
        capture_output=True,
        text=True,
    )
    rows = _RATE.findall(done.stdout)
    if done.returncode != 0 or not rows:
        raise RuntimeError(f"ConsumerPerformance failed:\n{done.stdout}{done.stderr}")
    return [field.strip() for field in rows[-1].split(",")]


def _reported(node: Node, result: dict[str, Any]) -> dict[str, Any]:
    result["records/s"] = result["records"] / result["seconds"]
    print(f"   {node.name:<6} {result['records/s']:>11,.0f} records/s", flush=True)
    return result


def _compare(name: str, results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    rates = {side: [r["records/s"] for r in rounds] for side, rounds in results.items()}
    costs = {
        side: [r["broker_cpu_s"] / (r["bytes"] / _GB) for r in rounds]
        for side, rounds in results.items()
    }
    if "kafka" not in rates:
        return [
            Figure(name, max(rates["ottla"]), "records/s", note=spread(rates["ottla"])),
            Figure(f"{name}, broker CPU", min(costs["ottla"]), "s/GB", note=spread(costs["ottla"])),
        ]
    cost_name = f"{name}, broker CPU per GB"
    return [
        ratio(name, rates["ottla"], rates["kafka"], 1.0, unit="records/s"),
        ratio(cost_name, costs["ottla"], costs["kafka"], 0.35, sense=AT_MOST, unit="s/GB"),
    ]
