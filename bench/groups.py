"""A group of 50 consumers on 500 partitions: join to stable, one leaves, one is killed.

Raw members of both protocols, the same against both sides: each fetches what it has all the time,
so that a stop is seen. Heartbeats every second and sessions of six on both sides.
"""

import functools
from typing import Any

from bench.figures import AT_MOST, Figure, Scale, ratio, spread
from bench.group_members import SESSION_MS
from bench.sides import NO_FSYNC, alternate, both, child, create_topic
from rig.nodes import Node

_SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}
_EVENTS = (
    ("join_ms", "join to stable"),
    ("leave_ms", "one leaves"),
    ("kill_since_contact_ms", "one is killed, from its last heartbeat"),
)


def measure(scale: Scale) -> list[Figure]:
    members, partitions = scale.pick(50, 5), scale.pick(500, 50)
    figures: list[Figure] = []
    with both({**NO_FSYNC, **_SETTINGS}, kafka_settings=_SETTINGS) as nodes:
        topics = {node.name: create_topic(node, partitions) for node in nodes}
        for protocol in ("classic", "consumer"):
            run = functools.partial(
                _run, topics=topics, protocol=protocol, members=members, partitions=partitions
            )
            results = alternate(nodes, Scale(scale.quick, min(scale.rounds, 5)), run)
            figures += _figures(protocol, members, partitions, results)
    return figures


def _run(
    node: Node, *, topics: dict[str, str], protocol: str, members: int, partitions: int
) -> dict[str, Any]:
    result = child(
        "bench.group_members",
        *("--port", node.port, "--topic", topics[node.name], "--protocol", protocol),
        *("--members", members, "--partitions", partitions),
    )
    print(
        f"   {node.name:<6} {protocol:<8} join {result['join_ms']:>6.0f} ms, leave "
        f"{result['leave_ms']:>5.0f} ms ({result['leave_stopped']} stopped, longest pause "
        f"{result['leave_gap_ms']:.0f} ms), kill {result['kill_ms']:>5.0f} ms "
        f"({result['kill_stopped']} stopped, longest pause {result['kill_gap_ms']:.0f} ms)",
        flush=True,
    )
    return result


def _figures(
    protocol: str, members: int, partitions: int, results: dict[str, list[dict[str, Any]]]
) -> list[Figure]:
    words = {"classic": "classic", "consumer": "KIP-848"}[protocol]
    figures = []
    for field, event in _EVENTS:
        name = f"group of {members} on {partitions} partitions, {words}: {event}"
        times = {side: [each[field] for each in rounds] for side, rounds in results.items()}
        if "kafka" in times:
            figures.append(
                ratio(name, times["ottla"], times["kafka"], 1.0, sense=AT_MOST, unit="ms")
            )
        else:
            figures.append(Figure(name, min(times["ottla"]), "ms", note=spread(times["ottla"])))
    if protocol == "consumer":
        figures += [_undisturbed(event, results) for event in ("leave", "kill")]
    return figures


def _undisturbed(event: str, results: dict[str, list[dict[str, Any]]]) -> Figure:
    """Partitions taken away from members that stay: each would be a stop."""
    lost = max(each[f"{event}_lost"] for each in results["ottla"])
    notes = [
        f"{side}: {max(each[f'{event}_stopped'] for each in rounds)} stopped, longest pause "
        f"between fetches {max(each[f'{event}_gap_ms'] for each in rounds):.0f} ms (at rest "
        f"{max(each['quiet_gap_ms'] for each in rounds):.0f} ms)"
        for side, rounds in results.items()
    ]
    name = f"KIP-848, {event}: partitions taken from members that stay"
    return Figure(name, lost, "", AT_MOST, 0, "; ".join(notes), results)
