"""The two clusters of a comparison: three brokers each, and topics that lie on all three."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.figures import Scale
from rig import kafka as kafka_rig
from rig.clusters import Cluster
from rig.kafka_cluster import kafka_cluster
from rig.ottla_cluster import ottla_cluster

REPLICAS = 3
MIN_IN_SYNC = 2
_numbers = itertools.count(1)


@contextlib.contextmanager
def ours(settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Three Ottla brokers; by default with group commit."""
    with ottla_cluster(settings) as cluster:
        yield cluster


@contextlib.contextmanager
def both(settings: Mapping[str, str] | None = None) -> Iterator[list[Cluster]]:
    """Ours, and Kafka's beside it if it can run here: then the list has two."""
    with contextlib.ExitStack() as stack:
        clusters = [stack.enter_context(ottla_cluster(settings))]
        reason = kafka_rig.available()
        if reason is None:
            clusters.append(stack.enter_context(kafka_cluster()))
        else:
            print(f"   without Kafka: {reason}", flush=True)
        yield clusters


def each_alone(act: Callable[[Cluster], Any], rounds: int = 1) -> dict[str, list[Any]]:
    """Let each cluster act with the machine to itself, in turn, each time newly started."""
    makers: list[Any] = [ottla_cluster]
    if kafka_rig.available() is None:
        makers.append(kafka_cluster)
    results: dict[str, list[Any]] = {}
    for _ in range(rounds):
        for make in makers:
            with make() as cluster:
                results.setdefault(cluster.name, []).append(act(cluster))
    return results


def admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def create_topic(cluster: Cluster, partitions: int = 1) -> str:
    """A topic that stays, on all three brokers; in sync when this returns."""
    name = f"bench-{next(_numbers)}"
    client = admin(cluster)
    new = NewTopic(
        name,
        partitions,
        REPLICAS,
        config={"min.insync.replicas": str(MIN_IN_SYNC)},
    )
    client.create_topics([new])[name].result(60)
    cluster.wait_until_in_sync(name)
    return name


@contextlib.contextmanager
def topic(cluster: Cluster, partitions: int = 1) -> Iterator[str]:
    """A topic of its own, deleted at the end so that its bytes do not trouble the next round."""
    name = create_topic(cluster, partitions)
    yield name
    client = admin(cluster)  # It must live until its future is done.
    with contextlib.suppress(KafkaException):
        client.delete_topics([name])[name].result(30)
    time.sleep(1.0)  # The files go half a second later.


def alternate(
    clusters: list[Cluster], scale: Scale, act: Callable[[Cluster], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Let each side act in turn; the first rounds warm up and are thrown away."""
    results: dict[str, list[dict[str, Any]]] = {cluster.name: [] for cluster in clusters}
    for round_number in range(scale.warm_up_rounds + scale.rounds):
        for cluster in clusters:
            result = act(cluster)
            if round_number >= scale.warm_up_rounds:
                results[cluster.name].append(result)
    return results
