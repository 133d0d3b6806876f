"""librdkafka's producer to three brokers: each record on three, acknowledged by at least two.

Both sides without fsync, then ours with group commit. Both clusters run all the time; what the
idle one uses meanwhile burdens the other, and is told.
"""

import functools
import statistics
from typing import Any

from bench.clusters import alternate, both, topic
from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from bench.sides import NO_FSYNC, child
from rig.clusters import Cluster

_GROUP_COMMIT = {"log.flush.policy": "group"}
# Each broker leads one.
_PARTITIONS = 3
# Java's code is compiled while it runs, which in three processes on two cores takes long.
_EXTRA_WARM_UP_ROUNDS = 4
_CPU_BOUND = 0.6
_MEMORY_BOUND_MB = 150
_MB = 1e6


def measure(scale: Scale) -> list[Figure]:
    figures: list[Figure] = []
    for policy, settings, bound in (("os", NO_FSYNC, 1.5), ("group", _GROUP_COMMIT, 1.0)):
        with both(settings) as clusters:
            records = scale.pick(1_000_000, 100_000)
            act = functools.partial(_run, clusters=clusters, records=records)
            for _ in range(scale.pick(_EXTRA_WARM_UP_ROUNDS, 0)):
                act(clusters[-1])
            results = alternate(clusters, scale, act)
        figures += _compare(policy, bound, results)
    return figures


def _run(cluster: Cluster, clusters: list[Cluster], records: int) -> dict[str, Any]:
    others = [other for other in clusters if other is not cluster]
    with topic(cluster, _PARTITIONS) as name:
        before_s = cluster.cpu_seconds()
        others_before_s = sum(other.cpu_seconds() for other in others)
        result = child(
            "bench.rdkafka",
            *("produce", "--bootstrap", cluster.bootstrap),
            *("--topic", name, "--records", records),
        )
        cluster.wait_until(
            lambda: len({member.topic_bytes(name) for member in cluster.running}) == 1,
            "the same bytes on all three",
        )
        assert cluster.members[1].topic_bytes(name) > result["bytes"]
        result["cpu_s"] = cluster.cpu_seconds() - before_s
        result["idle_cpu_s"] = sum(other.cpu_seconds() for other in others) - others_before_s
        result["rss_mb"] = [member.rss_bytes() / _MB for member in cluster.running]
    result["records/s"] = result["records"] / result["seconds"]
    print(
        f"   {cluster.name:<6} {result['records/s']:>9,.0f} records/s, CPU: client"
        f" {result['client_cpu_s']:.2f} s, brokers {result['cpu_s']:.2f} s, the idle cluster"
        f" {result['idle_cpu_s']:.2f} s; memory {max(result['rss_mb']):.0f} MB",
        flush=True,
    )
    return result


def _compare(policy: str, bound: float, results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    name = f"3 brokers, librdkafka producer, acks=all, flush policy {policy}"
    rates = {side: [r["records/s"] for r in rounds] for side, rounds in results.items()}
    memory = {side: [mb for r in rounds for mb in r["rss_mb"]] for side, rounds in results.items()}
    note = "; ".join(f"{side} {spread(each)}" for side, each in memory.items())
    figures = [
        Figure(
            f"{name}: memory of each broker",
            max(memory["ottla"]),
            "MB",
            AT_MOST,
            _MEMORY_BOUND_MB,
            note,
        )
    ]
    if "kafka" not in results:
        rate = statistics.median(rates["ottla"])
        return [Figure(name, rate, "records/s", note=spread(rates["ottla"])), *figures]
    cpu = {side: [r["cpu_s"] for r in rounds] for side, rounds in results.items()}
    figures.insert(0, ratio(name, rates["ottla"], rates["kafka"], bound, unit="records/s"))
    figures.insert(
        1,
        ratio(
            f"{name}: CPU of the brokers",
            cpu["ottla"],
            cpu["kafka"],
            _CPU_BOUND,
            sense=AT_MOST,
            unit="s",
        ),
    )
    return figures
