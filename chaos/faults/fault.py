"""What a fault is: something made and healed by two calls, between which the workload goes on."""

import time
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
class DeathOfAll(Death):
    """Every broker is gone at once; each comes back in a time of its own."""

    # Longer than what a broker needs to serve, so that the first may be alone for a while.
    _pause_max_s: float = 2.0
    _pauses_s: tuple[float, ...] = ()

    def draw(self, cluster: Cluster, rng: Random) -> None:
        """Choose in which order all of them come back, and how long after each other.

        Half of the time they come back together and at once, as when a supervisor starts them.
        """
        self.dead = rng.sample(sorted(cluster.members), len(cluster.members))
        at_once = rng.random() < 0.5
        self.broken_s = 0.0 if at_once else self.broken_s
        self._pauses_s = tuple(
            0.0 if at_once else self._pause_max_s * rng.random() for _ in self.dead
        )

    def heal(self, cluster: Cluster) -> None:
        for number, pause_s in zip(self.dead, self._pauses_s, strict=True):
            cluster.members[number].start()
            time.sleep(pause_s)


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
