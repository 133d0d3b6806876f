"""At the end of a test session, the plugin lists redeliveries, expired commits and rebalances."""

import os
import re
import subprocess
import sys
from pathlib import Path

# Tests as a user writes them. The consumer in the process is killed before its commit.
TESTS = '''
import os, subprocess, sys
import ottla.testing, pytest
from ottla.testing.tally import total
from confluent_kafka import Consumer, Producer
from ottla.client import ConfigResourceType
from ottla.client.sync import Admin

CONSUMER = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "audit",
    "auto.offset.reset": "earliest", "enable.auto.commit": False,
    "session.timeout.ms": 1000, "heartbeat.interval.ms": 100, "log_level": 0})
consumer.subscribe(["orders"])
for number in range(14):
    message = None
    while message is None or message.error() is not None:
        message = consumer.poll(0.1)
    if number == 3:
        consumer.commit(message, asynchronous=False)
print("read", flush=True)
while True:
    consumer.poll(0.1)
"""

@pytest.fixture
def broker():
    with ottla.testing.Broker(settings={"group.min.session.timeout.ms": "1000"}) as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(14):
            producer.produce("orders", str(number))
        assert producer.flush(120) == 0
        yield broker

def consume(broker, count):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "audit",
        "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe(["orders"])
    read = []
    while len(read) < count:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            read.append(message)
    consumer.commit(read[-1], asynchronous=False)
    consumer.close()
    return [int(message.value()) for message in read]

def test_killed(broker):
    line = [sys.executable, "-c", CONSUMER, broker.bootstrap]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as victim:
        victim.stdout.readline()
        victim.kill()
    assert consume(broker, 10) == list(range(4, 14))

def test_quiet(broker):
    assert consume(broker, 14) == list(range(14))

def test_read_beside(broker):
    """A tool that reads everything again is no redelivery to the group."""
    assert consume(broker, 14) == list(range(14))
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "tool",
        "auto.offset.reset": "earliest", "log_level": 0})
    from confluent_kafka import TopicPartition
    reader.assign([TopicPartition("orders", 0, 0)])
    read = 0
    while read < 14:
        message = reader.poll(0.1)
        read += message is not None and message.error() is None
    reader.close()

def test_two_members(broker):
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "two",
        "partition.assignment.strategy": "range", "enable.auto.commit": False, "log_level": 0}
    broker.create_topic("empty", partitions=2)
    one, two = Consumer(settings), Consumer(settings)
    one.subscribe(["empty"])
    while not one.assignment():
        one.poll(0.05)
    two.subscribe(["empty"])
    while not two.assignment():
        one.poll(0.05)
        two.poll(0.05)
    two.close()
    while len(one.assignment()) < 2:
        one.poll(0.05)
    one.close()
    assert not os.environ["FAILS"]

SHARE = """
import sys
from confluent_kafka import ShareConsumer
consumer = ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": "workers", "log_level": 0})
consumer.subscribe(["orders"])
found = []
while not found:
    found = [message for message in consumer.poll(0.1) if message.error() is None]
print(len(found), flush=True)
sys.stdin.read()
"""

def test_share(broker):
    from confluent_kafka import ShareConsumer
    with Admin(broker.bootstrap) as admin:
        earliest = {"share.auto.offset.reset": "earliest"}
        admin.configs.alter(ConfigResourceType.GROUP, "workers", earliest)
    before = total()[1]
    line = [sys.executable, "-c", SHARE, broker.bootstrap]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        count = int(victim.stdout.readline())
        assert total()[1] == before
        victim.kill()
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "workers",
        "log_level": 0})
    consumer.subscribe(["orders"])
    read = 0
    while read < 14:
        read += len([one for one in consumer.poll(0.1) if one.error() is None])
    consumer.close()
    assert count <= total()[1] - before <= 14

def test_expired(broker):
    from ottla.wire.messages.group_offsets import (OffsetCommitRequest,
        OffsetCommitRequestPartition, OffsetCommitRequestTopic)
    from tests.integration.groups.wire_client import WireClient
    consume(broker, 14)
    late = OffsetCommitRequest(group_id="audit", generation_id_or_member_epoch=1,
        member_id="gone", topics=[OffsetCommitRequestTopic(name="orders",
            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=3)])])
    with WireClient(broker.port) as wire:
        wire.find_coordinator("audit")
        assert wire.ask(late, 8).topics[0].partitions[0].error_code
'''


def run(folder: Path, *words: str, fails: bool = False) -> list[str]:
    """Run these tests; the lines of the plugin's section."""
    (folder / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_some.py", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAILS": "1" * fails},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    starts = [at for at, line in enumerate(lines) if "what Ottla's groups went through" in line]
    found = [] if not starts else [x for x in lines[starts[0] + 1 :] if x.startswith("test_some")]
    assert done.returncode == fails, done.stdout + done.stderr
    return found


def test_redeliveries_after_a_kill_and_expired_commits_are_counted(tmp_path: Path) -> None:
    """Ten of fourteen records come again, as four were committed; quiet tests are not listed."""
    killed, *others = run(tmp_path, "-k", "not share")
    # The second member's join is a rebalance, unless the first one's session ends before.
    assert killed.replace("1 rebalance, ", "") == "test_some.py::test_killed: 10 redeliveries"
    assert others == ["test_some.py::test_expired: 1 expired commit"]


def test_redeliveries_of_share_groups_are_counted(tmp_path: Path) -> None:
    """The test itself compares with what the killed member had got."""
    (line,) = run(tmp_path, "-k", "share")
    assert re.fullmatch(r"test_some\.py::test_share: \d+ redeliver(y|ies)", line)


def test_rebalances_are_reported_on_request_and_of_failed_tests(tmp_path: Path) -> None:
    """A rebalance alone is no news of a test that passed."""
    words = ("-k", "two_members")
    expected = ["test_some.py::test_two_members: 2 rebalances"]
    assert run(tmp_path, *words) == []
    assert run(tmp_path, *words, "--ottla-report") == expected
    assert run(tmp_path, *words, fails=True) == expected


def test_quiet_session_reports_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "-k", "quiet or beside") == []
