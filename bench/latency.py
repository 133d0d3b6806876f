"""Produce to consume at 1,000 records a second, librdkafka at both ends, each its own process."""

import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from bench.sides import NO_FSYNC, alternate, both, topic
from rig.nodes import Node

_KEYS = (("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9"))
# Policy, settings, and how many times the p50, p99 and p99.9 of Kafka without fsync are allowed.
_POLICIES = (
    ("os", NO_FSYNC, (1.0, 1.0, 1.0)),
    ("group", {"log.flush.policy": "group"}, (None, None, 1.0)),
)


def measure(scale: Scale) -> list[Figure]:
    figures: list[Figure] = []
    for policy, settings, bound in _POLICIES:
        with both(settings) as nodes:
            records = scale.pick(10_000, 1_500)
            results = alternate(nodes, scale, functools.partial(_run, records=records))
        figures += _compare(policy, bound, results)
    return figures


def _run(node: Node, records: int) -> dict[str, Any]:
    with topic(node) as name:
        ends = ("--bootstrap", node.bootstrap, "--topic", name, "--records", str(records))
        consumer = subprocess.Popen(
            [sys.executable, "-m", "bench.latency_ends", "consume", *ends, "--skip", "500"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert consumer.stdout is not None
        consumer.stdout.readline()
        subprocess.run([sys.executable, "-m", "bench.latency_ends", "produce", *ends], check=True)
        output, _ = consumer.communicate(timeout=60)
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(
        f"   {node.name:<6} p50 {result['p50_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms, p99.9"
        f" {result['p999_ms']:.2f} ms",
        flush=True,
    )
    return result


def _compare(
    policy: str, bounds: Sequence[float | None], results: dict[str, list[dict[str, Any]]]
) -> list[Figure]:
    figures = []
    for (key, label), bound in zip(_KEYS, bounds, strict=True):
        name = f"produce to consume {label}, flush policy {policy}"
        ours = [r[key] for r in results["ottla"]]
        if "kafka" in results:
            theirs = [r[key] for r in results["kafka"]]
            figures.append(ratio(name, ours, theirs, bound, sense=AT_MOST, unit="ms"))
        else:
            figures.append(Figure(name, sorted(ours)[len(ours) // 2], "ms", note=spread(ours)))
    return figures
