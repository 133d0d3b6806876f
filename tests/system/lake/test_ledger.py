"""The equation of a load, beside the broker's own ledger: exact, whatever happened to the topic."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import pytest
from confluent_kafka import Producer

import ottla.lake
import ottla.testing
from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import sync
from ottla.client.admin.compaction import CompactAction
from ottla.client.admin.configs import ConfigResourceType
from ottla.lake import run_here
from ottla.ledger.partition import LedgerTotals, PartitionLedger
from tests.integration.replication.scenes import play

MakeTopic = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker() as running:
        yield running


@pytest.fixture
def topic(broker: ottla.testing.Broker, request: pytest.FixtureRequest) -> MakeTopic:
    """`topic(**settings)`: one of a partition, with the test's name."""

    def make(**settings: str) -> str:
        name = request.node.name.replace("_", "-")
        broker.create_topic(name, 1, {k.replace("_", "."): v for k, v in settings.items()})
        return name

    return make


def write(broker: ottla.testing.Broker, topic: str, count: int, first: int = 0) -> None:
    """One record in each batch, three keys."""
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(first, first + count):
            key = b"key%d" % (number % 3)
            producer.send(topic, b"value%d" % number, key=key, partition=0)
            producer.flush()


def load(
    broker: ottla.testing.Broker, topic: str, folder: Path, *, accept_loss: bool = False
) -> PartitionLedger:
    """Load what is new; the account of it."""
    done = ottla.lake.load(
        topic,
        str(folder),
        bootstrap=broker.bootstrap,
        runner=run_here,
        accept_loss=accept_loss,
    )
    (ledger,) = done.ledgers
    assert ledger.unexplained == 0
    assert ledger.reported is not None
    assert sum(astuple(ledger.reported)) == ledger.end - ledger.start
    assert ledger.reported.unexplained == 0
    return ledger


def proven(broker: ottla.testing.Broker, folder: Path) -> LedgerTotals:
    """Verify the table; what the broker says of all that was loaded."""
    found = ottla.lake.verify(str(folder), bootstrap=broker.bootstrap)
    assert found.problems == []
    return found.reported[0]


def compact(broker: ottla.testing.Broker, topic: str) -> None:
    """Have the topic compacted, and wait for it."""
    with sync.Admin(broker.bootstrap) as admin:
        admin.compaction.describe_topic(topic, CompactAction.CLEAN)
        while any(
            one.wanted_end >= 0 or one.is_running for one in admin.compaction.describe_topic(topic)
        ):
            time.sleep(0.02)


def test_plain(broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path) -> None:
    """All was loaded, and is data."""
    name = topic()
    write(broker, name, 10)
    ledger = load(broker, name, tmp_path)
    assert (ledger.loaded, ledger.reported) == (10, LedgerTotals(10, 0, 0, 0, 0, 0, 0))
    assert proven(broker, tmp_path) == LedgerTotals(10, 0, 0, 0, 0, 0, 0)


def test_transactional(broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path) -> None:
    """What a real client committed and aborted, and its markers."""
    name = topic()
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0}
    )
    producer.init_transactions(60)
    for number, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        for _ in range(number + 1):
            producer.produce(name, b"value", partition=0)
        if commits:
            producer.commit_transaction(60)
        else:
            assert producer.flush(60) == 0
            producer.abort_transaction(60)
    ledger = load(broker, name, tmp_path)
    assert (ledger.loaded, ledger.control, ledger.aborted) == (4, 3, 2)
    assert ledger.reported == LedgerTotals(4, 3, 2, 0, 0, 0, 0)
    assert proven(broker, tmp_path) == LedgerTotals(4, 3, 2, 0, 0, 0, 0)


def test_compacted(broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path) -> None:
    """Before a load, and between it and its verification."""
    name = topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    write(broker, name, 20)
    compact(broker, name)
    first = load(broker, name, tmp_path)
    assert (first.loaded, first.compacted) == (3, 17)
    assert first.reported == LedgerTotals(3, 0, 0, 17, 0, 0, 0)
    write(broker, name, 6, first=20)
    second = load(broker, name, tmp_path)
    assert (second.loaded, second.compacted) == (6, 0)
    compact(broker, name)
    assert proven(broker, tmp_path) == LedgerTotals(3, 0, 0, 23, 0, 0, 0)


def test_once_compacted(broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path) -> None:
    """A topic that is not compacted any more keeps its holes, and they are explained."""
    name = topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    write(broker, name, 20)
    compact(broker, name)
    with sync.Admin(broker.bootstrap) as admin:
        admin.configs.alter(ConfigResourceType.TOPIC, name, {"cleanup.policy": "delete"})
    ledger = load(broker, name, tmp_path)
    assert (ledger.loaded, ledger.compacted) == (3, 17)
    assert proven(broker, tmp_path).compacted == 17


def test_deleted(broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path) -> None:
    """By somebody before the second load came, and by retention after it."""
    name = topic(retention_bytes="100", internal_segment_bytes="300")
    write(broker, name, 5)
    assert load(broker, name, tmp_path).loaded == 5
    write(broker, name, 10, first=5)
    with sync.Admin(broker.bootstrap) as admin:
        admin.logs.delete_records({TopicPartition(name, 0): 8})
    ledger = load(broker, name, tmp_path, accept_loss=True)
    assert (ledger.loaded, ledger.deleted) == (7, 3)
    assert ledger.reported == LedgerTotals(7, 0, 0, 0, 3, 0, 0)
    broker.apply_retention()
    told = proven(broker, tmp_path)
    assert told.deleted > 8
    assert sum(astuple(told)) == 15


def test_a_hole_that_the_broker_cannot_explain_stops_the_load(
    broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is compacted, and would have been believed; nothing is committed."""
    name = topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    write(broker, name, 20)
    compact(broker, name)
    partition = broker._broker.partitions.get(name, 0)
    for segment in partition.log.segments:
        monkeypatch.setattr(segment.removals, "cells", [])
    with pytest.raises(OttlaError, match=r"17 of the offsets 0 to 20 of .* are unexplained"):
        ottla.lake.load(name, str(tmp_path), bootstrap=broker.bootstrap, runner=run_here)
    assert ottla.lake.verify(str(tmp_path), bootstrap=broker.bootstrap).loads == 0


def test_truncated(tmp_path: Path) -> None:
    """What an unclean election took after it was loaded is named, with the election's term."""

    async def scenario(scene):  # type: ignore[no-untyped-def]
        unclean = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
        await scene.create("a", 1, 2, **unclean)
        for _ in range(3):
            assert (await scene.write(1, "a", b"both")).error_code == 0
        await scene.cluster.until(lambda: scene.ends("a") == {1: 3, 2: 3})
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: scene.partition(1, "a").image.isr == (1,))
        for _ in range(5):
            assert (await scene.write(1, "a", b"lost")).error_code == 0
        done = await load_here(scene)
        assert done.ledgers[0].reported == LedgerTotals(8, 0, 0, 0, 0, 0, 0)
        await scene.cluster.kill(1)
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.partition(2, "a").leader is not None)
        epoch = scene.partition(2, "a").leader_epoch
        await scene.cluster.restart(1)
        history = scene.partition(2, "a").log.ledger.history
        await scene.cluster.until(lambda: len(history.lost) == 1)
        words = f"3 to 8 were lost with the election of leader epoch {epoch}"
        with pytest.raises(OttlaError, match=words):
            await load_here(scene)
        for _ in range(6):
            assert (await scene.write(2, "a", b"other")).error_code == 0
        found = await asyncio.to_thread(
            ottla.lake.verify, str(tmp_path), bootstrap=bootstrap(scene)
        )
        assert "altered in the lake: 3, 4, 5, 6, 7" in "".join(found.problems)
        assert words in "".join(found.problems)
        assert found.reported[0] == LedgerTotals(8, 0, 0, 0, 0, 0, 0)

    async def load_here(scene):  # type: ignore[no-untyped-def]
        return await asyncio.to_thread(
            ottla.lake.load, "a", str(tmp_path), bootstrap=bootstrap(scene), runner=run_here
        )

    def bootstrap(scene) -> str:  # type: ignore[no-untyped-def]
        return ",".join(f"127.0.0.1:{one.port}" for one in scene.cluster.brokers.values())

    play(scenario, 3)


def test_a_load_is_a_reader_that_retention_waits_for(
    broker: ottla.testing.Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    """Its group stands where the table does, also where nothing was new; then records may go."""
    name = topic(
        retention_ms="-1",
        retention_bytes="0",
        internal_segment_bytes="100",
        ottla_retention_hold_groups="lake:table",
    )
    where = TopicPartition(name, 0)
    write(broker, name, 5)
    broker.apply_retention()
    for _ in range(2):
        ottla.lake.load(
            name, str(tmp_path), bootstrap=broker.bootstrap, runner=run_here, group="lake:table"
        )
        with sync.Admin(broker.bootstrap) as admin:
            assert admin.groups.offsets("lake:table")[where].offset == 5
    write(broker, name, 4, first=5)
    broker.apply_retention()
    with sync.Admin(broker.bootstrap) as admin:
        standing = admin.logs.retention(where, [5], group_id="lake:table")
    assert (standing.log_start_offset, standing.readers) == (5, {"lake:table": 5})
    assert proven(broker, tmp_path).deleted == 5
