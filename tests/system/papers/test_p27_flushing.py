"""When records are made durable: by count, by time, by the system, or by group commit."""

import socket
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from rig.probe import receive_frame
from rig.wire_client import WireClient

from ottla.storage.disk.filesystem import OsFile
from ottla.testing import Broker

from .raw import PRODUCE_VERSION, batch, produce, produce_request

Flushes = Callable[[], int]


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> Flushes:
    """How often segments have been flushed to the disk, in this process."""
    made: list[str] = []
    real = OsFile.fsync

    def counting(self: OsFile) -> None:
        if self.path.endswith(".log"):
            made.append(self.path)
        real(self)

    monkeypatch.setattr(OsFile, "fsync", counting)
    return lambda: len(made)


def broker(**settings: str) -> Broker:
    named = {f"log.flush.{name.replace('_', '.')}": value for name, value in settings.items()}
    return Broker(settings=named, storage="temporary")


def test_left_to_the_system_no_append_is_flushed(flushes: Flushes) -> None:
    """log.flush.policy=os without intervals is Kafka's default: the system decides (P27)."""
    with broker(policy="os") as running, WireClient(running.port) as client:
        running.create_topic("a")
        for _ in range(50):
            produce(client, "a", batch(b"v"))
        assert flushes() == 0
    assert flushes() == 1  # The stop in order flushes once.


def test_every_so_many_records_there_is_a_flush(flushes: Flushes) -> None:
    """log.flush.interval.messages=10: 100 records, one by one, are flushed ten times (P27)."""
    with broker(policy="os", interval_messages="10") as running:
        running.create_topic("a")
        with WireClient(running.port) as client:
            for number in range(1, 101):
                produce(client, "a", batch(b"v"))
                if number % 10 == 0:
                    # While a flush is on its way its records still count as waiting for one.
                    wait_until_flushed(running, number)
        assert flushes() == 10


def test_every_so_many_milliseconds_there_is_a_flush(flushes: Flushes) -> None:
    """log.flush.interval.ms: what nobody waits for is flushed all the same, once each (P27)."""
    with broker(policy="os", interval_ms="100", scheduler_interval_ms="20") as running:
        running.create_topic("a")
        with WireClient(running.port) as client:
            began_s = time.monotonic()
            for _ in range(50):
                produce(client, "a", batch(b"v"), acks=1)
            while flushes() == 0:
                assert time.monotonic() - began_s < 120
                time.sleep(0.005)
            assert flushes() <= 1 + (time.monotonic() - began_s) / 0.1


def test_group_commit_flushes_before_it_answers_and_once_for_many(flushes: Flushes) -> None:
    """The default: acks=all means on disk, and requests in flight share a flush (P27, P3)."""
    with broker() as running, WireClient(running.port) as client:
        running.create_topic("a")
        for number in range(1, 6):
            produce(client, "a", batch(b"v"))
            assert flushes() >= number
        before = flushes()
        with closing(client.socket.dup()) as line:
            send_many(client, line, 200)
        assert 1 <= flushes() - before <= 50


def send_many(client: WireClient, line: socket.socket, count: int) -> None:
    """Requests back to back, and then all their answers."""
    asked = [client.frame(produce_request("a", batch(b"v")), PRODUCE_VERSION)] * count
    line.sendall(b"".join(asked))
    for _ in range(count):
        receive_frame(line)


def wait_until_flushed(running: Broker, offset: int) -> None:
    partition = running._require_running().partitions.get("a", 0)
    assert partition is not None
    deadline_s = time.monotonic() + 120
    while partition.log.flush_state.recovery_point < offset:
        assert time.monotonic() < deadline_s, (
            f"flushed to {partition.log.flush_state.recovery_point}"
        )
        time.sleep(0.005)
