"""The controller of 1,000 partitions dies with -9: when has each of them a new leader?

Timed until both brokers left tell of no partition that the dead one leads. It led a third.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.clusters import create_topic, each_alone
from bench.figures import AT_MOST, Figure, Scale, spread
from bench.leaders import controller, elect_all_preferred
from rig.clusters import Cluster, Member
from rig.metadata import Seen, ask
from rig.probe import connect

_POLL_S = 0.005
_PATIENCE_S = 60.0
_BOUND_S = 1.0


@dataclass(frozen=True, slots=True)
class Failover:
    """What one death cost: how many partitions the dead broker led, and the seconds to the last."""

    led: int
    seconds: float


def measure(scale: Scale) -> list[Figure]:
    partitions = scale.pick(1000, 100)

    def act(cluster: Cluster) -> list[Failover]:
        return _rounds(cluster, partitions, 1 if cluster.name == "kafka" else scale.rounds)

    results = {side: found[0] for side, found in each_alone(act).items()}
    seconds = {side: [each.seconds for each in found] for side, found in results.items()}
    led = [each.led for each in results["ottla"]]
    note = "; ".join(f"{side} {spread(each)} s" for side, each in seconds.items())
    name = f"fail-over of the controller with {partitions:,} partitions"
    return [
        Figure(
            f"{name}: longest",
            max(seconds["ottla"]),
            "s",
            AT_MOST,
            _BOUND_S,
            f"{note}; the dead led {spread(led)}; median {statistics.median(seconds['ottla']):.2f}",
        )
    ]


def _rounds(cluster: Cluster, partitions: int, rounds: int) -> list[Failover]:
    topic = create_topic(cluster, partitions)
    found = []
    for _ in range(rounds):
        elect_all_preferred(cluster)
        cluster.wait_until_in_sync(topic)
        victim = cluster.members[controller(cluster)]
        found.append(kill(cluster, victim, topic))
        print(f"   {cluster.name:<6} {found[-1].led} partitions, {found[-1].seconds:.3f} s")
        victim.start()
        cluster.wait_until_formed()
        cluster.wait_until_in_sync(topic)
    return found


def kill(
    cluster: Cluster, victim: Member, topic: str, then: Callable[[], object] = lambda: None
) -> Failover:
    """Kill `victim`, call `then`, and wait until the others lead all partitions of `topic`."""
    left = [member for member in cluster.running if member is not victim]
    before = cluster.seen_by(left[0].number, [topic])
    led = sum(p.leader == victim.number for p in before.topics[topic].values())
    began_s = time.perf_counter()
    victim.kill()
    then()
    connections = [connect(member.port) for member in left]
    deadline_s = began_s + _PATIENCE_S
    while not all(_led_anew(ask(each, [topic]), victim.number, topic) for each in connections):
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"partitions without a leader after {_PATIENCE_S:.0f} s")
        time.sleep(_POLL_S)
    took_s = time.perf_counter() - began_s
    for connection in connections:
        connection.close()
    return Failover(led, took_s)


def _led_anew(seen: Seen, dead: int, topic: str) -> bool:
    return all(p.leader >= 0 and p.leader != dead for p in seen.topics[topic].values())
