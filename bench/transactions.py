"""Transactions of one librdkafka producer, 100 records each, one after the other.

Without fsync on either side; and with group commit on ours, where every step of a
transaction waits for the disk.
"""

import functools
from typing import Any

from bench.figures import Figure, Scale, ratio, spread
from bench.sides import NO_FSYNC, alternate, both, child, topic
from rig.nodes import Node

_RECORDS = 100
_POLICIES = (("os", NO_FSYNC, 1.0), ("group", {"log.flush.policy": "group"}, 1.0))


def measure(scale: Scale) -> list[Figure]:
    figures: list[Figure] = []
    for policy, settings, bound in _POLICIES:
        with both(settings) as nodes:
            count = scale.pick(500, 50)
            results = alternate(nodes, scale, functools.partial(_run, transactions=count))
        figures += _compare(policy, bound, results)
    return figures


def _run(node: Node, transactions: int) -> dict[str, Any]:
    with topic(node) as name:
        before_s = node.process.cpu_seconds()
        result = child(
            "bench.transact",
            *("--bootstrap", node.bootstrap, "--topic", name),
            *("--transactions", transactions, "--records", _RECORDS),
        )
        result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    result["transactions/s"] = transactions / result["seconds"]
    print(
        f"   {node.name:<6} {result['transactions/s']:>7.1f} transactions/s, p50 "
        f"{result['p50_ms']:.1f} ms, p99 {result['p99_ms']:.1f} ms, CPU: client "
        f"{result['client_cpu_s']:.2f} s, broker {result['broker_cpu_s']:.2f} s",
        flush=True,
    )
    return result


def _compare(
    policy: str, bound: float | None, results: dict[str, list[dict[str, Any]]]
) -> list[Figure]:
    name = f"transactions of {_RECORDS} records, librdkafka, flush policy {policy}"
    rates = {side: [r["transactions/s"] for r in rounds] for side, rounds in results.items()}
    if "kafka" not in rates:
        return [Figure(name, max(rates["ottla"]), "/s", note=spread(rates["ottla"]))]
    return [ratio(name, rates["ottla"], rates["kafka"], bound, unit="/s")]
