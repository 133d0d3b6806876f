"""Compaction by a running broker: in a child process, while clients read and write, and told of."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import confluent_kafka
import pytest

from ottla.base.errors import ErrorCode
from ottla.client import Admin, BrokerRefused, TopicPartition, sync
from ottla.client.admin.compaction import CompactAction
from ottla.testing.broker import Broker

NAME = TopicPartition("planes", 0)
# Never by itself, so that each test says when.
BY_HAND = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
PATIENCE_S = 120.0


def until(condition, what):
    """Poll until `condition` gives something true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


def write(broker, records):
    with sync.Producer(broker.bootstrap) as producer:
        for key, value in records:
            producer.send(NAME.topic, value, key=key, partition=0)


def read(broker):
    """(offset, key, value) of all records there are."""
    with sync.Consumer(broker.bootstrap) as consumer:
        consumer.assign([NAME])
        (end,) = consumer.end_offsets([NAME]).values()
        consumer.seek_to_beginning()
        found = []
        while consumer.position(NAME) < end:
            for records in consumer.poll(1).by_partition:
                found += [(r.offset, r.key, r.value) for r in records.records]
        return found


def cleaner_of(broker):
    """How the broker's cleaner is."""

    async def work():
        async with Admin(broker.bootstrap) as admin:
            (cleaner,) = await admin.compaction.cleaners(PATIENCE_S)
            return cleaner

    return asyncio.run(work())


def ask(broker, action=CompactAction.DESCRIBE, name=NAME):
    async def work():
        async with Admin(broker.bootstrap) as admin:
            (standing,) = await admin.compaction.describe(name, action)
            return standing

    return asyncio.run(work())


def compact(broker):
    """Have all that is there now compacted, and wait for it."""
    ask(broker, CompactAction.CLEAN)

    def done():
        standing = ask(broker)
        assert standing.failure is None
        return standing if standing.wanted_end < 0 and not standing.is_running else None

    return until(done, "the compaction")


def overwritten(broker, count=300, keys=7):
    broker.create_topic(NAME.topic, 1, BY_HAND)
    write(broker, [(b"key%d" % (n % keys), b"value%d" % n) for n in range(count)])
    return [(n, b"key%d" % (n % keys), b"value%d" % n) for n in range(count - keys, count)]


def delete_topic(broker):
    async def work():
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.delete([NAME.topic])

    asyncio.run(work())


@pytest.mark.parametrize("storage", ["memory", "temporary"])
def test_the_latest_of_each_key_stays_at_its_offset(storage):
    """By a child on a real disk, in this process in memory; what is appended later is untouched."""
    with Broker(storage=storage) as broker:
        latest = overwritten(broker)
        estimate = ask(broker, CompactAction.ESTIMATE)
        assert estimate.estimate is None, "all is in the active segment"
        standing = compact(broker)
        assert read(broker) == latest
        write(broker, [(b"key0", b"new")])
        assert read(broker) == [*latest, (300, b"key0", b"new")]
        assert (standing.first_dirty, standing.pass_count) == (300, 1)
        cleaner = cleaner_of(broker)
        assert (cleaner.logs, cleaner.due, cleaner.failed) == (1, 0, ())
        assert (cleaner.passes, cleaner.failures, cleaner.last) == (1, 0, NAME)
        assert (standing.last.records_read, standing.last.records_kept) == (300, 7)


def test_a_dry_run_tells_and_changes_nothing():
    """How many records would go of those in closed segments; all of them are still there."""
    with Broker(storage="temporary") as broker:
        broker.create_topic(NAME.topic, 1, {**BY_HAND, "internal.segment.bytes": "2000"})
        for number in range(40):
            write(broker, [(b"same", b"x" * 80 + b"%d" % number)])
        before = read(broker)
        told = ask(broker, CompactAction.ESTIMATE).estimate
        assert (told.keys, told.records_kept) == (1, 1)
        assert 20 < told.records_read < 40
        assert told.bytes_kept < told.bytes_read / 2
        assert read(broker) == before
        assert ask(broker).pass_count == 0


def test_clean_logs_survive_a_restart(tmp_path):
    """Files, checkpoint and offsets are as they were; the cleaner goes on where it stopped."""
    with Broker(storage=tmp_path) as broker:
        latest = overwritten(broker)
        compact(broker)
    folder = tmp_path / "planes-0"
    assert not [name for name in os.listdir(folder) if name.endswith((".cleaned", ".swap"))]
    checkpoint = (tmp_path / "cleaner-offset-checkpoint").read_text()
    assert checkpoint == "0\n1\nplanes 0 300\n"
    with Broker(storage=tmp_path) as broker:
        assert read(broker) == latest
        assert ask(broker).first_dirty == 300
        write(broker, [(b"key0", b"new")])
        compact(broker)
        kept = [entry for entry in latest if entry[1] != b"key0"]
        assert read(broker) == [*kept, (300, b"key0", b"new")]


def test_by_itself_when_enough_is_dirty():
    """The broker's own choice: a closed segment, and more dirty than min.cleanable.dirty.ratio."""
    settings = {"log.cleaner.backoff.ms": "20"}
    with Broker(storage="temporary", settings=settings) as broker:
        configs = {"cleanup.policy": "compact", "internal.segment.bytes": "2000"}
        broker.create_topic(NAME.topic, 1, configs)
        for number in range(60):
            write(broker, [(b"same", b"x" * 80 + b"%d" % number)])
        until(lambda: ask(broker).pass_count > 0, "a pass")
        until(lambda: len(read(broker)) < 40, "records to go")
        assert read(broker)[-1] == (59, b"same", b"x" * 80 + b"59")


def test_records_that_are_too_old_are_compacted_from_the_active_segment():
    """max.compaction.lag.ms holds though nobody writes any more."""
    settings = {"log.cleaner.backoff.ms": "20"}
    with Broker(storage="temporary", settings=settings) as broker:
        broker.create_topic(NAME.topic, 1, {**BY_HAND, "max.compaction.lag.ms": "1"})
        write(broker, [(b"a", b"1"), (b"a", b"2")])
        until(lambda: read(broker) == [(1, b"a", b"2")], "the compaction")


def test_a_topic_that_is_not_compacted_says_so():
    """Cause and remedy."""
    with Broker() as broker:
        broker.create_topic(NAME.topic, 1, {})
        with pytest.raises(BrokerRefused, match=r"set cleanup\.policy=compact") as caught:
            ask(broker)
        assert caught.value.code is ErrorCode.POLICY_VIOLATION


def test_a_child_that_is_killed_costs_nothing_but_the_pass():
    """The broker says so, serves on, and a later pass succeeds."""
    slow = {
        "log.cleaner.io.max.bytes.per.second": "1000",
        "log.cleaner.dedupe.buffer.size": "1200000",
    }
    with Broker(storage="temporary", settings=slow) as broker:
        overwritten(broker)
        before = read(broker)
        ask(broker, CompactAction.CLEAN)
        child = until(children, "the child")[0]
        os.kill(child, signal.SIGKILL)
        until(lambda: ask(broker).failure, "the failure")
        assert "process ended by signal 9" in ask(broker).failure
        (failed,) = cleaner_of(broker).failed
        assert (failed.name, failed.attempts) == (NAME, 1)
        assert "signal 9" in failed.why
        assert failed.since_ms < failed.retry_at_ms
        assert read(broker) == before
        folder = broker._folder / "planes-0"
        until(lambda: not list(folder.glob("*.cleaned")), "the half made files to go")


def test_the_next_topic_of_a_name_does_not_suffer_for_the_last_ones_pass():
    """A topic is deleted while it is compacted, and made again: the child misses its files."""
    slow = {
        "log.cleaner.io.max.bytes.per.second": "2000",
        "log.cleaner.dedupe.buffer.size": "1200000",
    }
    with Broker(storage="temporary", settings=slow) as broker:
        broker.create_topic(NAME.topic, 1, {**BY_HAND, "internal.segment.bytes": "1000"})
        for number in range(40):
            write(broker, [(b"same", b"x" * 80 + b"%d" % number)])
        ask(broker, CompactAction.CLEAN)
        (child,) = until(children, "the child")
        delete_topic(broker)
        broker.create_topic(NAME.topic, 1, BY_HAND)
        write(broker, [(b"key", b"value")])
        until(lambda: not Path(f"/proc/{child}").exists(), "the end of the child")
        until(lambda: cleaner_of(broker).failures == 1, "the failure to be known")
        write(broker, [(b"key", b"another")])
        assert read(broker) == [(0, b"key", b"value"), (1, b"key", b"another")]


def test_no_child_outlives_its_broker():
    """Stopping does not wait for a slow pass, and leaves nobody behind."""
    slow = {"log.cleaner.io.max.bytes.per.second": "1000"}
    with Broker(storage="temporary", settings=slow) as broker:
        overwritten(broker)
        ask(broker, CompactAction.CLEAN)
        (child,) = until(children, "the child")
    assert not Path(f"/proc/{child}").exists()


def children():
    """Process ids of this process's cleaning children."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if "compaction.child" in command(child)]


def command(child):
    try:
        return Path(f"/proc/{child}/cmdline").read_text()
    except OSError:
        return ""


def test_committed_offsets_survive_the_compaction_of_their_topic(tmp_path):
    """__consumer_offsets is compacted like any other; a restart finds the last commits (S28)."""
    settings = {"offsets.topic.num.partitions": "1"}
    offsets = TopicPartition("__consumer_offsets", 0)
    with Broker(storage=tmp_path, settings=settings) as broker:
        broker.create_topic(NAME.topic, 1, {})
        write(broker, [(None, b"%d" % number) for number in range(30)])
        consumer = reader(broker)
        for offset in range(1, 31):
            place = confluent_kafka.TopicPartition(NAME.topic, 0, offset)
            consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()
        ask(broker, CompactAction.CLEAN, offsets)
        standing = until(
            lambda: (one := ask(broker, name=offsets)).wanted_end < 0 and one, "the compaction"
        )
        assert standing.last.records_read >= 30
        assert standing.last.records_kept < 5
    with Broker(storage=tmp_path, settings=settings) as broker:
        consumer = reader(broker)
        wanted = [confluent_kafka.TopicPartition(NAME.topic, 0)]
        assert consumer.committed(wanted, 90)[0].offset == 30
        consumer.close()


def reader(broker):
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
