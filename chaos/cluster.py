"""Three real brokers on hosts and disks of their own, and what can be done to them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import unittest.mock
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from chaos.clocks import Clock
from chaos.disks import Disk
from chaos.hosts import Hosts, network
from chaos.secured import ADMIN, Secured, secured
from chaos.secured_metadata import ask_securely
from chaos.stores import STORE, StoreServer, store
from ottla.client import sync
from rig import metadata
from rig.nodes import properties
from rig.process import Process
from rig.zookeeper import TICK_MS

PORT = 9092
CLIENT = "client"
TOPIC = "chaos"
# That of producers whose records may be lost or stand twice by their own fault.
UNJUDGED = "unjudged"
# Topics whose replicas must be in sync before the next fault.
WATCHED = [TOPIC, UNJUDGED, "__consumer_offsets"]


class Member:
    """One broker of the cluster: its host, its disk, its process, perhaps a clock of its own."""

    def __init__(
        self,
        broker_id: int,
        hosts: Hosts,
        disk: Disk,
        settings: Mapping[str, str],
        clock: Clock | None,
        secured: Secured | None = None,
    ) -> None:
        self.id = broker_id
        self.host = f"b{broker_id}"
        self.disk = disk
        self.clock = clock
        self._hosts = hosts
        self._settings = dict(settings)
        self.secured = secured
        if secured is not None:
            secured.certify(broker_id, hosts.address(self.host))
        self._folder = disk.mount_point.parent
        self.process: Process | None = None
        self._spare = self._prepare()

    @property
    def address(self) -> str:
        return f"{self._hosts.address(self.host)}:{PORT}"

    @property
    def log(self) -> Path:
        return self._folder / f"{self.host}.log"

    @property
    def _properties(self) -> Path:
        return self._folder / f"{self.host}.properties"

    @property
    def data(self) -> Path:
        return self.disk.mount_point / "data"

    def metadata_of(self, topics: list[str]) -> metadata.Seen:
        """What it knows of the cluster. Raises OSError while it does not serve."""
        if self.secured is not None:
            return ask_securely(self.address, topics, self.secured.security(ADMIN))
        with socket.create_connection((self._hosts.address(self.host), PORT), 2.0) as connection:
            return metadata.ask(connection, topics)

    def start(self) -> None:
        """Start the process; whether it serves is seen by asking it."""
        self._properties.write_text(properties(self._all_settings()))
        self.process, self._spare = self._spare, self._prepare()
        assert self.process.child.stdin is not None
        self.process.child.stdin.write(b"begin\n")
        self.process.child.stdin.close()

    def _prepare(self) -> Process:
        """A process that can begin at once."""
        command = [*self._hosts.inside(self.host), sys.executable, "-m", "chaos.spare"]
        with self.log.open("ab") as output:
            child = subprocess.Popen(
                [*command, str(self._properties)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(self.clock.environment if self.clock else {})},
            )
        return Process(child, self.log, time.perf_counter())

    def alive(self) -> bool:
        return self.process is not None and self.process.alive()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.child.send_signal(number)

    def kill(self) -> None:
        """As kill -9: nothing of the process runs any more, what it wrote stays."""
        if self.process is not None:
            self.process.kill()
            self.process = None

    def lose_power(self) -> None:
        """The disk loses what was not synced, and the process is gone."""
        self.disk.cut_power()
        self.kill()
        self.disk.unmount()
        self.disk.mount()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self.process is not None:
            self.process.child.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process = None

    def close(self) -> None:
        """It is not started any more."""
        self.stop()
        self._spare.kill()

    def _all_settings(self) -> dict[str, str]:
        return {
            "broker.id": str(self.id),
            "log.dirs": str(self.data),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "3",
            "group.initial.rebalance.delay.ms": "0",
            # Leaders come home between faults, so that each broker has some to lose.
            "leader.imbalance.check.interval.seconds": "5",
            **self._settings,
            **self._listeners(),
        }

    def _listeners(self) -> dict[str, str]:
        if self.secured is None:
            return {"listeners": f"PLAINTEXT://{self.address}"}
        return self.secured.broker_settings(self.id, self._hosts.address(self.host), PORT)


class Cluster:
    """The members by id, the network between them, and the store they agree through."""

    def __init__(
        self,
        hosts: Hosts,
        members: Mapping[int, Member],
        store_server: StoreServer,
        store_hosts: list[str],
        secured: Secured | None,
    ) -> None:
        self.secured = secured
        self.hosts = hosts
        self.members = dict(members)
        self.store = store_server
        # Empty where the store is on no host of its own.
        self.store_hosts = store_hosts

    @property
    def bootstrap(self) -> str:
        return ",".join(member.address for member in self.members.values())

    def start(self) -> None:
        for member in self.members.values():
            member.start()

    def stop(self) -> None:
        for member in self.members.values():
            member.stop()

    @contextlib.contextmanager
    def admin(self) -> Iterator[sync.Admin]:
        """Asks the brokers as an onlooker whom no fault touches."""
        own = {} if self.secured is None else self.secured.environment(ADMIN)
        with unittest.mock.patch.dict(os.environ, own), sync.Admin(self.bootstrap) as admin:
            yield admin

    def controller(self) -> int | None:
        """The id of the active controller, if any broker names one."""
        for member in self.members.values():
            with contextlib.suppress(OSError):
                return member.metadata_of([]).controller
        return None

    def in_sync(self) -> bool:
        """Whether each broker reports every replica of every partition in the ISR."""
        with contextlib.suppress(OSError):
            return all(self._all_in_sync(m.metadata_of(WATCHED)) for m in self.members.values())
        return False

    def _all_in_sync(self, seen: metadata.Seen) -> bool:
        everyone = set(self.members)
        partitions = [p for topic in seen.topics.values() for p in topic.values()]
        # The group's topic may have fewer replicas: it is made of the brokers alive just then.
        return set(seen.ports) == everyone and all(
            p.leader in everyone and set(p.isr) == set(p.replicas) for p in partitions
        )

    def wait_in_sync(self) -> float:
        """Wait until `in_sync`, and give the seconds it took. Raises TimeoutError."""
        return wait_until("all are in sync", self.in_sync)


@contextlib.contextmanager
def cluster(
    folder: Path,
    kind: str,
    settings: Mapping[str, str],
    *,
    clocks: bool,
    tick_ms: int = TICK_MS,
    is_secure: bool = False,
) -> Iterator[Cluster]:
    """Three brokers that agree through a store of this kind, gone at the end of the block.

    `clocks`: their wall clocks can be made to jump. `tick_ms` is ZooKeeper's. `is_secure`: with
    TLS, logins and ACLs, and a ZooKeeper whose nodes are for the brokers alone.
    """
    secure = secured(folder / "security") if is_secure else None
    own = {} if secure is None else {"coordination.user": "ottla", "coordination.password": "chaos"}
    names = ["b1", "b2", "b3", CLIENT, STORE]
    with (
        network(names) as hosts,
        store(kind, hosts, folder, tick_ms) as found,
        contextlib.ExitStack() as stack,
    ):
        members = {}
        for number in (1, 2, 3):
            disk = Disk(folder, f"disk{number}")
            stack.callback(disk.close)
            chosen = {"coordination.connect": found.connect, **own, **settings}
            if secure is not None:
                secure.write_users(chosen)
            clock = Clock(folder, f"b{number}") if clocks else None
            members[number] = Member(number, hosts, disk, chosen, clock, secure)
            stack.callback(members[number].close)
        whole = Cluster(hosts, members, found, [] if kind == "sqlite" else [STORE], secure)
        whole.start()
        yield whole


def wait_until(
    what: str, condition: Callable[[], bool], limit_s: float = 120.0, every_s: float = 0.1
) -> float:
    """Wait until `condition()` is true and return how long it took. Raises TimeoutError."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            raise TimeoutError(f"after {limit_s:.0f} s still not so: {what}")
        time.sleep(every_s)
    return time.monotonic() - began
