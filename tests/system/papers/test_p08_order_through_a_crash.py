"""Retries keep order, whatever happens to the broker meanwhile."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.consumer import read
from rig.probe import free_port

COUNT = 30_000


def test_five_in_flight_survive_a_killed_broker_in_order_and_once(tmp_path: Path) -> None:
    """Killed by -9 amid unmodified librdkafka's batches: none lost, none twice, in order (P8, P9).

    Its retries wait `retry.backoff.ms`; acks=all is what makes an answer a promise.
    """
    port = free_port()
    delivered: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "enable.idempotence": True,
            "acks": "all",
            "max.in.flight.requests.per.connection": 5,
            "retry.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "linger.ms": 1,
            "batch.num.messages": 100,
            "log_level": 0,
        }
    )

    def told(error: object, message: object) -> None:
        assert error is None
        delivered.append(message.offset())

    with ottla(folder=tmp_path, port=port) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("order", 1, 1)])["order"].result(30)
        for number in range(COUNT):
            producer.produce("order", b"%d" % number, partition=0, on_delivery=told)
            producer.poll(0)
            if number == COUNT // 2:
                while len(delivered) < COUNT // 10:
                    producer.poll(0.01)
                # The other half goes into batches that find nobody, or nobody who answers.
                node.process.kill()
    with ottla(folder=tmp_path, port=port) as node:
        assert producer.flush(120) == 0
        assert delivered == [*range(COUNT)]
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition("order", 0, 0)])
        values = [int(message.value()) for message in read(consumer, COUNT)]
        consumer.close()
    assert values == [*range(COUNT)]
