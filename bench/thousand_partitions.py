"""1,000 partitions on three brokers: create, describe, restart, and what they cost when idle.

Each cluster has the machine to itself.
"""

import statistics
import time
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import NewTopic

from bench.clusters import MIN_IN_SYNC, REPLICAS, admin, each_alone
from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from rig.clusters import Cluster
from rig.topics import wait_for_leaders

_TOPIC = "thousand"
_IDLE_BOUND_PERCENT = 3
_DESCRIBED = 50
_SETTLING_S = 10.0
_STEPS = (
    ("create_s", "create, until all partitions answer and all replicas are in sync", "s"),
    ("describe_ms", "describe, median", "ms"),
    ("one_restart_s", "restart of one broker, until all replicas are in sync", "s"),
    ("all_restart_s", "start of all three, until all partitions answer", "s"),
)


def measure(scale: Scale) -> list[Figure]:
    partitions = scale.pick(1000, 100)
    idle_s = scale.pick(20, 5)
    results = each_alone(lambda cluster: _once(cluster, partitions, idle_s))
    ours = results["ottla"][0]
    theirs = results["kafka"][0] if "kafka" in results else None
    name = f"{partitions:,} partitions on 3 brokers"
    figures = []
    answers = "; ".join(
        f"{side} {spread([each[0]['create_answer_s']])}" for side, each in results.items()
    )
    figures.append(
        Figure(f"{name}: create, until it is answered", ours["create_answer_s"], "s", note=answers)
    )
    for key, what, unit in _STEPS:
        if theirs is None:
            figures.append(Figure(f"{name}: {what}", ours[key], unit))
        else:
            figures.append(
                ratio(f"{name}: {what}", [ours[key]], [theirs[key]], 1, sense=AT_MOST, unit=unit)
            )
    for key, what, unit, bound in (
        ("idle_percent", "idle CPU of a broker", "% of a core", _IDLE_BOUND_PERCENT),
        ("rss_mb", "memory of a broker", "MB", 150),
    ):
        note = "; ".join(f"{side} {spread(each[0][key])}" for side, each in results.items())
        figures.append(Figure(f"{name}: {what}", max(ours[key]), unit, AT_MOST, bound, note))
    return figures


def _once(cluster: Cluster, partitions: int, idle_s: int) -> dict[str, Any]:
    result = {
        **_create(cluster, partitions),
        "describe_ms": _describe(cluster) * 1000,
        "idle_percent": _idle(cluster, idle_s),
        "rss_mb": [member.rss_bytes() / 1e6 for member in cluster.running],
        "one_restart_s": _restart_one(cluster),
        "all_restart_s": _restart_all(cluster, partitions),
    }
    print(f"   {cluster.name:<6} {result}", flush=True)
    return result


def _create(cluster: Cluster, partitions: int) -> dict[str, float]:
    """Seconds until the answer, and until it is true: Kafka answers before the logs are made."""
    result: dict[str, float] = {}
    client = admin(cluster)
    config = {"min.insync.replicas": str(MIN_IN_SYNC)}
    began_s = time.perf_counter()
    client.create_topics([NewTopic(_TOPIC, partitions, REPLICAS, config=config)])[_TOPIC].result(90)
    result["create_answer_s"] = time.perf_counter() - began_s
    wait_for_leaders(client, _TOPIC, partitions)
    cluster.wait_until_in_sync(_TOPIC)
    result["create_s"] = time.perf_counter() - began_s
    return result


def _describe(cluster: Cluster) -> float:
    client = admin(cluster)
    times = []
    for _ in range(_DESCRIBED):
        began_s = time.perf_counter()
        client.describe_topics(TopicCollection([_TOPIC]))[_TOPIC].result(30)
        times.append(time.perf_counter() - began_s)
    return statistics.median(times)


def _idle(cluster: Cluster, seconds: int) -> list[float]:
    """Percent of a core that each broker uses when nobody asks anything."""
    time.sleep(_SETTLING_S)
    before_s = {member.number: member.cpu_seconds() for member in cluster.running}
    time.sleep(seconds)
    return [
        (member.cpu_seconds() - before_s[member.number]) / seconds * 100
        for member in cluster.running
    ]


def _restart_one(cluster: Cluster) -> float:
    member = cluster.members[2]
    began_s = time.perf_counter()
    member.stop()
    member.start()
    cluster.wait_until_formed()
    cluster.wait_until_in_sync(_TOPIC)
    return time.perf_counter() - began_s


def _restart_all(cluster: Cluster, partitions: int) -> float:
    cluster.shut_down()
    began_s = time.perf_counter()
    for member in cluster.members.values():
        member.start()
    cluster.wait_until_formed()
    wait_for_leaders(admin(cluster), _TOPIC, partitions)
    return time.perf_counter() - began_s
