"""Three brokers in processes of their own: records after a quiet time, and followers that stop."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster
from rig.idle_record import FirstRecord, Sender
from rig.ottla_cluster import ottla_cluster

# Long, so that a machine which stands still for a moment makes no broker late or dead.
LAG_S = 12.0
SETTINGS = {
    "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
    "broker.session.timeout.ms": "15000",
}
# Leaders look at their followers every 11.25 s / 20.
PAUSE_S = 2.0
MINIMUMS = (1, 2)
ATTEMPTS = 4


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    """A cluster whose topics have been idle for longer than a follower may lag."""
    with ottla_cluster(SETTINGS) as running:
        sender = Sender(running)
        for minimum in MINIMUMS:
            for attempt in range(ATTEMPTS):
                create(running, name(minimum, attempt), minimum)
                assert sender.send(name(minimum, attempt))[1] is None
        sender.wait(LAG_S + 5)
        yield running


def name(minimum: int, attempt: int) -> str:
    return f"idle-{minimum}-{attempt}"


def create(cluster: Cluster, topic: str, minimum: int) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = NewTopic(topic, 1, 3, config={"min.insync.replicas": str(minimum)})
    client.create_topics([new])[topic].result(120)
    cluster.wait_until_in_sync(topic)


def first_record(cluster: Cluster, minimum: int) -> FirstRecord:
    """One that met followers which paused for less than the limit, as was meant."""
    for attempt in range(ATTEMPTS):
        found = Sender(cluster).send_with_followers_paused(name(minimum, attempt), PAUSE_S)
        if max(found.paused_ms, found.answered_ms) < LAG_S * 1000 / 2:
            return found
    pytest.fail(f"the machine stood still longer than {LAG_S / 2:.0f} s, {ATTEMPTS} times")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("minimum", MINIMUMS)
def test_paused_followers_of_an_idle_partition_stay_in_sync(brokers: Cluster, minimum: int) -> None:
    """The record is acknowledged when they are back and hold it; no replica has left the ISR."""
    found = first_record(brokers, minimum)
    assert found.error is None
    assert not found.is_early
    assert found.least_in_sync == 3
