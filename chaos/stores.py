"""The store a cluster agrees through, and what can be done to it: SQLite's file, or ZooKeeper.

An outage of SQLite is another process that holds the write lock; ZooKeeper's servers run on a host
of their own, are paused, killed, or cut off.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from chaos.hosts import Hosts
from rig.zookeeper import Ensemble, zookeeper

STORE = "store"


class StoreServer(Protocol):
    """What stands behind `coordination.connect`."""

    @property
    def connect(self) -> str:
        """The address for the setting `coordination.connect`."""
        ...

    def pause(self) -> None:
        """No change is answered until `resume`."""
        ...

    def resume(self) -> None: ...

    def restart(self) -> Callable[[], None] | None:
        """Crash it and return what brings it back; None where there is no process to crash."""
        ...


class SqliteFile:
    """A file on the machine that all brokers of the rig share; it cannot be cut off."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock: sqlite3.Connection | None = None

    @property
    def connect(self) -> str:
        return f"sqlite://{self._file}"

    def pause(self) -> None:
        self._lock = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        self._lock.execute("BEGIN IMMEDIATE")

    def resume(self) -> None:
        assert self._lock is not None
        self._lock.execute("ROLLBACK")
        self._lock.close()
        self._lock = None

    def restart(self) -> None:
        return None


class ZookeeperServers:
    """Real servers on the host `store`."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble

    @property
    def connect(self) -> str:
        return f"zookeeper://{self._ensemble.hosts}/chaos"

    def pause(self) -> None:
        for server in self._ensemble.servers:
            server.pause()

    def resume(self) -> None:
        for server in self._ensemble.servers:
            server.resume()

    def restart(self) -> Callable[[], None]:
        for server in self._ensemble.servers:
            server.kill()
        return self._start

    def _start(self) -> None:
        for server in self._ensemble.servers:
            server.start()
        self._ensemble.wait_until_serving()


@contextlib.contextmanager
def store(kind: str, hosts: Hosts, folder: Path, tick_ms: int) -> Iterator[StoreServer]:
    """The store of a kind (`sqlite`, `zookeeper`, `zookeeper3`) for as long as the block lasts."""
    if kind == "sqlite":
        yield SqliteFile(folder / "store.sqlite")
        return
    size = 3 if kind == "zookeeper3" else 1
    address = hosts.address(STORE)
    inside = tuple(hosts.inside(STORE))
    with zookeeper(size, host=address, prefix=inside, tick_ms=tick_ms) as ensemble:
        yield ZookeeperServers(ensemble)
