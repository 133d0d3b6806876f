"""A stream that is started again reads each record once, or says why it cannot, on any Spark.

With the installed Spark; before a change of streams is called finished, with all supported ones:
`OTTLA_TEST_SPARKS=4.0,4.1,4.2,4.3 pytest tests/system/lake/test_stream_restarts.py`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from rig.broker import ottla
from rig.java import NoJava, java_home
from rig.nodes import Node
from rig.sparks import environment

INSTALLED = "installed"
SPARKS = os.environ.get("OTTLA_TEST_SPARKS", INSTALLED).split(",")
_PROGRAM = Path(__file__).with_name("stream_program.py")

pytestmark = pytest.mark.timeout(1800)  # The first run downloads a Spark.


class Streams:
    """A process with one Spark, which runs streams (see `stream_program`)."""

    def __init__(self, version: str, folder: Path) -> None:
        python = Path(sys.executable) if version == INSTALLED else environment(version)
        self.log = folder / "stderr"
        env = {**os.environ, "JAVA_HOME": str(java_home()), "PYTHONDONTWRITEBYTECODE": "1"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [python, _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=env,
            )

    def do(self, what: str, **words: Any) -> Any:
        """What came out; AssertionError with the words of an error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": what, **words}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["rows"]

    def drain(self, folder: Path, **options: str) -> None:
        """Read what is there."""
        self.do("start", folder=str(folder), options=options, now=True)
        self.do("end")

    def values(self, folder: Path) -> list[int]:
        return sorted(int(row[3]) for row in self.do("rows", folder=str(folder)))

    def has(self, folder: Path, count: int) -> bool:
        self.do("goes_on")
        return len(self.values(folder)) >= count

    def start_and_wait(self, folder: Path, options: dict[str, str], *, now: bool) -> None:
        """Until it waits for brokers."""
        before = self._times_waited()
        self.do("start", folder=str(folder), options=options, now=now)
        await_that(
            lambda: self.do("goes_on") and self._times_waited() > before, "waiting for brokers"
        )

    def _times_waited(self) -> int:
        return self.log.read_text(errors="replace").count("waiting for brokers")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(120)
        finally:
            self.process.kill()


class Broker:
    """A broker that can be away for a while."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self.node = self._running.enter_context(ottla(folder=folder))

    def stop(self) -> None:
        self._running.close()

    def start(self) -> None:
        self._running.enter_context(ottla(folder=self._folder, port=self.node.port))


@pytest.fixture(scope="module", params=SPARKS)
def streams(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Streams]:
    try:
        started = Streams(request.param, tmp_path_factory.mktemp("streams"))
    except NoJava as reason:
        pytest.skip(str(reason))
    yield started
    started.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: Any) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("broker"))
    yield running
    running.stop()


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic with two partitions and the values 0 to 149."""
    name = request.node.name.replace("[", "-").replace("]", "")
    create(broker.node, name)
    produce(broker.node, name, 0, 150)
    return name


def admin(node: Node) -> AdminClient:
    return _admin(node.bootstrap)


@cache  # Its futures end with it.
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create(node: Node, topic: str) -> None:
    admin(node).create_topics([NewTopic(topic, 2, 1)])[topic].result(90)


def produce(node: Node, topic: str, first: int, last: int, **words: Any) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number in range(first, last):
        producer.produce(topic, b"%d" % number, b"k%d" % number, **words)
    assert producer.flush(120) == 0


def await_that(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 240
    while not happened():
        assert time.monotonic() < deadline, f"{what} has not come about"
        time.sleep(0.1)


def of(broker: Broker, topic: str, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": broker.node.bootstrap, "subscribe": topic}
    return {**given, "startingOffsets": "earliest", **more}


def test_brokers_are_away_while_it_starts_again(
    streams: Streams, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """It waits; it can be stopped meanwhile; then it goes on where it was."""
    options = of(broker, topic)
    streams.drain(tmp_path, **options)
    for count, now in ((180, False), (210, True)):
        broker.stop()
        streams.start_and_wait(tmp_path, options, now=now)
        streams.do("stop")
        streams.start_and_wait(tmp_path, options, now=now)
        broker.start()
        produce(broker.node, topic, count - 30, count)
        await_that(partial(streams.has, tmp_path, count), "the rest")
        streams.do("stop")
        assert streams.values(tmp_path) == list(range(count))


def test_the_topic_was_made_anew(
    streams: Streams, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Also where it has more records than were read of the old one."""
    streams.drain(tmp_path, **of(broker, topic))
    admin(broker.node).delete_topics([topic])[topic].result(60)
    create(broker.node, topic)
    produce(broker.node, topic, 1000, 1400)

    with pytest.raises(AssertionError, match="created anew since the stream read it"):
        streams.drain(tmp_path, **of(broker, topic))
    assert streams.values(tmp_path) == list(range(150))


def test_partitions_were_added(
    streams: Streams, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """They are read from their start, though the stream began at the latest offset."""
    latest = of(broker, topic, startingOffsets="latest")
    streams.drain(tmp_path, **latest)
    admin(broker.node).create_partitions([NewPartitions(topic, 3)])[topic].result(60)
    produce(broker.node, topic, 150, 180, partition=2)
    produce(broker.node, topic, 180, 200, partition=0)
    streams.drain(tmp_path, **latest)
    assert streams.values(tmp_path) == list(range(150, 200))


def test_retention_took_records(
    streams: Streams, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """It fails, and goes on without them where that is accepted."""
    streams.drain(tmp_path, **of(broker, topic))
    produce(broker.node, topic, 150, 200, partition=0)
    end = max(row[2] for row in streams.do("rows", folder=str(tmp_path)) if row[1] == 0) + 1
    wanted = [TopicPartition(topic, 0, end + 20)]
    for deleted in admin(broker.node).delete_records(wanted).values():
        deleted.result(60)

    with pytest.raises(AssertionError, match=r"20 of the offsets .* were deleted"):
        streams.drain(tmp_path, **of(broker, topic))
    streams.drain(tmp_path, **of(broker, topic, failOnDataLoss="false"))
    assert streams.values(tmp_path) == [*range(150), *range(170, 200)]


def test_its_first_micro_batch_was_not_committed(
    streams: Streams, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """It began at the latest offset of that time, not of now."""
    latest = of(broker, topic, startingOffsets="latest")
    streams.drain(tmp_path, **latest)
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    produce(broker.node, topic, 150, 170)
    streams.drain(tmp_path, **latest)
    streams.drain(tmp_path, **latest)
    assert streams.values(tmp_path) == list(range(150, 170))
