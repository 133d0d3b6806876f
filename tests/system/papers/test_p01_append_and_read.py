"""Appending and reading cost the same whatever the log holds, and do not wait for each other."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig.accounts import rss_bytes
from rig.broker import ottla
from rig.nodes import Node
from rig.topics import topic_maker
from rig.wire_client import WireClient

from ottla.base.ids import TopicPartition
from ottla.record.header import read_header
from ottla.storage.disk.filesystem import OsFile, OsFileSystem
from ottla.storage.log.open_log import open_log
from ottla.storage.segment.config import LogConfig

from .raw import FETCH_VERSION, batch, fetch, fetch_request, produce, stored

CALLS = ("append", "append_many", "pread", "read_into", "fsync", "size", "truncate")


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every call that a log makes of its files from now on, by name."""
    made: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        real = getattr(OsFile, name)

        def call(self: OsFile, *arguments: Any) -> Any:
            made.append(name)
            return real(self, *arguments)

        return call

    for name in CALLS:
        monkeypatch.setattr(OsFile, name, counting(name))
    return made


def test_one_append_is_one_write_and_one_read_a_few_steps_in_logs_of_any_length(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Counted in calls of the file system: O(1), with 10 batches and with 5,000 (P1)."""
    costs = {}
    for length in (10, 5_000):
        folder = f"{tmp_path}/flights-{length}"
        partition = TopicPartition("flights", length)
        # Eight segments or more, so that finding the right one is part of it.
        config = LogConfig(segment_bytes=100 * length // 10)
        log = open_log(OsFileSystem(), folder, partition, config, now_ms=0)
        records = bytearray(batch(b"v"))
        assert len(records) < 100
        for _ in range(length):
            log.append_as_leader(memoryview(records), read_header(records), 0, 0)
        assert len(log.segments) >= 8
        with monkeypatch.context() as patched:
            made = counted(patched)
            # A roll would add its own steps: begin a fresh segment first.
            log.roll(0)
            made.clear()
            log.append_as_leader(memoryview(records), read_header(records), 0, 0)
            appending = list(made)
            reading = []
            for offset in (0, length // 2, length - 1, length):
                made.clear()
                log.read(offset, 1, max_offset=length + 1)
                reading.append(len(made))
        costs[length] = appending, max(reading)
        log.close(clean=True)
    assert costs[10][0] == costs[5_000][0] == ["append"]
    assert costs[5_000][1] <= 3


def test_a_reader_that_does_not_take_its_answer_holds_nobody_up(
    node: Node, make_topic: Callable[..., str]
) -> None:
    """While 48 MB wait for a stuck reader, appends are answered and others read (P1)."""
    topic = make_topic()
    with WireClient(node.port) as writer, WireClient(node.port) as reader:
        for _ in range(48):
            produce(writer, topic, batch(bytes(1_000_000)), acks=1)
        last = produce(writer, topic, batch(b"end"))
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.connect(("127.0.0.1", node.port))
            asked = fetch_request(topic, 0, max_bytes=48_000_000)
            stuck.sendall(reader.frame(asked, FETCH_VERSION))
            assert len(stuck.recv(4096)) > 0
            appended = [produce(writer, topic, batch(b"x")) for _ in range(100)]
            assert appended == [*range(last + 1, last + 101)]
            for offset in (0, 47, *appended):
                assert read_header(fetch(reader, topic, offset)).base_offset == offset


def test_what_was_read_is_kept(client: WireClient, make_topic: Callable[..., str]) -> None:
    """Reading takes nothing out of the log: two readers, twice each, see the same bytes (P1)."""
    topic = make_topic()
    for number in range(20):
        produce(client, topic, batch(b"%d" % number))
    seen = {fetch(client, topic, 0, max_bytes=1 << 20) for _ in range(4)}
    assert len(seen) == 1
    assert len(seen.pop()) > 20 * 61


def test_the_broker_keeps_no_copy_in_memory() -> None:
    """What is written and read lies in the system's page cache, and not in the broker (P1).

    96 MB pass through it, written and read twice; the process grows by less than a sixth of that.
    """
    with ottla() as node, WireClient(node.port) as client:
        topic_maker(node.bootstrap, "cached")()
        one = batch(bytes(1_000_000))
        for _ in range(8):
            produce(client, "cached-1", one, acks=1)
        fetch(client, "cached-1", 0, max_bytes=8_000_000)
        before = rss_bytes(node.process.pid)
        for _ in range(96):
            produce(client, "cached-1", one, acks=1)
        for _ in range(2):
            for first in range(0, 96, 8):
                fetch(client, "cached-1", first, max_bytes=8_000_000)
        assert rss_bytes(node.process.pid) - before < 16_000_000


def test_what_is_written_is_never_written_again(
    node: Node, client: WireClient, make_topic: Callable[..., str]
) -> None:
    """Segments are only appended to: what was there stays, byte for byte (P1)."""
    topic = make_topic(segment_bytes="1048576")
    seen = b""
    for number in range(6):
        produce(client, topic, batch(b"%d" % number + bytes(400_000)))
        now = stored(node, topic)
        assert now.startswith(seen)
        assert len(now) > len(seen)
        seen = now
    names = sorted(path.name for path in (node.folder / f"logs/{topic}-0").glob("*.log"))
    assert names == [f"{offset:020d}.log" for offset in (0, 2, 4)]
