"""`ottla lake follow` as a process: killed with all its workers, started again, told to end.

Its broker is killed, too, and comes back.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.broker import launch
from rig.java import NoJava, java_home
from rig.nodes import Node
from rig.probe import free_port, wait_until_serving

import ottla.lake

MakeTopic = Callable[..., str]
PATIENCE_S = 200
LOCAL = ("--master", "local[2,4]")


class Following:
    """A running `ottla lake follow`, and the lines of its commits."""

    def __init__(
        self, node: Node, topic: str, target: Path | str, spark: Sequence[str] = LOCAL
    ) -> None:
        words = f"lake follow {topic} --to {target} --every 500ms -o json"
        command = [sys.executable, "-m", "ottla.cli", *words.split()]
        self._child = subprocess.Popen(
            [*command, "--bootstrap", node.bootstrap, *spark],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "JAVA_HOME": str(java_home())},
        )
        self.commits: list[dict[str, Any]] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self.commits.append(json.loads(line))

    def wait_for(self, done: Callable[[list[dict[str, Any]]], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not done(self.commits):
            assert self._child.poll() is None, "it has ended"
            assert time.monotonic() < deadline_s, f"it has committed {self.commits}"
            time.sleep(0.1)

    def kill_workers(self) -> int:
        """Kill the Python workers of its tasks, as a system without memory does; how many."""
        workers = [pid for pid in descendants(self._child.pid) if "pyspark.daemon" in command(pid)]
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        return len(workers)

    def end(self, number: signal.Signals) -> int:
        """Send the signal, and wait for all its processes; the exit code."""
        family = descendants(self._child.pid)
        self._child.send_signal(number)
        code = self._child.wait(PATIENCE_S)
        if number is signal.SIGKILL:
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._reading.join(PATIENCE_S)
        return code


def descendants(pid: int) -> list[int]:
    """Its children and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@contextmanager
def produced(node: Node, topic: str, value: bytes = b"v%d") -> Iterator[list[int]]:
    """Records all the time; how many there are stands in the list at the end."""
    stop = threading.Event()
    count = [0]

    def produce() -> None:
        # A broker that dies makes it send again what may have been written.
        settings = {"bootstrap.servers": node.bootstrap, "enable.idempotence": True}
        producer = Producer({**settings, "log_level": 0, "linger.ms": 20})
        while not stop.wait(0.02):
            for _ in range(20):
                producer.produce(topic, value % count[0])
                count[0] += 1
            producer.poll(0)
        assert producer.flush(120) == 0

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


class MortalBroker:
    """A broker that is killed with -9, and started again with its files."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self._folder = folder
        self.node = Node("ottla", launch(folder, port), port, folder, 0.0)
        wait_until_serving(self.node.process, port)

    def die(self) -> None:
        self.node.process.kill()

    def come_back(self) -> None:
        self.node = replace(self.node, process=launch(self._folder, self.node.port))
        wait_until_serving(self.node.process, self.node.port)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MortalBroker]:
    made = MortalBroker(tmp_path / "broker")
    try:
        yield made
    finally:
        made.die()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found by /proc")
def test_processes_die_and_every_record_is_there_once(
    broker: MortalBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Its Python workers, then all of it in the middle; the broker; the last ends after its commit.

    While the broker is away a follow waits, and does not end.
    """
    try:
        java_home()
    except NoJava as reason:
        pytest.skip(str(reason))
    node, table = broker.node, tmp_path / "table"
    topic = make_topic(node, partitions=3)
    with produced(node, topic) as count:
        first = Following(node, topic, table)
        try:
            first.wait_for(lambda commits: len(commits) >= 2)
            assert first.kill_workers() > 0
            had = len(first.commits)
            first.wait_for(lambda commits: len(commits) >= had + 2)
        finally:
            first.end(signal.SIGKILL)
        second = Following(node, topic, table)
        try:
            second.wait_for(lambda commits: len(commits) >= 2)
            broker.die()
            at_death = count[0]
            broker.come_back()
            second.wait_for(lambda commits: sum(commits[-1]["positions"].values()) > at_death)
        except BaseException:
            second.end(signal.SIGKILL)
            raise
    try:
        second.wait_for(lambda commits: sum(commits[-1]["positions"].values()) == count[0])
    finally:
        code = second.end(signal.SIGTERM)

    assert code == 0
    proof = ottla.lake.verify(str(table), bootstrap=node.bootstrap)
    assert proof.problems == []
    assert sum(ledger.loaded for ledger in proof.ledgers.values()) == count[0]
    files = ottla.lake.files(str(table))
    values = [pq.read_table(path, columns=["value"])["value"] for path in files]
    assert {value for column in values for value in column.to_pylist()} == {
        b"v%d" % number for number in range(count[0])
    }
