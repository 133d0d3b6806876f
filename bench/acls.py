"""What ACLs cost: produce requests a second with 10,000 rules against a broker without any.

Both are Ottla. The first has an authorizer and 10,000 rules (literal and prefixed topics, users,
addresses); its producer is no super user, and a prefixed rule among them allows what it does.
Requests of 1 KiB, five in flight, so that a check of ACLs is as large a part of each as can be.
"""

import contextlib
import functools
import statistics
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, alternate, child, create_topic
from rig.broker import ottla
from rig.memory import warm
from rig.nodes import Node

_KIB = 1024
_RULES = 10_000
_RULES_OF_A_REQUEST = 1_000
_SETTINGS = {
    **NO_FSYNC,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Topics and rules are made by one who may; the generator may only what a rule allows.
    "super.users": "User:root",
    "allow.everyone.if.no.acl.found": "true",
}


def measure(scale: Scale) -> list[Figure]:
    seconds = scale.pick(3, 1)
    with contextlib.ExitStack() as stack:
        nodes = [
            stack.enter_context(ottla(settings=settings, name=name))
            for name, settings in (("rules", _SETTINGS), ("none", NO_FSYNC))
        ]
        topics = {node.name: create_topic(node) for node in nodes}
        _add_rules(nodes[0])
        act = functools.partial(_run, topics=topics, seconds=seconds)
        results = alternate(nodes, scale, act)
    rates, costs = (
        {side: [one[unit] for one in rounds] for side, rounds in results.items()}
        for unit in ("requests/s", "cpu_us")
    )
    rate, cost = (
        statistics.median(sides["rules"]) / statistics.median(sides["none"])
        for sides in (rates, costs)
    )
    name = f"produce 1 KiB with {_RULES:,} ACLs"
    return [
        Figure(name, rate, "× none", AT_LEAST, 0.95, f"with: {spread(rates['rules'])} requests/s"),
        Figure(f"{name}: broker CPU", cost, "× none", note=f"with: {spread(costs['rules'])} µs"),
    ]


def _add_rules(node: Node) -> None:
    """Rules of others, and last the one that allows what the generator does."""
    client = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    patterns = (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
    rules = [
        AclBinding(
            *(ResourceType.TOPIC, f"orders-{number % 2_500}", patterns[number % 2]),
            *(f"User:team-{number}", f"10.0.{number % 250}.7" if number % 3 == 0 else "*"),
            *(AclOperation.WRITE, AclPermissionType.ALLOW),
        )
        for number in range(_RULES - 1)
    ]
    rules.append(
        AclBinding(
            *(ResourceType.TOPIC, "bench-", ResourcePatternType.PREFIXED, "User:ANONYMOUS", "*"),
            *(AclOperation.WRITE, AclPermissionType.ALLOW),
        )
    )
    for start in range(0, _RULES, _RULES_OF_A_REQUEST):
        made = client.create_acls(rules[start : start + _RULES_OF_A_REQUEST])
        for future in made.values():
            future.result(60)


def _run(node: Node, topics: dict[str, str], seconds: int) -> dict[str, Any]:
    warm(1 << 28)
    before_s = node.process.cpu_seconds()
    result = child(
        "bench.load",
        *("--port", node.port, "--topic", topics[node.name]),
        *("--batch-bytes", _KIB, "--seconds", seconds),
    )
    result["requests/s"] = result["requests"] / result["seconds"]
    result["cpu_us"] = (node.process.cpu_seconds() - before_s) / result["requests"] * 1e6
    print(
        f"   {node.name:<6} {result['requests/s']:>8,.0f} requests/s "
        f"{result['cpu_us']:.1f} CPU µs each",
        flush=True,
    )
    return result
