"""10,000 partitions on one broker, and the death of a broker that led 3,000 of 9,000 on three.

Created and usable, 3 records produced to each, memory, idle CPU, describe, all records read by one
member of a group (librdkafka and Java), start after kill -9, and stop. Each side has the machine
to itself, in turn. Usable means that every partition answers ListOffsets.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from bench.clusters import MIN_IN_SYNC, REPLICAS, each_alone
from bench.clusters import admin as cluster_admin
from bench.consume import consumer_performance
from bench.controller_failover import kill
from bench.figures import AT_MOST, Figure, Scale, number, ratio, spread
from bench.leaders import controller, elect_all_preferred
from bench.sides import NO_FSYNC, admin, child
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.clusters import Cluster
from rig.kafka import kafka
from rig.nodes import Node
from rig.wire_client import WireClient

_TOPIC = "many"
_RECORDS_EACH = 3
_SETTLING_S = 5.0
_PATIENCE_S = 180.0
_EARLIEST = -2

Make = Callable[[Path], AbstractContextManager[Node]]
# Key, what it is, unit, the bound of the ratio to Kafka, the bound of Ottla's own value.
_ROWS: tuple[tuple[str, str, str, float | None, float | None], ...] = (
    ("create_s", "create, until all are usable", "s", 0.3, None),
    ("produce_s", f"{_RECORDS_EACH} records to each by librdkafka", "s", 1.0, None),
    ("rss_mb", "memory of the broker", "MB", None, 150),
    ("idle_percent", "idle CPU of the broker", "% of a core", None, 1),
    ("describe_ms", "describe, median", "ms", 1.0, None),
    ("read_s", "read by one member, librdkafka", "s", None, 3),
    ("read_broker_cpu_s", "the broker's CPU for that", "s", 1.0, None),
    ("read_client_cpu_s", "the client's CPU for that", "s", None, None),
    ("java_s", "read by one member, Java", "s", 1.0, None),
    ("java_broker_cpu_s", "the broker's CPU for that", "s", 1.0, None),
    ("restart_s", "start after kill -9, until all are usable", "s", 0.3, None),
    ("stop_s", "stop", "s", 1.0, None),
    ("clean_start_s", "start after that, until all are usable", "s", 0.3, None),
)


def measure(scale: Scale) -> list[Figure]:
    partitions = scale.pick(10_000, 500)
    rounds: dict[str, list[dict[str, float]]] = {}
    makers: dict[str, Make] = {"ottla": lambda home: ottla(settings=NO_FSYNC, folder=home)}
    if kafka_rig.available() is None:
        makers["kafka"] = lambda home: kafka(folder=home)
    for _ in range(scale.pick(min(scale.rounds, 2), 1)):
        for name, make in makers.items():
            found = _one_broker(make, partitions, scale.pick(20, 3))
            print(f"   {name:<6} {found}", flush=True)
            rounds.setdefault(name, []).append(found)
    figures = []
    for row in _ROWS:
        figures += _figures(f"{partitions:,} partitions", rounds, *row)
    return figures + _failover(scale)


def _figures(
    label: str,
    rounds: dict[str, list[dict[str, float]]],
    key: str,
    what: str,
    unit: str,
    bound: float | None,
    own_bound: float | None,
) -> list[Figure]:
    values = {side: [one[key] for one in each if key in one] for side, each in rounds.items()}
    mine, theirs = values["ottla"], values.get("kafka", [])
    name = f"{label}: {what}"
    figures = []
    if theirs and mine:
        figures.append(ratio(name, mine, theirs, bound, sense=AT_MOST, unit=unit))
    if mine and (own_bound is not None or not theirs):
        note = spread(mine)
        figures.append(Figure(name, statistics.median(mine), unit, AT_MOST, own_bound, note))
    return figures


def _one_broker(make: Make, partitions: int, idle_s: int) -> dict[str, float]:
    home = Path(tempfile.mkdtemp(prefix="bench-ten-thousand-"))
    found: dict[str, float] = {}
    try:
        with make(home) as node:
            _load(node, partitions, idle_s, found)
            node.process.kill()
        with make(home) as node:
            _await_usable(node, partitions)
            found["restart_s"] = time.perf_counter() - node.process.started_s
            began_s = time.perf_counter()
            node.process.terminate(_PATIENCE_S)
            found["stop_s"] = time.perf_counter() - began_s
        with make(home) as node:
            _await_usable(node, partitions)
            found["clean_start_s"] = time.perf_counter() - node.process.started_s
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


def _load(node: Node, partitions: int, idle_s: int, found: dict[str, float]) -> None:
    client = admin(node)
    began_s = time.perf_counter()
    create(client, partitions)
    _await_usable(node, partitions)
    found["create_s"] = time.perf_counter() - began_s
    records = partitions * _RECORDS_EACH
    made = child(
        "bench.rdkafka",
        *("produce", "--bootstrap", node.bootstrap, "--topic", _TOPIC),
        *("--records", records, "--partitions", partitions),
    )
    found["produce_s"] = made["seconds"]
    time.sleep(_SETTLING_S)
    found["rss_mb"] = node.process.rss_bytes() / 1e6
    before_s = node.process.cpu_seconds()
    time.sleep(idle_s)
    found["idle_percent"] = (node.process.cpu_seconds() - before_s) / idle_s * 100
    times = []
    for _ in range(10):
        began_s = time.perf_counter()
        client.describe_topics(TopicCollection([_TOPIC]))[_TOPIC].result(60)
        times.append((time.perf_counter() - began_s) * 1000)
    found["describe_ms"] = statistics.median(times)
    for prefix, read in (("read", _read), ("java", _java_read)):
        if prefix == "java" and kafka_rig.available() is not None:
            continue
        before_s = node.process.cpu_seconds()
        result = read(node, made["records"])
        found[f"{prefix}_broker_cpu_s"] = node.process.cpu_seconds() - before_s
        found |= {f"{prefix}_{key}": value for key, value in result.items()}


def create(client: AdminClient, partitions: int, replicas: int = 1) -> None:
    """Create the topic in two steps: Kafka refuses a request for more than 9,999 partitions."""
    half = partitions // 2
    config = {"min.insync.replicas": str(MIN_IN_SYNC)} if replicas > 1 else {}
    new = NewTopic(_TOPIC, half, replicas, config=config)
    client.create_topics([new], request_timeout=120)[_TOPIC].result(150)
    more = NewPartitions(_TOPIC, partitions)
    client.create_partitions([more], request_timeout=120)[_TOPIC].result(150)


def _await_usable(node: Node, partitions: int) -> None:
    """Until each partition answers where it begins."""
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name=_TOPIC,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=_EARLIEST)
                    for index in range(partitions)
                ],
            )
        ]
    )
    deadline_s = time.perf_counter() + _PATIENCE_S
    with WireClient(node.port, _PATIENCE_S) as wire:
        while time.perf_counter() < deadline_s:
            asked_s = time.perf_counter()
            answer = wire.call(request, 5)
            if not any(each.error_code for topic in answer.topics for each in topic.partitions):
                return
            # Asking takes time from the broker: not more than half of it.
            time.sleep(max(0.01, time.perf_counter() - asked_s))
    raise TimeoutError(f"not all partitions are usable after {_PATIENCE_S:.0f} s")


def _read(node: Node, records: int) -> dict[str, float]:
    result = child(
        "bench.rdkafka",
        *("group", "--bootstrap", node.bootstrap, "--topic", _TOPIC, "--records", records),
    )
    return {"s": result["seconds"], "client_cpu_s": result["client_cpu_s"]}


def _java_read(node: Node, records: int) -> dict[str, float]:
    """From its subscription to its last record; the start of its JVM does not count."""
    fields = consumer_performance(node, _TOPIC, records)
    if int(float(fields[4])) < records:
        raise RuntimeError(f"ConsumerPerformance read {fields[4]} of {records} records")
    return {"s": (float(fields[6]) + float(fields[7])) / 1000}


def _failover(scale: Scale) -> list[Figure]:
    """A third of the partitions lose their leader by kill -9, and clients of all of these go on."""
    partitions = scale.pick(9_000, 300)
    rounds = scale.pick(min(scale.rounds, 3), 1)

    def act(cluster: Cluster) -> list[dict[str, float]]:
        return _deaths(cluster, partitions, 1 if cluster.name == "kafka" else rounds)

    results = {side: found[0] for side, found in each_alone(act).items()}
    figures = []
    for key, what, bound in (
        ("leaders_s", "all have a leader", 0.5),
        ("produce_s", "producers of all go on", 1.0),
        ("consume_s", "consumers of all go on", 1.0),
    ):
        values = {side: [one[key] for one in each] for side, each in results.items()}
        note = "; ".join(f"{side} {spread(each)}" for side, each in values.items())
        led = number(statistics.median(one["led"] for one in results["ottla"]))
        name = f"death of a broker that led {led} partitions: {what}"
        figures.append(Figure(name, statistics.median(values["ottla"]), "s", AT_MOST, bound, note))
    return figures


def _deaths(cluster: Cluster, partitions: int, rounds: int) -> list[dict[str, float]]:
    client = cluster_admin(cluster)
    create(client, partitions, REPLICAS)
    cluster.wait_until_in_sync(_TOPIC)
    found = []
    for _ in range(rounds):
        elect_all_preferred(cluster)
        cluster.wait_until_in_sync(_TOPIC)
        victim = cluster.members[controller(cluster) % len(cluster.members) + 1]
        clients = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.rdkafka", "follow"),
                *("--bootstrap", cluster.bootstrap, "--topic", _TOPIC),
                *("--leader", str(victim.number)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert clients.stdin is not None
        assert clients.stdout is not None
        clients.stdout.readline()
        # The line that has them begin again.
        death = kill(cluster, victim, _TOPIC, clients.stdin.close)
        output = clients.stdout.read()
        if clients.wait(_PATIENCE_S):
            raise RuntimeError("the clients did not go on")
        found.append({"led": death.led, "leaders_s": death.seconds, **json.loads(output)})
        print(f"   {cluster.name:<6} {found[-1]}", flush=True)
        victim.start()
        cluster.wait_until_formed()
        cluster.wait_until_in_sync(_TOPIC)
    return found
