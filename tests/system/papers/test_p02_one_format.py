"""One binary format for producer, broker and consumer."""

from collections.abc import Callable

from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.record.header import computed_crc, read_header

from .raw import batch, fetch, produce, stored, without_own_bytes


def test_bytes_sent_are_bytes_stored_are_bytes_fetched(
    node: Node, client: WireClient, make_topic: Callable[..., str]
) -> None:
    """But for base offset and leader epoch, which the checksum does not cover (P2)."""
    topic = make_topic()
    sent = [batch(b"a"), batch(b"b", b"c" * 1000), batch(b"d")]
    offsets = [produce(client, topic, one) for one in sent]
    assert offsets == [0, 1, 3]
    fetched = [fetch(client, topic, offset) for offset in offsets]
    on_disk = stored(node, topic)
    assert b"".join(fetched) == on_disk
    assert [*map(without_own_bytes, fetched)] == [*map(without_own_bytes, sent)]
    for came, went in zip(fetched, sent, strict=True):
        assert read_header(came).crc == read_header(went).crc == computed_crc(came, 0, len(came))


def test_a_fetch_from_within_a_batch_brings_the_whole_batch(
    client: WireClient, make_topic: Callable[..., str]
) -> None:
    """The broker does not take batches apart: the consumer skips what it has (P2)."""
    topic = make_topic()
    produce(client, topic, batch(*(b"%d" % number for number in range(50))))
    assert fetch(client, topic, 49) == fetch(client, topic, 0)
