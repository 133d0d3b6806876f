"""Three broker processes over a store of their own, and the store as another program sees it."""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from rig.broker import settings_of
from rig.clusters import Cluster, Member, free_ports
from rig.nodes import properties
from rig.topics import wait_for_leaders

from ottla.coordination.connect import connect as connect_to_store

SIZE = 3
PATIENCE_S = 120.0
# The death of a broker is seen by its connections: none is taken for dead because the machine
# stood still for a moment.
_SETTINGS = {
    "broker.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "120000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.replication.factor": "3",
}


@contextlib.contextmanager
def brokers(connect: str, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Brokers 1 to 3, a process each, that agree through the store at `connect`."""
    home = Path(tempfile.mkdtemp(prefix="papers-"))
    first = free_ports(SIZE)
    cluster = Cluster("ottla")
    try:
        for number in range(1, SIZE + 1):
            port, folder = first + number - 1, home / f"broker-{number}"
            folder.mkdir()
            file = folder / "server.properties"
            own = {"broker.id": str(number), "coordination.connect": connect}
            given = {**settings_of(folder, port), **_SETTINGS, **own, **(settings or {})}
            file.write_text(properties(given))
            command: list[str | Path] = [sys.executable, "-m", "ottla.broker.process.main", file]
            member = Member(number, port, folder, folder / "logs", command)
            cluster.members[number] = member
            member.start()
        cluster.wait_until_formed()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(home, ignore_errors=True)


def create(
    cluster: Cluster, topic: str, replicas: list[list[int]], settings: dict[str, str] | None = None
) -> None:
    """A topic whose partitions are on these brokers, the first of each leading; all in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    wanted = NewTopic(
        topic, len(replicas), replica_assignment=replicas, config=dict(settings or {})
    )
    admin.create_topics([wanted])[topic].result(90)
    wait_for_leaders(admin, topic, len(replicas))
    cluster.wait_until_in_sync(topic)


def active_controller(cluster: Cluster) -> int:
    """The controller, as all running brokers name it."""

    def named() -> int | None:
        seen = {cluster.seen_by(m.number, []).controller for m in cluster.running}
        numbers = {member.number for member in cluster.running}
        return seen.pop() if len(seen) == 1 and seen <= numbers else None

    found: int = until(named, "one controller")
    return found


def in_sync(cluster: Cluster, topic: str, index: int = 0) -> tuple[int, ...]:
    """The ISR, as the first broker that runs tells it."""
    seen = cluster.seen_by(cluster.running[0].number, [topic])
    return seen.topics[topic][index].isr


def bring_back(cluster: Cluster) -> None:
    """Start what does not run, and wait until all know all."""
    for member in cluster.members.values():
        if not member.alive():
            member.start()
    cluster.wait_until_formed()


def until(condition: Callable[[], Any], what: str) -> Any:
    """What `condition` gives, once that is true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


def stored_in(address: str, path: str) -> bytes:
    """The data of a node of a store, as another of its clients finds it; empty where it is not."""

    async def look() -> bytes:
        store = await connect_to_store(address)
        try:
            node = await store.get(path)
            return b"" if node is None else node.data
        finally:
            await store.close()

    return asyncio.run(look())


class Tree:
    """ZooKeeper's nodes, read by a client that is not ours."""

    def __init__(self, hosts: str) -> None:
        self.client = KazooClient(hosts=hosts)
        self.client.start(timeout=60)

    def close(self) -> None:
        self.client.stop()
        self.client.close()

    def names(self, path: str) -> list[str]:
        return sorted(self.client.get_children(path))

    def json(self, path: str) -> Any:
        """The data of a node; None where there is none."""
        if self.client.exists(path) is None:
            return None
        return json.loads(self.client.get(path)[0])

    def text(self, path: str) -> str:
        return str(self.client.get(path)[0].decode())

    def is_ephemeral(self, path: str) -> bool:
        return bool(self.client.exists(path).ephemeralOwner)

    def state(self, topic: str, index: int = 0) -> Any:
        return self.json(f"/brokers/topics/{topic}/partitions/{index}/state")
