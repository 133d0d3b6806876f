"""What can be broken, how it is put right, and what must hold meanwhile.

A fault is made and healed by two calls, between which the workload goes on. Which broker it
hits is drawn from the seeded source the caller passes, leader and follower alike.
"""

import signal
from dataclasses import dataclass
from random import Random
from typing import Protocol

from chaos.cluster import CLIENT, Cluster


class Fault(Protocol):
    """Something that goes wrong for a while."""

    @property
    def name(self) -> str: ...

    def make(self, cluster: Cluster, rng: Random) -> str:
        """Break something and say what, in words for a log line."""
        ...

    def heal(self, cluster: Cluster) -> None:
        """Put right what `make` broke."""
        ...


@dataclass(slots=True)
class Kill:
    """kill -9 of one broker; healing starts it again."""

    name: str = "kill"
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = rng.choice(sorted(cluster.members))
        cluster.members[self.hit].kill()
        return f"broker {self.hit} killed"

    def heal(self, cluster: Cluster) -> None:
        cluster.members[self.hit].start()


@dataclass(slots=True)
class Stop:
    """SIGSTOP beyond the session's end: a zombie that later goes on as if nothing had been."""

    name: str = "stop"
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = rng.choice(sorted(cluster.members))
        cluster.members[self.hit].send(signal.SIGSTOP)
        return f"broker {self.hit} stopped"

    def heal(self, cluster: Cluster) -> None:
        cluster.members[self.hit].send(signal.SIGCONT)


@dataclass(slots=True)
class Split:
    """One broker is cut off from the others, both ways; clients still reach it or do not."""

    name: str = "partition"

    def make(self, cluster: Cluster, rng: Random) -> str:
        hit = rng.choice(sorted(cluster.members))
        host = cluster.members[hit].host
        others = [member.host for member in cluster.members.values() if member.id != hit]
        with_client = rng.random() < 0.5
        cluster.hosts.split([host], [*others, *([] if with_client else [CLIENT])])
        return f"broker {hit} cut off, clients {'still reach' if with_client else 'lose'} it"

    def heal(self, cluster: Cluster) -> None:
        cluster.hosts.heal()


@dataclass(slots=True)
class OneWay:
    """What one broker sends to another is lost; what it receives from it is not."""

    name: str = "one-way"

    def make(self, cluster: Cluster, rng: Random) -> str:
        source, target = rng.sample(sorted(cluster.members), 2)
        members = cluster.members
        cluster.hosts.cut(members[source].host, members[target].host)
        return f"what broker {source} sends to {target} is lost"

    def heal(self, cluster: Cluster) -> None:
        cluster.hosts.heal()


@dataclass(slots=True)
class PowerCut:
    """One broker dies and its disk forgets what was not synced; healing starts it again."""

    name: str = "power"
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = rng.choice(sorted(cluster.members))
        cluster.members[self.hit].lose_power()
        return f"broker {self.hit} without power"

    def heal(self, cluster: Cluster) -> None:
        cluster.members[self.hit].start()


FAULTS = {
    "kill": Kill,
    "stop": Stop,
    "partition": Split,
    "one-way": OneWay,
    "power": PowerCut,
}
