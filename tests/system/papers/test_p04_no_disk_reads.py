"""When consumers keep up, the disk is only written to."""

import os
from collections.abc import Callable

import pytest
from rig.nodes import Node
from rig.wire_client import WireClient

from .raw import batch, counter, fetch, produce, stored

MEGABYTES = 128


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count reads")
def test_128_mb_produced_and_consumed_are_not_read_from_a_disk(
    node: Node, make_topic: Callable[..., str]
) -> None:
    """By the system's own count for the broker's process, over four segments (P4).

    The file system reads its own maps, and the process may lose pages of its code: what is
    fetched is 128 MB, and not a sixteenth of that may have come from a disk.
    """
    topic = make_topic(segment_bytes=str(32 << 20))
    records = batch(os.urandom(1_000_000))
    with WireClient(node.port) as writer, WireClient(node.port) as reader:
        produce(writer, topic, records)
        fetch(reader, topic, 0)
        before = counter(node.process.pid, "read_bytes")
        for _ in range(1, MEGABYTES):
            offset = produce(writer, topic, records, acks=1)
            assert len(fetch(reader, topic, offset)) == len(records)
        after = counter(node.process.pid, "read_bytes")
    assert len(stored(node, topic)) == MEGABYTES * len(records)
    assert after - before < MEGABYTES * len(records) // 16
