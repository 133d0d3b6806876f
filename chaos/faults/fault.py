"""What a fault is: something made and healed by two calls, between which the workload goes on."""

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from chaos.cluster import Cluster


class Fault(Protocol):
    """Something that goes wrong for a while. Where it hits is drawn from the source passed."""

    @property
    def name(self) -> str: ...

    @property
    def broken_s(self) -> float:
        """How long to leave it unhealed."""
        ...

    def make(self, cluster: Cluster, rng: Random) -> str:
        """Break something and say what, in words for a log line."""
        ...

    def heal(self, cluster: Cluster) -> None:
        """Put right what `make` broke."""
        ...


@dataclass(slots=True)
class Death:
    """Brokers that are no more, however that came about; healing starts them again."""

    broken_s: float = 0.5
    dead: list[int] = field(default_factory=list)

    def heal(self, cluster: Cluster) -> None:
        for number in self.dead:
            cluster.members[number].start()


@dataclass(slots=True)
class Separation:
    """Hosts that do not reach each other; healing joins them all."""

    # Longer than a session and what may follow.
    broken_s: float = 5.0

    def heal(self, cluster: Cluster) -> None:
        cluster.hosts.heal()


def anyone(cluster: Cluster, rng: Random) -> int:
    """Some broker, leader and follower alike."""
    return rng.choice(sorted(cluster.members))
