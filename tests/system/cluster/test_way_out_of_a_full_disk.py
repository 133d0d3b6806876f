"""A disk that a producer has filled, with the store and all logs on it, is no dead end.

All that makes room works, and so do restarts, reads and commits; what was acknowledged stays.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from rig.broker import ottla
from rig.consumer import read
from rig.ottla_cluster import ottla_cluster

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition as OnePartition
from ottla.client import NewTopic as OneTopic
from ottla.client import sync
from ottla.storage.disk.reserve import BALLAST
from tests.system.cli.ottla_command import Command

RECORD = bytes(60_000)


class Running(NamedTuple):
    """One broker or three whose folder is on the small disk."""

    bootstrap: str
    # Stops every broker in order, one after the other, and starts it again.
    restart: Callable[[], None]
    # The same by kill -9.
    crash: Callable[[], None]


@contextlib.contextmanager
def one_broker(folder: Path) -> Iterator[Running]:
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(ottla(folder=folder))]

        def start() -> None:
            nodes.append(stack.enter_context(ottla(folder=folder, port=nodes[0].port)))

        def restart() -> None:
            assert nodes[-1].process.terminate() == 0, nodes[-1].process.log_tail()
            start()

        def crash() -> None:
            nodes[-1].process.kill()
            start()

        yield Running(nodes[0].bootstrap, restart, crash)


@contextlib.contextmanager
def three_brokers(folder: Path) -> Iterator[Running]:
    with ottla_cluster(folder=folder) as cluster:

        def each_again(end: str) -> None:
            for member in cluster.members.values():
                getattr(member, end)()
                member.start()
                cluster.wait_until_formed()

        yield Running(cluster.bootstrap, lambda: each_again("stop"), lambda: each_again("kill"))


def fill(bootstrap: str, topic: str) -> list[bytes]:
    """Produce until a record is refused; the keys of those acknowledged."""
    acknowledged: list[bytes] = []
    failed: list[object] = []

    def settle(error: object, message: object) -> None:
        if error is None:
            acknowledged.append(message.key())
        else:
            failed.append(error)

    producer = Producer(
        {"bootstrap.servers": bootstrap, "message.timeout.ms": 5000, "log_level": 0}
    )
    number = 0
    while not failed:
        with contextlib.suppress(BufferError):
            producer.produce(topic, RECORD, b"%d" % number, on_delivery=settle)
            number += 1
        # No more on the way than one disk has room for.
        producer.poll(0 if number < len(acknowledged) + 20 else 0.1)
    producer.flush(120)
    return acknowledged


def keys_in(bootstrap: str, topic: str) -> list[bytes]:
    """The keys of all committed records, in order; and a commit of where they end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    partition = TopicPartition(topic, 0)
    low, high = watermarks(consumer, partition)
    consumer.assign([TopicPartition(topic, 0, low)])
    found = [message.key() for message in read(consumer, high - low)]
    commit(consumer, TopicPartition(topic, 0, high))
    consumer.close()
    return found


def commit(consumer: Consumer, position: TopicPartition) -> None:
    """Commit; the coordinator may have moved, or be a broker with a full disk."""
    deadline_s = time.monotonic() + 180
    while (code := refusal(consumer, position)) is not None:
        assert code in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE)
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def refusal(consumer: Consumer, position: TopicPartition) -> int | None:
    """Why the commit was refused; None where it was not."""
    try:
        (done,) = consumer.commit(offsets=[position], asynchronous=False)
    except KafkaException as error:
        return int(error.args[0].code())
    return None if done.error is None else int(done.error.code())


def watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    low, high = consumer.get_watermark_offsets(partition, timeout=120)
    return low, high


def deliver(bootstrap: str, topic: str) -> None:
    """Produce one record, which arrives in the end."""
    told: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, RECORD, b"again", on_delivery=lambda error, _: told.append(error))
    producer.flush(180)
    assert told == [None]


def set_retention(admin: AdminClient, topic: str, retention_ms: str) -> None:
    entry = ConfigEntry("retention.ms", retention_ms, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(120)


@pytest.mark.parametrize("brokers", [one_broker, three_brokers])
def test_everything_that_makes_room_works_on_a_full_disk(
    brokers: Callable[[Path], "contextlib.AbstractContextManager[Running]"], small_disk: Path
) -> None:
    """Restart, crash, read, commit, retention, deletion; and then records are taken again."""
    with brokers(small_disk / "home") as running:
        bootstrap = running.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic("kept", 1), NewTopic("filling", 1)]).values():
            future.result(120)
        deliver(bootstrap, "kept")

        acknowledged = fill(bootstrap, "filling")
        assert len(acknowledged) > 20
        assert set(acknowledged) <= set(keys_in(bootstrap, "filling"))
        running.restart()
        assert set(acknowledged) <= set(keys_in(bootstrap, "filling"))
        running.crash()
        assert set(acknowledged) <= set(keys_in(bootstrap, "filling"))

        told = Command(bootstrap).try_to("cluster", "health")
        assert (told.code, "disk full" in told.out) == (1, True), told.out
        set_retention(admin, "filling", "1")
        deliver(bootstrap, "kept")
        set_retention(admin, "filling", "-1")

        fill(bootstrap, "filling")
        admin.delete_topics(["filling"])["filling"].result(120)
        deliver(bootstrap, "kept")
        assert keys_in(bootstrap, "kept") == [b"again"] * 3


def test_command_line_says_why_records_are_not_delivered(small_disk: Path) -> None:
    """Long before it gives up: `ottla produce` shows the broker's reason while it tries again."""
    with one_broker(small_disk / "home") as running:
        run = Command(running.bootstrap)
        told = run.try_to("produce", "filling", stdin=(b"x" * 60_000 + b"\n") * 500)
    assert told.code == 1
    warning, _, end = told.error.partition("ottla: ")
    assert "are not delivered after" in warning
    assert "reserved for deletions and restarts" in warning
    assert "delete a topic" in warning
    assert "KAFKA_STORAGE_ERROR" in end


def take_all(folder: Path) -> Path:
    """Another program fills the disk to its last byte, the reserve as well."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_disk_that_another_program_has_filled_is_named(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By what is refused, and by a start; and removing what that program wrote heals all."""
    with one_broker(small_disk / "home") as running:
        run = Command(running.bootstrap)
        run("produce", "t", stdin="a\n")
        assert run("consume", "t", "-g", "g").lines == ["a"]
        ballast = take_all(small_disk)

        refused = (run.try_to("topic", "create", f"more-{n}").error for n in range(100))
        said = next(error for error in refused if error)
        assert "the disk of the store" in said
        assert "KAFKA_STORAGE_ERROR" in said
        assert "raise the timeout" not in said

        with sync.Consumer(
            running.bootstrap, group_id="g", default_api_timeout_ms=1_000
        ) as consumer:
            with pytest.raises(OttlaError) as failed:
                commit_until_refused(consumer)
            assert failed.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            with sync.Consumer(running.bootstrap, "t", group_id="late") as late:
                while "`ottla cluster health` says" not in caplog.text:
                    assert not late.poll(1)
            ballast.unlink()
            consumer.commit({OnePartition("t", 0): 0})
        deliver(running.bootstrap, "t")


def commit_until_refused(consumer: sync.Consumer) -> None:
    """Commit again and again: the last page of the log may have room for some."""
    for _ in range(1_000):
        consumer.commit({OnePartition("t", 0): 0})


def await_ballast(disk: Path) -> None:
    """Wait until a log directory on the disk has its ballast."""
    deadline_s = time.monotonic() + 180
    while not list(disk.rglob(BALLAST)):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_retention_frees_a_disk_that_another_program_has_filled(small_disk: Path) -> None:
    """Its ledgers need room before anything is deleted, and find it in the ballast."""
    with one_broker(small_disk / "home") as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        topics = [NewTopic(name, 1, config={"retention.ms": "12000"}) for name in ("a", "b")]
        for future in admin.create_topics(topics).values():
            future.result(120)
        await_ballast(small_disk)
        producer = Producer({"bootstrap.servers": running.bootstrap, "log_level": 0})
        for name in ("a", "b"):
            for _ in range(70):
                producer.produce(name, RECORD)
        assert producer.flush(120) == 0
        take_all(small_disk)
        # Records are taken again, though what the other program wrote is still there.
        deliver(running.bootstrap, "a")
        await_ballast(small_disk)


def test_a_start_on_a_full_disk_says_so(small_disk: Path) -> None:
    """Not that a topic is to be deleted, for which a broker would have to run."""
    take_all(small_disk)
    done = Command("").try_to("start", "--data", str(small_disk / "home"))
    assert done.code == 1
    assert "full" in done.error
    assert "start the broker again" in done.error or "free space on it" in done.error
    assert "delete a topic" not in done.error


def test_a_follower_with_a_full_disk_leaves_the_isr_at_once(
    tmp_path: Path, small_disk: Path
) -> None:
    """Records with acks=all do not wait for replica.lag.time.max.ms; it returns with its room."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "broker-2").symlink_to(small_disk, target_is_directory=True)
    with ottla_cluster({"replica.lag.time.max.ms": "3600000"}, folder=home) as cluster:
        run = Command(cluster.bootstrap)
        with sync.Admin(cluster.bootstrap) as admin:
            admin.topics.create_all([OneTopic(name="t", assignments=((1, 2, 3),))])
        deliver(cluster.bootstrap, "t")
        ballast = take_all(small_disk)
        deliver(cluster.bootstrap, "t")
        why = run("why", "isr", "t-0").out
        assert "the disk of 2 is full" in why
        ballast.unlink()
        with sync.Admin(cluster.bootstrap) as admin:
            while len(admin.topics.describe("t").partitions[0].isr) < 3:
                time.sleep(0.1)
