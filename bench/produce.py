"""Pre-encoded produce: requests per second, bytes per second, the broker's CPU and its memory.

One connection, five requests in flight, acks=1, batches of 100-byte records, one partition.
Ottla with flush policy `os`, so that neither side calls fsync. Before each round memory is warmed
for whoever writes next (see rig.memory).
"""

import functools
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from bench.sides import alternate, both, child, topic
from rig.memory import warm
from rig.nodes import Node

_KIB = 1024
_GB = 1e9
# A JVM compiles what it runs often: before that it is measured as another program.
_WARM_UP_S = {"kafka": 30, "ottla": 5}
_SIZES = ((8, 6.0, "requests/s"), (64, 2.5, "MB/s"), (1, 6.0, "requests/s"))
_CPU_BOUND = 0.2


def measure(scale: Scale) -> list[Figure]:
    figures: list[Figure] = []
    seconds = scale.pick(3, 1)
    with both() as nodes:
        for node in nodes:
            _run(node, kib=8, seconds=1 if scale.quick else _WARM_UP_S[node.name])
        for kib, bound, unit in _SIZES:
            results = alternate(nodes, scale, functools.partial(_run, kib=kib, seconds=seconds))
            figures += _compare(kib, bound, unit, results)
        figures.append(_memory(nodes))
    return figures


def _run(node: Node, kib: int, seconds: int) -> dict[str, Any]:
    """One round: the CPU is read before the topic is deleted."""
    with topic(node) as name:
        # What either side can write in a round, and more.
        warm(min(seconds, 3) << 30)
        before_s = node.process.cpu_seconds()
        result = child(
            "bench.load",
            *("--port", node.port, "--topic", name),
            *("--batch-bytes", kib * _KIB, "--seconds", seconds),
        )
        result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    result["requests/s"] = result["requests"] / result["seconds"]
    result["MB/s"] = result["bytes"] / result["seconds"] / 1e6
    result["cpu_s_per_gb"] = result["broker_cpu_s"] / (result["bytes"] / _GB)
    print(
        f"   {node.name:<6} {kib:>2} KiB  {result['requests/s']:>8,.0f} requests/s "
        f"{result['MB/s']:>6,.0f} MB/s  {result['cpu_s_per_gb']:.2f} CPU s/GB "
        f"(generator {result['generator_cpu_s'] / result['seconds']:.0%} of a core)",
        flush=True,
    )
    return result


def _compare(
    kib: int, bound: float, unit: str, results: dict[str, list[dict[str, Any]]]
) -> list[Figure]:
    ours = results["ottla"]
    rates = [result[unit] for result in ours]
    costs = [result["cpu_s_per_gb"] for result in ours]
    if "kafka" not in results:
        return [
            Figure(f"produce {kib} KiB", sorted(rates)[len(rates) // 2], unit, note=spread(rates)),
            Figure(f"produce {kib} KiB, broker CPU", min(costs), "s/GB", note=spread(costs)),
        ]
    theirs = results["kafka"]
    return [
        ratio(f"produce {kib} KiB", rates, [result[unit] for result in theirs], bound, unit=unit),
        ratio(
            f"produce {kib} KiB, broker CPU per GB",
            costs,
            [result["cpu_s_per_gb"] for result in theirs],
            _CPU_BOUND,
            sense=AT_MOST,
            unit="s/GB",
        ),
    ]


def _memory(nodes: list[Node]) -> Figure:
    rss: dict[str, float] = {node.name: node.process.rss_bytes() / 1e6 for node in nodes}
    peak = {node.name: node.process.rss_peak_bytes() / 1e6 for node in nodes}
    note = "; ".join(f"{name} peak {value:.0f} MB" for name, value in peak.items())
    if "kafka" in rss:
        note += f"; Kafka now {rss['kafka']:.0f} MB"
    sides = {name: [value] for name, value in rss.items()} | {"unit": "MB"}
    return Figure(
        "resident memory after the produce runs", rss["ottla"], "MB", AT_MOST, 150, note, sides
    )
