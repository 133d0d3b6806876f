"""The store is away, for all brokers at once."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from chaos.cluster import Cluster


@dataclass(slots=True)
class StoreAway:
    """The store answers nobody: paused servers, or a write lock that somebody holds."""

    name: str = "store-away"
    broken_s: float = 60.0

    def make(self, cluster: Cluster, rng: Random) -> str:  # noqa: ARG002  All are hit.
        cluster.store.pause()
        return "the store answers nobody"

    def heal(self, cluster: Cluster) -> None:
        cluster.store.resume()


@dataclass(slots=True)
class StoreRestart:
    """All servers of the store die, and come back with what they had."""

    name: str = "store-restart"
    broken_s: float = 5.0
    _start: Callable[[], None] | None = None

    def make(self, cluster: Cluster, rng: Random) -> str:  # noqa: ARG002  All are hit.
        self._start = cluster.store.restart()
        assert self._start is not None, "only a store of processes can be restarted"
        return "all servers of the store killed"

    def heal(self, cluster: Cluster) -> None:  # noqa: ARG002
        assert self._start is not None
        self._start()
