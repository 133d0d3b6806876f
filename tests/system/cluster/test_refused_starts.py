"""What must not start: it ends in a message that says why, and what was there goes on."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from rig.broker import launch, ottla
from rig.nodes import Node
from rig.probe import free_port

TOPIC = "kept"
PATIENCE_S = 60


def store_at(folder: Path) -> dict[str, str]:
    return {"coordination.connect": f"sqlite://{folder}/store.sqlite"}


@contextmanager
def serving(folder: Path, store: Path, port: int | None = None) -> Iterator[Node]:
    """Broker 1 with its data in `folder`, in the cluster of the store in `store`."""
    with ottla(folder=folder, settings=store_at(store), port=port) as node:
        yield node


def refusal(folder: Path, settings: dict[str, str]) -> str:
    """What a broker says that does not start."""
    process = launch(folder, free_port(), settings)
    assert process.child.wait(PATIENCE_S) == 1
    return process.log_tail().splitlines()[-1]


def write(node: Node, count: int) -> None:
    """Records with acks=all; returns once all are acknowledged."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": node.bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(
            TOPIC, str(number), partition=0, on_delivery=lambda e, _m: failed.append(e) if e else 0
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def read(node: Node, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[str] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < deadline_s:
        values += [m.value().decode() for m in consumer.consume(count, 1) if m.error() is None]
    consumer.close()
    return values


def test_a_second_broker_with_the_same_id_is_refused(tmp_path):
    """Two folders, one id: the second ends with what to do, the first goes on with its records."""
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 10)
        told = refusal(tmp_path / "two", store_at(tmp_path))
        assert f"node.id 1 already runs in this cluster, at {node.bootstrap}, and this one" in told
        assert (
            "stop that one, or give this one another node.id and a data folder of its own" in told
        )
        write(node, 10)
        assert len(read(node, 20)) == 20


def test_a_cloned_directory_is_no_other_brokers(tmp_path):
    """A copy of broker 1's folder makes neither a second broker 1 nor a broker 2."""
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 10)
        shutil.copytree(tmp_path / "one", tmp_path / "copy")
        told = refusal(tmp_path / "copy", store_at(tmp_path))
        assert "node.id 1 already runs in this cluster" in told
        told = refusal(tmp_path / "copy", {**store_at(tmp_path), "broker.id": "2"})
        assert "meta.properties" in told
        assert "1" in told
        assert "2" in told
        assert read(node, 10) == [str(number) for number in range(10)]


def test_one_directory_is_not_used_twice(tmp_path):
    """The folder is locked: whoever comes second is told so."""
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 10)
        told = refusal(tmp_path / "one", {**store_at(tmp_path), "broker.id": "1"})
        assert "in use by another broker process" in told
        assert len(read(node, 10)) == 10


def test_a_broker_of_another_cluster_is_refused(tmp_path):
    """Data of one cluster, store of another: both are named, and neither is changed."""
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 10)
    with serving(tmp_path / "two", tmp_path / "other"):
        pass
    told = refusal(tmp_path / "one", store_at(tmp_path / "other"))
    assert "meta.properties" in told
    assert "cluster" in told
    with serving(tmp_path / "one", tmp_path) as node:
        assert len(read(node, 10)) == 10


def copy_store(source: Path, target: Path) -> None:
    """The store's files, from one folder to another."""
    target.mkdir(exist_ok=True)
    for old in target.glob("store.sqlite*"):
        old.unlink()
    for file in source.glob("store.sqlite*"):
        shutil.copy2(file, target)


def test_a_store_that_was_rolled_back_is_refused(tmp_path):
    """An older copy in the store's place lacks what the broker has seen; the newest is taken."""
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 5)
    copy_store(tmp_path, tmp_path / "older")
    seen = tmp_path / "one" / "logs" / "ottla-store.mark"
    before = seen.read_text()
    with serving(tmp_path / "one", tmp_path) as node:
        write(node, 5)
        deadline_s = time.monotonic() + PATIENCE_S
        while seen.read_text() == before and time.monotonic() < deadline_s:
            time.sleep(0.05)
    copy_store(tmp_path, tmp_path / "newest")
    copy_store(tmp_path / "older", tmp_path)
    told = refusal(tmp_path / "one", store_at(tmp_path))
    assert "an older copy stands in its place" in told
    assert "Put the newest copy back" in told
    copy_store(tmp_path / "newest", tmp_path)
    with serving(tmp_path / "one", tmp_path) as node:
        assert len(read(node, 10)) == 10
