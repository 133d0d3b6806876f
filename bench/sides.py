"""The two sides of a comparison, and what is done to both in turn."""

import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.figures import Scale
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node
from rig.topics import wait_for_leaders

# Like for like: neither side waits for the disk, as Kafka's defaults have it.
NO_FSYNC = {"log.flush.policy": "os"}
_numbers = itertools.count(1)


@contextlib.contextmanager
def both(
    settings: Mapping[str, str] | None = None,
    *,
    kafka_settings: Mapping[str, str] | None = None,
) -> Iterator[list[Node]]:
    """Ottla, and Kafka beside it if it can run here: then the list has two."""
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(ottla(settings=settings or NO_FSYNC))]
        reason = kafka_rig.available()
        if reason is None:
            nodes.append(stack.enter_context(kafka(settings=kafka_settings)))
        else:
            print(f"   without Kafka: {reason}", flush=True)
        yield nodes


def admin(node: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})


@contextlib.contextmanager
def topic(node: Node, partitions: int = 1) -> Iterator[str]:
    """A topic of its own, deleted at the end so that its bytes do not trouble the next round."""
    name = create_topic(node, partitions)
    yield name
    client = admin(node)  # It must live until its future is done.
    with contextlib.suppress(KafkaException):
        client.delete_topics([name])[name].result(30)
    time.sleep(1.0)  # The files go half a second later.


def create_topic(node: Node, partitions: int = 1) -> str:
    """A topic that stays; it has leaders when this returns."""
    name = f"bench-{next(_numbers)}"
    client = admin(node)
    client.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    wait_for_leaders(client, name, partitions)
    return name


def child(module: str, *arguments: object) -> dict[str, Any]:
    """Run a measuring program in a process of its own; its last line of output is JSON."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{module} failed:\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def alternate(
    nodes: list[Node], scale: Scale, act: Callable[[Node], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Let each side act in turn; the first rounds warm up and are thrown away.

    Each result gains `broker_cpu_s`, what the broker itself spent meanwhile.
    """
    results: dict[str, list[dict[str, Any]]] = {node.name: [] for node in nodes}
    for round_number in range(scale.warm_up_rounds + scale.rounds):
        for node in nodes:
            before_s = node.process.cpu_seconds()
            result = act(node)
            result.setdefault("broker_cpu_s", node.process.cpu_seconds() - before_s)
            if round_number >= scale.warm_up_rounds:
                results[node.name].append(result)
    return results
