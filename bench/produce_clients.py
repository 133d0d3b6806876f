"""librdkafka's producer with acks=all: without fsync on either side, and with group commit on ours.

The client is the limit, so the CPU of both sides stands beside the rate.
"""

import functools
from typing import Any

from bench.figures import Figure, Scale, ratio, spread
from bench.sides import NO_FSYNC, alternate, both, child, topic
from rig.nodes import Node

_POLICIES = (("os", NO_FSYNC, 1.2), ("group", {"log.flush.policy": "group"}, 0.8))


def measure(scale: Scale) -> list[Figure]:
    figures: list[Figure] = []
    for policy, settings, bound in _POLICIES:
        with both(settings) as nodes:
            records = scale.pick(1_000_000, 100_000)
            results = alternate(nodes, scale, functools.partial(_run, records=records))
        figures += _compare(policy, bound, results)
    return figures


def _run(node: Node, records: int) -> dict[str, Any]:
    with topic(node) as name:
        before_s = node.process.cpu_seconds()
        result = child(
            "bench.rdkafka",
            *("produce", "--bootstrap", node.bootstrap, "--topic", name, "--records", records),
        )
        result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    result["records/s"] = result["records"] / result["seconds"]
    print(
        f"   {node.name:<6} {result['records/s']:>9,.0f} records/s, CPU: client "
        f"{result['client_cpu_s']:.2f} s, broker {result['broker_cpu_s']:.2f} s",
        flush=True,
    )
    return result


def _compare(policy: str, bound: float, results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    name = f"librdkafka producer, acks=all, flush policy {policy}"
    rates = {side: [r["records/s"] for r in rounds] for side, rounds in results.items()}
    if "kafka" not in rates:
        return [Figure(name, max(rates["ottla"]), "records/s", note=spread(rates["ottla"]))]
    cpu = "; ".join(
        f"{side} CPU s: client {spread([r['client_cpu_s'] for r in rounds])}, "
        f"broker {spread([r['broker_cpu_s'] for r in rounds])}"
        for side, rounds in results.items()
    )
    figure = ratio(name, rates["ottla"], rates["kafka"], bound, unit="records/s")
    return [figure, Figure(f"{name}: CPU of the broker", _cpu_ratio(results), "× Kafka", note=cpu)]


def _cpu_ratio(results: dict[str, list[dict[str, Any]]]) -> float:
    ours, theirs = (
        sum(r["broker_cpu_s"] for r in results[side]) / len(results[side])
        for side in ("ottla", "kafka")
    )
    return float(ours / theirs)
