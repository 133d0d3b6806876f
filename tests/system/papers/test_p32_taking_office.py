"""What a broker does when it has won the office, in the order in which the papers have it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ottla.broker.controller.sender import BrokerSender
from ottla.broker.process.broker import Broker
from ottla.coordination.interface.operations import Operation, Result
from ottla.coordination.interface.store import Node, Watch
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.image import BrokerImage
from ottla.testing.cluster import Cluster
from ottla.wire.notation import Message

# What every broker did, in order: (its name, what). Only what happens to be of interest here.
Journal = list[tuple[str, str]]

WATCHES = [
    "watch /admin/reassign_partitions",
    "watch /admin/preferred_replica_election",
    "watch /brokers/topics",
    "watch /admin/delete_topics",
    "watch /brokers/ids",
]


def journaling(journal: Journal) -> type[MemoryStore]:
    """A store in memory that notes what its clients do."""

    class JournalingStore(MemoryStore):
        def note(self, what: str) -> None:
            journal.append((self._name, what))

        def watch_data(self, path: str, callback: Callable[[], None]) -> Watch:
            self.note(f"watch {path}")
            return super().watch_data(path, callback)

        def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
            self.note(f"watch {path}")
            return super().watch_children(path, callback)

        async def children(self, path: str) -> list[str]:
            self.note(f"read {path}")
            return await super().children(path)

        async def subtree(self, path: str) -> dict[str, Node]:
            self.note(f"read {path}")
            return await super().subtree(path)

        async def multi(self, operations: Sequence[Operation]) -> list[Result]:
            for operation in operations:
                if type(operation).__name__ != "Check":
                    self.note(f"write {operation.path}")
            return await super().multi(operations)

    return JournalingStore


def note_messages(broker: Broker, journal: Journal) -> None:
    """Note what a broker sends as controller from now on."""
    send = broker.parts.controller._deliver

    async def noting(target: BrokerImage, message: Message) -> Any:
        journal.append((str(broker.broker_id), f"send {type(message).__name__} to {target.id}"))
        return await send(target, message)

    broker.parts.controller._deliver = noting
    # Those of a term that has begun, too.
    if broker.parts.controller._active is not None:
        for sender in broker.parts.controller._active.senders:
            sender._deliver = noting


@pytest.mark.parametrize("rebalances", ["true", "false"])
def test_the_office_is_taken_in_the_papers_order(
    monkeypatch: pytest.MonkeyPatch, rebalances: str
) -> None:
    """P32: epoch, watches, context, new states, leadership to all that live, timer, deletions."""
    journal: Journal = []
    monkeypatch.setattr("ottla.testing.cluster.MemoryStore", journaling(journal))
    settings = {"auto.leader.rebalance.enable": rebalances}

    async def scenario() -> None:
        async with Cluster(3, settings) as cluster:
            assert cluster.controller is not None
            first = int(cluster.controller.broker_id)
            absent, heir = (number for number in cluster.brokers if number != first)
            await cluster.create_topic("kept", assignments={0: [first, heir]})
            await cluster.create_topic("going", assignments={0: [absent]})
            # A deletion that waits for a replica whose broker is away is left to the next one.
            await cluster.kill(absent)
            (outcome,) = await cluster.any.parts.metadata.topics.delete(
                [cluster.any.image.topics["going"]]
            )
            assert outcome.error is None
            broker = cluster.brokers[heir]
            note_messages(broker, journal)
            journal.clear()
            # It decides nothing more; of its own death least of all.
            await cluster.brokers[first].parts.controller.stop()
            await cluster.kill(first)
            await cluster.until(lambda: cluster.leader("kept") == heir)
            await cluster.until(lambda: (str(heir), "read /admin/delete_topics") in journal)
            assert (broker.parts.controller._rebalancing is not None) is (rebalances == "true")
            await cluster.until(lambda: any("UpdateMetadata" in what for _, what in journal))
            check([what for name, what in journal if name == str(heir)], heir)
            await cluster.restart(absent)
            await cluster.until(
                lambda: all("going" not in b.image.topics for b in cluster.brokers.values())
            )
            stops = f"send StopReplicaRequest to {absent}"
            await cluster.until(lambda: (str(heir), stops) in journal)
            of_absent = [what for _, what in journal if what.endswith(f"to {absent}")]
            assert of_absent.index(stops) > 0, "who leads what is sent before what is to go"

    asyncio.run(scenario())


def test_many_elections_are_told_in_one_message() -> None:
    """P26: a broker that led twenty partitions dies: each of the others gets one LeaderAndIsr."""
    journal: Journal = []

    async def scenario() -> None:
        async with Cluster(3) as cluster:
            assert cluster.controller is not None
            office = int(cluster.controller.broker_id)
            dead, other = (number for number in cluster.brokers if number != office)
            replicas = {index: [dead, office, other] for index in range(20)}
            await cluster.create_topic("t", assignments=replicas)
            note_messages(cluster.brokers[office], journal)
            sent_before = [sender.settled() for sender in senders(cluster.brokers[office])]
            await asyncio.gather(*sent_before)
            journal.clear()
            await cluster.kill(dead)
            await cluster.until(lambda: all(cluster.leader("t", i) == office for i in range(20)))
            told = [what for _, what in journal if "LeaderAndIsr" in what]
            to_living = [what for what in told if not what.endswith(f"to {dead}")]
            assert sorted(to_living) == sorted(
                f"send LeaderAndIsrRequest to {number}" for number in (office, other)
            )

    asyncio.run(scenario())


def senders(broker: Broker) -> list[BrokerSender]:
    """The controller's senders, one for each broker."""
    assert broker.parts.controller._active is not None
    return list(broker.parts.controller._active.senders)


def check(done: list[str], heir: int) -> None:
    """The order of what the new controller did."""
    won = done.index("write /controller_epoch")
    assert done[won + 1] == "write /controller", "both, or neither"
    watched = [what for what in done[won:] if what in WATCHES]
    assert watched == WATCHES
    last_watch = done.index(WATCHES[-1])
    reads = [done.index(f"read {path}", won) for path in ("/brokers/ids", "/brokers/topics")]
    decided = done.index("write /brokers/topics/kept/partitions/0/state", won)
    sent = done.index(f"send LeaderAndIsrRequest to {heir}")
    assert won < last_watch < min(reads)
    assert max(reads) < decided < sent
    assert done.index("write /controller_epoch") < sent


def test_a_mark_for_deletion_is_removed_where_deletion_is_switched_off() -> None:
    """P32: with `delete.topic.enable=false` a new controller keeps the topic, and its leader."""

    async def scenario() -> None:
        async with Cluster(2, {"delete.topic.enable": "false"}) as cluster:
            await cluster.create_topic("kept", assignments={0: [1, 2]})
            assert cluster.controller is not None
            first = cluster.controller
            # An administrator's tool writes the mark while nobody is in office.
            store = cluster.brokers[3 - int(first.broker_id)].storage.store
            await first.parts.controller.stop()
            await store.ensure("/admin/delete_topics/kept")
            await cluster.kill(int(first.broker_id))
            await cluster.until(lambda: cluster.controller is not None)
            await cluster.until(lambda: cluster.leader("kept") is not None)
            assert await store.children("/admin/delete_topics") == []
            assert "kept" in cluster.any.image.topics

    asyncio.run(scenario())
