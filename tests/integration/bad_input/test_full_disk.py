"""A disk that fills up under a running broker: writes are refused, reads go on, space heals it."""

import struct
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.consumer import read
from rig.frames import batch, produce_answer, produce_request
from rig.nodes import Node
from rig.probe import receive_frame, request_frame
from rig.small_disk import MEBIBYTE
from rig.wire_client import WireClient

KAFKA_STORAGE_ERROR = 56
TOPIC = "filling"


def offer(client: WireClient) -> int:
    """Produce 512 KiB; the error code."""
    data = batch(512 * 1024, 1000, int(time.time() * 1000)).data
    client.send(produce_request(TOPIC, 0, data, -1))
    return produce_answer(receive_frame(client.socket), TOPIC)[0]


def read_all(node: Node, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    offsets = [message.offset() for message in read(consumer, count)]
    consumer.close()
    return offsets


def end_offset(client: WireClient) -> int:
    """ListOffsets version 1, by hand: the latest offset."""
    name = TOPIC.encode()
    body = struct.pack(">iih", -1, 1, len(name)) + name + struct.pack(">iiq", 1, 0, -1)
    client.send(request_frame(2, 1, body))
    return int(struct.unpack(">q", receive_frame(client.socket)[-8:])[0])


def test_full_disk_refuses_writes_serves_reads_and_heals(tmp_path: Path, small_disk: Path) -> None:
    """KAFKA_STORAGE_ERROR and a log line that says so; with space again, without a restart."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 * MEBIBYTE))
    with ottla(folder=tmp_path / "broker", settings={"log.dirs": str(small_disk / "logs")}) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        with WireClient(node.port) as client:
            codes = [offer(client) for _ in range(60)]
            kept = end_offset(client)
            read_back = read_all(node, kept)
            refused = offer(client)
            ballast.unlink()
            deadline_s = time.monotonic() + 120
            healed = offer(client)
            while healed and time.monotonic() < deadline_s:
                time.sleep(0.2)
                healed = offer(client)
        log = node.process.log_tail(20_000)
        errors: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        producer.produce(TOPIC, b"again", on_delivery=lambda e, m: errors.append(e))
        producer.flush(120)

    accepted = codes.index(KAFKA_STORAGE_ERROR)
    assert codes[:accepted] == [0] * accepted
    assert set(codes[accepted:]) == {KAFKA_STORAGE_ERROR}
    assert accepted > 10
    assert read_back == list(range(kept))
    assert refused == KAFKA_STORAGE_ERROR
    assert "no space" in log.lower()
    assert healed == 0
    assert errors == [None]


def test_broker_killed_on_a_full_disk_starts_again_and_keeps_what_it_acknowledged(
    tmp_path: Path, small_disk: Path
) -> None:
    """Recovery needs no space of its own to give back the acknowledged records."""
    home, settings = tmp_path / "broker", {"log.dirs": str(small_disk / "logs")}
    with ottla(folder=home, settings=settings) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        with WireClient(node.port) as client:
            while offer(client) == 0:
                pass
            kept = end_offset(client)
        node.process.kill()
    with ottla(folder=home, settings=settings) as node, WireClient(node.port) as client:
        found = end_offset(client)
        read_back = read_all(node, kept)

    assert kept > 0
    assert found == kept
    assert read_back == list(range(kept))
