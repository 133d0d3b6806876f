"""Sequences of idempotent producers: a repeated batch is stored once, even across a crash."""

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.consumer import read
from rig.frames import encode_batch, produce_answer, produce_request, record
from rig.nodes import Node
from rig.probe import connect, free_port, receive_frame, request_frame

NOT_LEADER_OR_FOLLOWER = 6
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
INIT_PRODUCER_ID = 22
TOPIC = "sequences"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a broker that is stopped and started again."""
    return tmp_path / "broker"


def create(node: Node, name: str = TOPIC) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(120)


def new_producer_id(connection: socket.socket) -> tuple[int, int]:
    """InitProducerId version 0 without a transaction."""
    body = struct.pack(">hi", -1, 60_000)
    connection.sendall(request_frame(INIT_PRODUCER_ID, 0, body))
    _, _, error, producer_id, epoch = struct.unpack(">iihqh", receive_frame(connection))
    assert error == 0
    return producer_id, epoch


def send(
    connection: socket.socket, producer_id: int, epoch: int, sequence: int, count: int = 3
) -> tuple[int, int]:
    """Produce `count` records from `sequence` on; error code and base offset."""
    batch = encode_batch(
        [record(i, b"v") for i in range(count)],
        int(time.time() * 1000),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    connection.sendall(produce_request(TOPIC, 0, batch.data, -1))
    return produce_answer(receive_frame(connection), TOPIC)


@pytest.fixture
def connection(home: Path) -> Iterator[socket.socket]:
    with ottla(folder=home) as node:
        create(node)
        with connect(node.port) as made:
            yield made


def test_repeated_batch_is_answered_with_its_first_offsets(connection: socket.socket) -> None:
    """A retry of any of the last five batches is a success that stores nothing (KIP-98)."""
    producer_id, epoch = new_producer_id(connection)

    sent = [send(connection, producer_id, epoch, 3 * i) for i in range(5)]
    again = [send(connection, producer_id, epoch, 3 * i) for i in range(5)]
    after = send(connection, producer_id, epoch, 15)

    assert sent == [(0, 0), (0, 3), (0, 6), (0, 9), (0, 12)]
    assert again == sent
    assert after == (0, 15)


def test_gap_in_the_sequence_is_refused(connection: socket.socket) -> None:
    """A batch that would leave a hole is OUT_OF_ORDER_SEQUENCE_NUMBER, and stores nothing."""
    producer_id, epoch = new_producer_id(connection)

    assert send(connection, producer_id, epoch, 0) == (0, 0)
    assert send(connection, producer_id, epoch, 6)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(connection, producer_id, epoch, 3) == (0, 3)


def test_older_epoch_of_a_producer_is_fenced(connection: socket.socket) -> None:
    """Once a newer epoch has written, the older one is refused."""
    producer_id, epoch = new_producer_id(connection)

    assert send(connection, producer_id, epoch + 1, 0) == (0, 0)
    assert send(connection, producer_id, epoch, 0)[0] == INVALID_PRODUCER_EPOCH


def test_producer_ids_are_never_given_twice_across_a_crash(home: Path) -> None:
    given: list[int] = []
    for _ in range(3):
        with ottla(folder=home) as node:
            with connect(node.port) as connection:
                given += [new_producer_id(connection)[0] for _ in range(10)]
            node.process.kill()

    assert len(set(given)) == 30


@pytest.mark.parametrize("crash", [True, False], ids=["kill -9", "orderly stop"])
def test_sequences_survive_a_restart(home: Path, crash: bool) -> None:
    """A retry after the broker came back is still recognised, and a gap refused in the end.

    At first it is asked for what may be on its way yet; who has nothing before it comes again.
    """
    with ottla(folder=home) as node:
        create(node)
        with connect(node.port) as connection:
            producer_id, epoch = new_producer_id(connection)
            first = [send(connection, producer_id, epoch, 3 * i) for i in range(2)]
        if crash:
            node.process.kill()
    with ottla(folder=home) as node, connect(node.port) as connection:
        again = send(connection, producer_id, epoch, 3)
        early = send(connection, producer_id, epoch, 9)
        gap = send(connection, producer_id, epoch, 9)
        following = send(connection, producer_id, epoch, 6)

    assert first == [(0, 0), (0, 3)]
    assert again == (0, 3)
    assert early[0] == NOT_LEADER_OR_FOLLOWER
    assert gap[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert following == (0, 6)


def test_librdkafka_loses_and_doubles_nothing_while_its_broker_is_killed(home: Path) -> None:
    """An idempotent producer that lives through kill -9 leaves every record once, in order."""
    port = free_port()
    delivered: list[bytes] = []
    failed: list[str] = []

    def told(error: object, message: object) -> None:
        if error is None:
            delivered.append(message.value())  # type: ignore[attr-defined]  # A Message.
        else:
            failed.append(str(error))

    def feed(producer: Producer, numbers: range) -> None:
        for number in numbers:
            producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=told)
            producer.poll(0.0005)

    with ottla(folder=home, port=port) as node:
        create(node)
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        feed(producer, range(1000))
        node.process.kill()
        feed(producer, range(1000, 1500))
    with ottla(folder=home, port=port) as node:
        feed(producer, range(1500, 2500))
        assert producer.flush(120) == 0
        consumer = Consumer(
            {"bootstrap.servers": node.bootstrap, "group.id": "check", "log_level": 0}
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        values = [int(message.value()) for message in read(consumer, 2500)]
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)
        consumer.close()

    assert failed == []
    assert len(delivered) == 2500
    assert values == list(range(2500))
    assert end == 2500
