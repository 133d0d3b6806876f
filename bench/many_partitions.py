"""librdkafka, acks=all, over 10, 100 and 1,000 partitions: what durability costs.

Ottla on disk with the flush journal and without it, Ottla without fsync, and Kafka, which does not
fsync. Then 50 records to 50 of 1,000 partitions every 50 ms, until their answers.

Each partition gets its first record before: Ottla creates a log with its first record, Kafka with
its topic. What that costs is the last figure.
"""

import contextlib
import statistics
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, spread
from bench.sides import child, topic
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node

_SIDES = {
    "disk": {"log.flush.policy": "group"},
    "no journal": {"log.flush.policy": "group", "log.flush.journal.min.logs": "0"},
    "os": {"log.flush.policy": "os"},
}
# Partitions, and how many times as fast as Kafka.
_BOUNDS = {10: 2.0, 100: 4.0, 1000: 4.0}
_TRICKLE_PARTITIONS = 1000


def measure(scale: Scale) -> list[Figure]:
    with contextlib.ExitStack() as stack:
        nodes = [
            stack.enter_context(ottla(settings=settings, name=name))
            for name, settings in _SIDES.items()
        ]
        if kafka_rig.available() is None:
            nodes.append(stack.enter_context(kafka()))
        figures: list[Figure] = []
        for partitions, bound in _BOUNDS.items():
            figures += _rates(nodes, scale, partitions, bound)
        return figures + _trickle(nodes, scale)


def _rates(nodes: list[Node], scale: Scale, partitions: int, bound: float) -> list[Figure]:
    records = scale.pick(500_000, 50_000)
    rates: dict[str, list[float]] = {}
    for number in range(1 + scale.rounds):
        for node in nodes:
            with topic(node, partitions) as name:
                chosen = ("--records", records, "--partitions", partitions)
                found = _act("produce", node, name, *chosen)
            print(
                f"   {partitions:>5} {node.name:<10} {found['records'] / found['seconds']:>9,.0f}"
                " records/s",
                flush=True,
            )
            if number:
                rates.setdefault(node.name, []).append(found["records"] / found["seconds"])
    label = f"librdkafka, acks=all, {partitions:,} partitions"
    note = "; ".join(f"{side} {spread(values)}" for side, values in rates.items())
    middle = {side: statistics.median(values) for side, values in rates.items()}

    def beside(side: str, unit: str, bound: float | None) -> Figure:
        sides = {"ottla": rates["disk"], side: rates[side], "unit": "records/s"}
        value = middle["disk"] / middle[side]
        return Figure(label, value, unit, bound=bound, note=note, details=sides)

    figures = [
        beside("os", "× without fsync", 0.9),
        beside("no journal", "× without the flush journal", None),
    ]
    if "kafka" in middle:
        figures.append(beside("kafka", "× Kafka", bound))
    return figures


def _trickle(nodes: list[Node], scale: Scale) -> list[Figure]:
    times: dict[str, list[dict[str, float]]] = {}
    for _ in range(scale.rounds):
        for node in nodes:
            with topic(node, _TRICKLE_PARTITIONS) as name:
                rounds = scale.pick(200, 60)
                chosen = ("--records", rounds, "--partitions", _TRICKLE_PARTITIONS)
                found = _act("trickle", node, name, *chosen)
            print(f"   {node.name:<10} {found}", flush=True)
            times.setdefault(node.name, []).append(found)
    figures = []
    for key, when in (
        ("p50_ms", "p50"),
        ("p99_ms", "p99"),
        ("first_p99_ms", "p99 of the first records"),
    ):
        middle = {side: statistics.median(one[key] for one in each) for side, each in times.items()}
        note = ", ".join(f"{side} {value:.1f} ms" for side, value in middle.items())
        label = f"50 records to 50 of 1,000 partitions, on disk, {when}"
        sides: dict[str, Any] = {"ottla": [one[key] for one in times["disk"]], "unit": "ms"}
        if "kafka" in middle:
            value = middle["disk"] / middle["kafka"]
            sides["kafka"] = [one[key] for one in times["kafka"]]
            bound = None if when.endswith("records") else 1.0
            figures.append(Figure(label, value, "× Kafka", AT_MOST, bound, note, sides))
        else:
            figures.append(Figure(label, middle["disk"], "ms", note=note))
    return figures


def _act(action: str, node: Node, name: str, *chosen: object) -> dict[str, Any]:
    return child("bench.rdkafka", action, "--bootstrap", node.bootstrap, "--topic", name, *chosen)
