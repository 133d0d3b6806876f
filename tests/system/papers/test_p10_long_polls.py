"""Consumers pull: they say how much is worth an answer, and how long they will wait for it."""

import time
from collections.abc import Callable

from rig.nodes import Node
from rig.wire_client import WireClient

from .raw import FETCH_VERSION, batch, fetch, fetch_request, produce

# Far longer than these tests take: it is the records that end a wait.
PATIENCE_MS = 3_600_000


def test_a_long_poll_ends_when_there_is_enough_and_not_before(
    node: Node, client: WireClient, make_topic: Callable[..., str]
) -> None:
    """At least so many bytes: two batches are too few, the third wakes the reader at once (P10)."""
    topic = make_topic()
    one = batch(b"x" * 1000)
    with WireClient(node.port) as writer:
        asked = fetch_request(
            topic, 0, max_wait_ms=PATIENCE_MS, min_bytes=3 * len(one), max_bytes=1 << 20
        )
        client.send(client.frame(asked, FETCH_VERSION))
        client.socket.settimeout(0.3)
        for _ in range(2):
            produce(writer, topic, one)
        try:
            early = client.socket.recv(1)
        except TimeoutError:
            early = b""
        assert early == b""
        client.socket.settimeout(60)
        produce(writer, topic, one)
        (answer,) = client.response(1, FETCH_VERSION).responses[0].partitions
    assert len(answer.records) == 3 * len(one)


def test_a_long_poll_ends_in_time_with_what_there_is(
    client: WireClient, make_topic: Callable[..., str]
) -> None:
    """At most so many milliseconds, and then whatever has come, be it nothing (P10)."""
    topic = make_topic()
    began_s = time.monotonic()
    assert fetch(client, topic, 0, max_wait_ms=300, min_bytes=1 << 20, max_bytes=1 << 20) == b""
    assert time.monotonic() - began_s >= 0.29
    produce(client, topic, batch(b"little"))
    began_s = time.monotonic()
    got = fetch(client, topic, 0, max_wait_ms=300, min_bytes=1 << 20, max_bytes=1 << 20)
    assert len(got) == len(batch(b"little"))
    assert time.monotonic() - began_s >= 0.29


def test_a_reader_gets_no_more_than_it_asked_for(
    client: WireClient, make_topic: Callable[..., str]
) -> None:
    """The consumer sets the pace: a full log gives whole batches up to its bound (P10)."""
    topic = make_topic()
    one = batch(b"x" * 1000)
    for _ in range(10):
        produce(client, topic, one)
    assert len(fetch(client, topic, 0, max_bytes=4 * len(one) + 10)) == 4 * len(one)
    assert len(fetch(client, topic, 0, max_bytes=1)) == len(one)
