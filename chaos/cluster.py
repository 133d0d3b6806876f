"""Three real brokers on hosts and disks of their own, and what can be done to them."""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from chaos.disks import Disk
from chaos.hosts import Hosts, network
from rig.nodes import properties
from rig.process import Process, start

PORT = 9092
CLIENT = "client"
STORE = "store"


class Member:
    """One broker of the cluster: its host, its disk, its process."""

    def __init__(self, broker_id: int, hosts: Hosts, disk: Disk, settings: Mapping[str, str]):
        self.id = broker_id
        self.host = f"b{broker_id}"
        self.disk = disk
        self._hosts = hosts
        self._settings = dict(settings)
        self._folder = disk.mount_point.parent
        self.process: Process | None = None
        self.starts = 0

    @property
    def address(self) -> str:
        return f"{self._hosts.address(self.host)}:{PORT}"

    @property
    def log(self) -> Path:
        return self._folder / f"{self.host}.log"

    @property
    def data(self) -> Path:
        return self.disk.mount_point / "data"

    def start(self) -> None:
        """Start the process; whether it serves is seen by asking it."""
        file = self._folder / f"{self.host}.properties"
        file.write_text(properties(self._all_settings()))
        command = [*self._hosts.inside(self.host), sys.executable, "-m", "ottla.broker.main"]
        self.process = start([*command, str(file)], self.log)
        self.starts += 1

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

    def _all_settings(self) -> dict[str, str]:
        return {
            "broker.id": str(self.id),
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.data),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "3",
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }


class Cluster:
    """The members by id, and the network between them."""

    def __init__(self, hosts: Hosts, members: Mapping[int, Member]) -> None:
        self.hosts = hosts
        self.members = dict(members)

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
def cluster(folder: Path, connect: str, settings: Mapping[str, str]) -> Iterator[Cluster]:
    """Three brokers that agree through the store at `connect`, gone at the end of the block."""
    names = ["b1", "b2", "b3", CLIENT, STORE]
    with network(names) as hosts, contextlib.ExitStack() as stack:
        members = {}
        for number in (1, 2, 3):
            disk = Disk(folder, f"disk{number}")
            stack.callback(disk.close)
            chosen = {"coordination.connect": connect, **settings}
            members[number] = Member(number, hosts, disk, chosen)
        whole = Cluster(hosts, members)
        stack.callback(whole.stop)
        whole.start()
        yield whole
        whole.stop()


def wait_until(what: str, condition: object, limit_s: float = 60.0) -> float:
    """Wait until `condition()` is true and return how long it took. Raises TimeoutError."""
    assert callable(condition)
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            raise TimeoutError(f"after {limit_s:.0f} s still not so: {what}")
        time.sleep(0.05)
    return time.monotonic() - began
