"""What a fault is: something made and healed by two calls, between which the workload goes on."""

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


def anyone(cluster: Cluster, rng: Random) -> int:
    """Some broker, leader and follower alike."""
    return rng.choice(sorted(cluster.members))
