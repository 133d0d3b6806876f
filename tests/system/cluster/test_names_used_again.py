"""kill -9 after a topic was deleted and made again: nothing of the first comes with its name."""

import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla

TOPIC = "again"
PATIENCE_S = 60
FIRST = 100


def make(admin: AdminClient) -> None:
    """Make the topic, as soon as the one before it is gone."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(PATIENCE_S)
        except KafkaException:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
        else:
            return


def write(bootstrap: str, count: int) -> None:
    """Records with acks=all; returns once all are acknowledged."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(
            TOPIC, b"%d" % number, on_delivery=lambda e, _m: failed.append(e) if e else None
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def watermarks(bootstrap: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(
            TopicPartition(TOPIC, 0), PATIENCE_S
        )
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("deletes", [False, True], ids=["all kept", "records deleted"])
@pytest.mark.parametrize("second", [10, 150], ids=["fewer", "more"])
def test_a_topic_made_again_keeps_its_records_through_a_kill(tmp_path, deletes, second):
    """All that was acknowledged can be read, from offset 0 on, with fewer and with more records."""
    with ottla(folder=tmp_path) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        make(admin)
        write(node.bootstrap, FIRST)
        if deletes:
            place = TopicPartition(TOPIC, 0, FIRST)
            admin.delete_records([place])[place].result(PATIENCE_S)
    with ottla(folder=tmp_path) as node:
        checkpoint = (tmp_path / "logs" / "recovery-point-offset-checkpoint").read_text()
        assert f"{TOPIC} 0 {FIRST}\n" in checkpoint
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
        make(admin)
        write(node.bootstrap, second)
        node.process.kill()
    with ottla(folder=tmp_path) as node:
        assert watermarks(node.bootstrap) == (0, second)
