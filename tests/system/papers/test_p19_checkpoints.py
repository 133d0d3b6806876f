"""The checkpoint files are written, and a broker that starts again goes by them."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .raw import batch, produce

SOON = {
    "log.flush.offset.checkpoint.interval.ms": "50",
    "log.flush.start.offset.checkpoint.interval.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
}


def lines(node: Node, name: str) -> list[str]:
    return (node.folder / "logs" / name).read_text().splitlines()


def create(node: Node) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("flights", 1, 1)])["flights"].result(90)
    return admin


def end_of_term(node: Node, epoch: int) -> tuple[int, int, int]:
    """What the broker knows of a term of leadership: error, its number, where it ended."""
    part = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="flights", partitions=[part])
    with WireClient(node.port) as client:
        answer = client.call(OffsetForLeaderEpochRequest(replica_id=-2, topics=[topic]), 4)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def test_four_files_say_what_a_stopped_broker_knew(tmp_path: Path) -> None:
    """In Kafka's form: version, count, and a line for each entry (P19)."""
    with ottla(folder=tmp_path) as node:
        admin = create(node)
        with WireClient(node.port) as client:
            for number in range(7):
                produce(client, "flights", batch(b"%d" % number))
        admin.delete_records([TopicPartition("flights", 0, 3)])
        for future in admin.delete_records([TopicPartition("flights", 0, 3)]).values():
            assert future.result(90).low_watermark == 3
    assert lines(node, "recovery-point-offset-checkpoint") == ["0", "1", "flights 0 7"]
    assert lines(node, "replication-offset-checkpoint") == ["0", "1", "flights 0 7"]
    assert lines(node, "log-start-offset-checkpoint") == ["0", "1", "flights 0 3"]
    assert lines(node, "flights-0/leader-epoch-checkpoint") == ["0", "1", "0 3"]


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_a_log_start_moved_by_a_client_holds_after_a_restart(tmp_path: Path, end: str) -> None:
    """Nothing in the segments says so: log-start-offset-checkpoint is written and used (P19)."""
    with ottla(folder=tmp_path, settings=SOON) as node:
        admin = create(node)
        with WireClient(node.port) as client:
            for number in range(7):
                produce(client, "flights", batch(b"%d" % number))
        for future in admin.delete_records([TopicPartition("flights", 0, 3)]).values():
            future.result(90)
        wait_for(node, "log-start-offset-checkpoint", "flights 0 3")
        getattr(node.process, end)()
    with ottla(folder=tmp_path) as node:
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
        assert consumer.get_watermark_offsets(TopicPartition("flights", 0), timeout=60) == (3, 7)
        consumer.close()
        assert end_of_term(node, 0) == (0, 0, 7)


def test_recovery_after_a_kill_refuses_a_log_that_lost_flushed_records(tmp_path: Path) -> None:
    """recovery-point-offset-checkpoint is used: what it promises is not silently cut (P19)."""
    with ottla(folder=tmp_path, settings=SOON) as node:
        create(node)
        with WireClient(node.port) as client:
            for number in range(7):
                produce(client, "flights", batch(b"%d" % number))
        wait_for(node, "recovery-point-offset-checkpoint", "flights 0 7")
        node.process.kill()
    log = tmp_path / "logs/flights-0/00000000000000000000.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-10])
    with ottla(folder=tmp_path) as node:
        wait_until_told(node, str(log))
        wait_until_told(node, "Flushed records are damaged, so nothing was cut")
        assert log.read_bytes() == whole[:-10]
    log.write_bytes(whole)
    with ottla(folder=tmp_path) as node, WireClient(node.port) as client:
        assert produce(client, "flights", batch(b"goes on")) == 7


def wait_until_told(node: Node, words: str) -> None:
    """Until the broker's log has them: it opens its partitions when the controller says which."""
    import time

    deadline_s = time.monotonic() + 120
    while words not in node.process.log_tail():
        assert time.monotonic() < deadline_s, f"{words!r} never came: {node.process.log_tail()}"
        time.sleep(0.02)


def wait_for_word(node: Node, word: str) -> str:
    """What the broker has printed, once `word` is in it: it listens before it opens its logs."""
    import time

    deadline_s = time.monotonic() + 120
    while word not in node.process.log_tail():
        assert time.monotonic() < deadline_s, f"{word!r} was never said"
        time.sleep(0.02)
    return node.process.log_tail()


def wait_for(node: Node, name: str, line: str) -> None:
    """Until a line stands in a checkpoint; it is written every 50 ms here."""
    import time

    deadline_s = time.monotonic() + 120
    path = node.folder / "logs" / name
    while not path.exists() or line not in path.read_text().splitlines():
        assert time.monotonic() < deadline_s, f"{line!r} never came to {name}"
        time.sleep(0.02)
