"""Small records travel, lie and are compressed in groups."""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from rig.consumer import read
from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.record.compression import Compression
from ottla.record.header import BatchHeader
from ottla.record.reader import batches

from .raw import batch, fetch, produce, stored, without_own_bytes

ROW = json.dumps({"carrier": "UA", "flight": 1545, "tailnum": "N14228", "origin": "EWR"}).encode()
CODECS = {codec.setting: codec for codec in Compression if codec is not Compression.NONE}


def headers(data: bytes) -> list[BatchHeader]:
    return [header for _, header in batches(data)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_stays_compressed_bit_for_bit(
    node: Node, client: WireClient, make_topic: Callable[..., str], codec: str
) -> None:
    """From the producer through the log to the consumer, as it was compressed once (P3)."""
    topic = make_topic()
    sent = batch(*[ROW] * 200, compression=CODECS[codec])
    assert len(sent) < 200 * len(ROW) / 5
    produce(client, topic, sent)
    assert without_own_bytes(stored(node, topic)) == without_own_bytes(sent)
    assert without_own_bytes(fetch(client, topic, 0)) == without_own_bytes(sent)


@pytest.mark.parametrize("codec", CODECS)
def test_what_librdkafka_compresses_only_its_consumer_expands(
    node: Node, client: WireClient, make_topic: Callable[..., str], codec: str
) -> None:
    """A thousand records are few batches on the wire and on disk, and come in one fetch (P3)."""
    topic = make_topic()
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "compression.type": codec,
            # What is full goes before; a flush sends the rest at once.
            "linger.ms": 60_000,
            "log_level": 0,
        }
    )
    for number in range(1000):
        producer.produce(topic, ROW, key=b"%d" % number, partition=0)
    assert producer.flush(120) == 0
    on_disk = stored(node, topic)
    found = headers(on_disk)
    assert len(found) <= 10
    # What grows when it is compressed goes as it is: a record that was taken before the others.
    many = [header for header in found if header.record_count > 2]
    assert {header.compression for header in many} == {CODECS[codec]}
    assert sum(header.record_count for header in many) > 900
    assert sum(header.record_count for header in found) == 1000
    assert len(on_disk) < 1000 * len(ROW) / 2
    assert fetch(client, topic, 0, max_bytes=1 << 20) == on_disk
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "unused", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in read(consumer, 1000)]
    consumer.close()
    assert values == [ROW] * 1000
