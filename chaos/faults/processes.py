"""Brokers that die, hang, or are asked to end."""

import signal
import time
from dataclasses import dataclass
from random import Random

from chaos.cluster import Cluster
from chaos.faults.fault import Death, DeathOfAll, anyone


@dataclass(slots=True)
class Kill(Death):
    """kill -9 of one broker."""

    name: str = "kill"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.dead = [anyone(cluster, rng)]
        cluster.members[self.dead[0]].kill()
        return f"broker {self.dead[0]} killed"


@dataclass(slots=True)
class KillController(Death):
    """kill -9 of the broker in office."""

    name: str = "kill-controller"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.dead = [cluster.controller() or anyone(cluster, rng)]
        cluster.members[self.dead[0]].kill()
        return f"controller {self.dead[0]} killed"


@dataclass(slots=True)
class KillTwo(Death):
    """Two of three at once: with two wanted in sync nothing is acknowledged until one is back."""

    name: str = "kill-two"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.dead = rng.sample(sorted(cluster.members), 2)
        for number in self.dead:
            cluster.members[number].kill()
        return f"brokers {self.dead[0]} and {self.dead[1]} killed"


@dataclass(slots=True)
class KillAll(DeathOfAll):
    """kill -9 of every broker at once: nobody is left who knows anything."""

    name: str = "kill-all"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.draw(cluster, rng)
        # The signals first: the wait for one's end would let the others go on.
        for number in self.dead:
            cluster.members[number].send(signal.SIGKILL)
        for number in self.dead:
            cluster.members[number].kill()
        return f"all brokers killed, back as {', '.join(map(str, self.dead))}"


@dataclass(slots=True)
class Stop:
    """SIGSTOP beyond the session's end: a zombie that later goes on as if nothing had been."""

    name: str = "stop"
    broken_s: float = 5.0
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = anyone(cluster, rng)
        cluster.members[self.hit].send(signal.SIGSTOP)
        return f"broker {self.hit} stopped"

    def heal(self, cluster: Cluster) -> None:
        cluster.members[self.hit].send(signal.SIGCONT)


@dataclass(slots=True)
class StopAll:
    """SIGSTOP of every broker beyond the sessions' end; they go on in another order."""

    name: str = "stop-all"
    broken_s: float = 5.0
    _order: tuple[int, ...] = ()

    def make(self, cluster: Cluster, rng: Random) -> str:
        self._order = tuple(rng.sample(sorted(cluster.members), len(cluster.members)))
        for number in sorted(cluster.members):
            cluster.members[number].send(signal.SIGSTOP)
        return f"all brokers stopped, to go on as {', '.join(map(str, self._order))}"

    def heal(self, cluster: Cluster) -> None:
        for number in self._order:
            cluster.members[number].send(signal.SIGCONT)
            time.sleep(0.5)


@dataclass(slots=True)
class Rolling:
    """Every broker in turn is asked to end, and started again when the rest is whole."""

    name: str = "rolling"
    broken_s: float = 0.0

    def make(self, cluster: Cluster, rng: Random) -> str:
        order = rng.sample(sorted(cluster.members), len(cluster.members))
        for number in order:
            cluster.members[number].stop()
            cluster.members[number].start()
            cluster.wait_in_sync()
        return f"brokers {', '.join(map(str, order))} restarted in turn"

    def heal(self, cluster: Cluster) -> None:
        """There is nothing left to heal."""
