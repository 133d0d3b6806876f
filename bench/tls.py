"""Produce and fetch over TLS in 64 KiB batches, against Kafka over TLS; and what TLS costs Ottla.

    generator (a process) → TLS 1.3 → broker: pre-encoded Produce, five in flight, acks=1
                          ← TLS 1.3 ← broker: Fetch of a megabyte, two in flight
    librdkafka's consumer ← TLS 1.3 ← broker

Both sides have the same certificate (an EC key on P-256), and write without fsync. The rate through
the plaintext listener of the same broker stands beside it.
"""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.consume import fill
from bench.figures import AT_MOST, Figure, Scale, ratio
from bench.sides import NO_FSYNC, alternate, child, topic
from ottla.operations.certificates import make_development_files
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.kafka import kafka
from rig.memory import warm
from rig.nodes import Node
from rig.probe import free_port

_BATCH_BYTES = 64 * 1024
_GB = 1e9
# A JVM compiles what it runs often, its cipher too.
_WARM_UP_S = {"kafka": 30, "ottla": 3}


@dataclass(frozen=True)
class _Sides:
    """The brokers, their TLS ports, and the authority that signed their certificate."""

    nodes: list[Node]
    ports: dict[str, int]
    authority: Path


def measure(scale: Scale) -> list[Figure]:
    seconds = scale.pick(3, 1)
    with tempfile.TemporaryDirectory() as folder, _both(Path(folder)) as sides:
        for node in sides.nodes:
            warm_up_s = 1 if scale.quick else _WARM_UP_S[node.name]
            _produce(node, sides, seconds=warm_up_s, is_secret=True)
        figures = []
        for is_secret in (True, False):
            act = functools.partial(_produce, sides=sides, seconds=seconds, is_secret=is_secret)
            figures += _compare("produce", alternate(sides.nodes, scale, act), is_secret=is_secret)
        with contextlib.ExitStack() as stack:
            topics = {node.name: stack.enter_context(topic(node)) for node in sides.nodes}
            for node in sides.nodes:
                fill(node, topics[node.name], scale.pick(5_000_000, 200_000))
                if not scale.quick:
                    _fetch(node, sides, topics, _WARM_UP_S[node.name], is_secret=True)
            for is_secret in (True, False):
                fetch = functools.partial(
                    _fetch, sides=sides, topics=topics, seconds=seconds, is_secret=is_secret
                )
                results = alternate(sides.nodes, scale, fetch)
                figures += _compare("fetch", results, is_secret=is_secret)
            read = functools.partial(
                _rdkafka, sides=sides, topics=topics, records=scale.pick(5_000_000, 200_000)
            )
            figures += _compare("librdkafka", alternate(sides.nodes, scale, read), is_secret=True)
    return figures


@contextlib.contextmanager
def _both(folder: Path) -> Iterator[_Sides]:
    """Ottla and Kafka, each with a plaintext and a TLS listener."""
    files = make_development_files(folder / "certs", [], "bench", datetime.now(UTC))
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server),
        "ssl.enabled.protocols": "TLSv1.3",
    }
    ports, nodes = {}, []
    with contextlib.ExitStack() as stack:
        plain, ports["ottla"] = free_port(), free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{ports['ottla']}"
        settings = {**NO_FSYNC, **tls, "listeners": listeners}
        nodes.append(stack.enter_context(ottla(settings=settings, port=plain)))
        reason = kafka_rig.available()
        if reason is None:
            plain, ports["kafka"], controller = (free_port() for _ in range(3))
            own = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{ports['kafka']}"
            settings = {
                **tls,
                "listeners": f"{own},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": own,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listener.security.protocol.map": (
                    "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
                ),
            }
            nodes.append(stack.enter_context(kafka(settings=settings, port=plain)))
        else:
            print(f"   without Kafka: {reason}", flush=True)
        yield _Sides(nodes, ports, files.authority)


def _way(node: Node, sides: _Sides, *, is_secret: bool) -> tuple[object, ...]:
    if is_secret:
        return ("--port", sides.ports[node.name], "--authority", sides.authority)
    return ("--port", node.port)


def _produce(node: Node, sides: _Sides, seconds: int, *, is_secret: bool) -> dict[str, Any]:
    with topic(node) as name:
        warm(min(seconds, 3) << 30)  # What either side can write in a round, and more.
        before_s = node.process.cpu_seconds()
        result = child(
            "bench.load",
            *_way(node, sides, is_secret=is_secret),
            *("--topic", name, "--batch-bytes", _BATCH_BYTES, "--seconds", seconds),
        )
        result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    return _reported("produce", node, result, is_secret=is_secret)


def _fetch(
    node: Node, sides: _Sides, topics: dict[str, str], seconds: int, *, is_secret: bool
) -> dict[str, Any]:
    before_s = node.process.cpu_seconds()
    result = child(
        "bench.fetch_load",
        *_way(node, sides, is_secret=is_secret),
        *("--topic", topics[node.name], "--seconds", seconds),
    )
    result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    return _reported("fetch", node, result, is_secret=is_secret)


def _rdkafka(node: Node, sides: _Sides, topics: dict[str, str], records: int) -> dict[str, Any]:
    before_s = node.process.cpu_seconds()
    result = child(
        "bench.rdkafka",
        *("consume", "--bootstrap", f"127.0.0.1:{sides.ports[node.name]}"),
        *("--authority", sides.authority),
        *("--topic", topics[node.name], "--records", records),
    )
    result["broker_cpu_s"] = node.process.cpu_seconds() - before_s
    return _reported("librdkafka", node, result, is_secret=True)


def _reported(what: str, node: Node, result: dict[str, Any], *, is_secret: bool) -> dict[str, Any]:
    result["MB/s"] = result["bytes"] / result["seconds"] / 1e6
    result["cpu_s_per_gb"] = result["broker_cpu_s"] / (result["bytes"] / _GB)
    print(
        f"   {node.name:<6} {what:<10} {'TLS' if is_secret else 'plain':<5} "
        f"{result['MB/s']:>6,.0f} MB/s  {result['cpu_s_per_gb']:.2f} CPU s/GB",
        flush=True,
    )
    return result


def _compare(
    what: str, results: dict[str, list[dict[str, Any]]], *, is_secret: bool
) -> list[Figure]:
    name = f"{what}, {'TLS' if is_secret else 'plaintext'}, 64 KiB batches"
    rates = {side: [r["MB/s"] for r in rounds] for side, rounds in results.items()}
    costs = {side: [r["cpu_s_per_gb"] for r in rounds] for side, rounds in results.items()}
    if "kafka" not in results:
        return [Figure(name, sorted(rates["ottla"])[len(rates["ottla"]) // 2], "MB/s")]
    bounds = (1.0, 0.7) if is_secret else (None, None)
    return [
        ratio(name, rates["ottla"], rates["kafka"], bounds[0], unit="MB/s"),
        ratio(
            f"{name}: broker CPU per GB",
            *(costs["ottla"], costs["kafka"], bounds[1]),
            sense=AT_MOST,
            unit="s/GB",
        ),
    ]
