"""Hosts that do not reach each other."""

import time
from dataclasses import dataclass
from random import Random

from chaos.cluster import CLIENT, Cluster
from chaos.faults.fault import Separation, anyone


@dataclass(slots=True)
class Split(Separation):
    """One broker is cut off from the others, both ways; clients still reach it or do not.

    A store on a host of its own is on one side or the other, too.
    """

    name: str = "partition"

    def make(self, cluster: Cluster, rng: Random) -> str:
        hit = anyone(cluster, rng)
        others = [member.host for member in cluster.members.values() if member.id != hit]
        with_client, with_store = rng.random() < 0.5, rng.random() < 0.5
        lost = [] if with_client else [CLIENT]
        lost += [] if with_store else cluster.store_hosts
        cluster.hosts.split([cluster.members[hit].host], [*others, *lost])
        description = f"broker {hit} cut off, clients {'still reach' if with_client else 'lose'} it"
        if cluster.store_hosts:
            description += f", it {'reaches' if with_store else 'loses'} the store"
        return description


@dataclass(slots=True)
class OneWay(Separation):
    """What one broker sends to another is lost; what it receives from it is not."""

    name: str = "one-way"

    def make(self, cluster: Cluster, rng: Random) -> str:
        source, target = rng.sample(sorted(cluster.members), 2)
        members = cluster.members
        cluster.hosts.cut(members[source].host, members[target].host)
        return f"what broker {source} sends to {target} is lost"


@dataclass(slots=True)
class SwizzleClog:
    """Hosts lose the others one after the other, and find them again in another order."""

    name: str = "swizzle-clog"
    broken_s: float = 3.0
    _order: tuple[str, ...] = ()

    def make(self, cluster: Cluster, rng: Random) -> str:
        every = [member.host for member in cluster.members.values()]
        clogged = rng.sample(every, rng.randint(1, len(every)))
        for host in clogged:
            cluster.hosts.split([host], [name for name in every if name != host])
            time.sleep(rng.random())
        self._order = tuple(rng.sample(clogged, len(clogged)))
        return f"{', '.join(clogged)} clogged, opened again as {', '.join(self._order)}"

    def heal(self, cluster: Cluster) -> None:
        for host in self._order:
            cluster.hosts.open(host)
            time.sleep(0.5)
        cluster.hosts.heal()


@dataclass(slots=True)
class CutFromStore(Separation):
    """One broker loses the store, and nothing else."""

    name: str = "store-cut"

    def make(self, cluster: Cluster, rng: Random) -> str:
        hit = anyone(cluster, rng)
        assert cluster.store_hosts, "only a store on a host of its own can be cut off"
        cluster.hosts.split([cluster.members[hit].host], cluster.store_hosts)
        return f"broker {hit} cut off from the store"
