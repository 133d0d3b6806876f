"""The death of a leader: who is killed, who leads after it, how long the producer waited."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from rig.clusters import Cluster
from rig.metadata import NO_LEADER

from demo.produce import LONG_S

# A wait that begins later than this after the new leaders were named has another reason.
_ITS_WAITS_S = 1.0


@dataclass(slots=True)
class Failover:
    """What happened to the partitions of `topic` when broker `victim` was killed."""

    topic: str
    victim: int
    was_controller: bool
    at: float
    before: dict[int, int]
    after: dict[int, int] = field(default_factory=dict)
    # Seconds until the survivors named new leaders.
    elected_s: float = 0.0
    back_at: float | None = None
    in_sync: dict[int, tuple[int, ...]] = field(default_factory=dict)
    # Seconds between two acknowledgements around the death, as the producer measured them.
    waits_s: dict[int, float] = field(default_factory=dict)
    # When the longest of them began, by the clock.
    began_at: dict[int, float] = field(default_factory=dict)
    # When the wait across the death itself began, and its seconds; it may be a shorter one.
    across: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def gap(self) -> str:
        """The longest wait of a partition that the dead broker led."""
        return _told(max(self.waits_s.get(partition, 0.0) for partition in self.moved))

    @property
    def longest(self) -> int | None:
        """The partition of the dead broker's that waited longest; None where none was told."""
        waited = [partition for partition in self.moved if partition in self.began_at]
        return max(waited, key=lambda partition: self.waits_s[partition], default=None)

    def wait(self, partition: int) -> str:
        """The longest wait of one partition at that time."""
        return _told(self.waits_s.get(partition, 0.0))

    @property
    def moved(self) -> list[int]:
        """The partitions that the dead broker led."""
        return [partition for partition, leader in self.before.items() if leader == self.victim]

    def measure(self, waits: list[dict[str, Any]]) -> None:
        """Take from the producer's waits those that this death explains."""
        last = self.at + self.elected_s + _ITS_WAITS_S
        for wait in waits:
            if wait["began"] + wait["seconds"] < self.at or wait["began"] > last:
                continue
            partition = wait["partition"]
            if wait["began"] <= self.at + self.elected_s:
                self.across[partition] = wait["began"], wait["seconds"]
            if wait["seconds"] > self.waits_s.get(partition, 0.0):
                self.waits_s[partition] = wait["seconds"]
                self.began_at[partition] = wait["began"]


def _told(seconds: float) -> str:
    """Shorter waits are not told by the producer."""
    return f"{seconds:.2f} s" if seconds else f"under {LONG_S} s"


def kill_leader(cluster: Cluster, topic: str) -> Failover:
    """Kill -9 the leader of partition 0, and wait until the others tell who leads instead."""
    before = leaders(cluster, topic)
    victim = before[0]
    was_controller = cluster.seen_by(victim, []).controller == victim
    story = Failover(topic, victim, was_controller, time.time(), before)
    cluster.members[victim].kill()

    def all_are_led() -> bool:
        story.after = leaders(cluster, topic)
        return not {victim, NO_LEADER} & set(story.after.values())

    cluster.wait_until(all_are_led, f"leaders of {topic} without broker {victim}")
    story.elected_s = time.time() - story.at
    return story


def leaders(cluster: Cluster, topic: str) -> dict[int, int]:
    """Who leads each partition, as the first broker that runs tells; NO_LEADER for nobody."""
    seen = cluster.seen_by(cluster.running[0].number, [topic]).topics[topic]
    return {number: partition.leader for number, partition in sorted(seen.items())}


def settle(cluster: Cluster, story: Failover) -> None:
    """Wait until all replicas are in sync again, and note that they are."""
    cluster.wait_until_in_sync(story.topic)
    seen = cluster.seen_by(cluster.running[0].number, [story.topic]).topics[story.topic]
    story.in_sync = {
        number: tuple(sorted(partition.isr)) for number, partition in sorted(seen.items())
    }


def replicas_that_differ(cluster: Cluster, topic: str) -> int:
    """How many replicas do not have the bytes of the first broker's. Nothing is being written."""
    first, *others = ([_bytes_of(m.logs, topic, p) for p in leaders(cluster, topic)]
                      for m in cluster.members.values())  # fmt: skip
    assert all(first), f"{topic} has no replica on the first broker"
    return sum(mine != other for one in others for mine, other in zip(first, one, strict=True))


def _bytes_of(logs: Any, topic: str, partition: int) -> str:
    """A checksum over a replica's segments, one after the other; empty where it has none."""
    files = sorted((logs / f"{topic}-{partition}").glob("*.log"))
    checksum = hashlib.sha256()
    for file in files:
        checksum.update(file.read_bytes())
    return checksum.hexdigest() if files else ""
