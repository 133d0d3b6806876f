"""What the broker makes of its disks: full, failing, flushed by count and time, kept up with."""

import asyncio
import errno
import logging
import os
import random

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata.image import NO_LEADER
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    fetch,
    fetched,
    produce,
    produced,
    running,
    until,
)


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_full_disk_refuses_writes_serves_reads_and_recovers(caplog):
    """KAFKA_STORAGE_ERROR while there is no room; one line says cause and remedy."""

    async def scenario():
        disk = MemoryFileSystem()
        async with connected(filesystem=disk) as (_, client):
            assert produced(await client.call(produce("a", batch(b"1")), 9)).error_code == 0
            disk.capacity_bytes = 0
            for _ in range(5):
                refused = produced(await client.call(produce("a", batch(b"2")), 9))
                assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            answer = fetched(await client.call(fetch("a", 0), 11))
            assert (answer.error_code, answer.high_watermark) == (0, 1)
            assert len(answer.records) > 0
            disk.capacity_bytes = None
            assert produced(await client.call(produce("a", batch(b"3")), 9)).base_offset == 1

    with caplog.at_level(logging.ERROR):
        run(scenario())
    told = [record.getMessage() for record in caplog.records if "no space" in record.getMessage()]
    assert len(told) == 1
    assert "Free space" in told[0]


def test_a_disk_that_fails_to_flush_takes_its_partitions_offline():
    """What fsync could not promise is not acknowledged, now or later."""

    async def scenario():
        disk = MemoryFileSystem()
        async with connected(filesystem=disk) as (_, client):
            disk.fault = lambda operation, path: (
                OSError(errno.EIO, os.strerror(errno.EIO), path) if operation == "fsync" else None
            )
            for acks in (-1, 1):
                answer = produced(await client.call(produce("a", batch(b"1"), acks=acks), 9))
                assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            answer = fetched(await client.call(fetch("a", 0), 11))
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            disk.fault = None

    run(scenario())


def test_a_disk_that_fails_when_a_log_is_opened_takes_those_in_use_offline():
    """As when it fails later: no partition of the directory stays in use, and none has a leader."""

    async def scenario():
        disk = MemoryFileSystem()
        async with connected(filesystem=disk) as (broker, client):
            assert produced(await client.call(produce("a", batch(b"1")), 9)).error_code == 0
            waiting = asyncio.ensure_future(client.call(fetch("a", 1, max_wait_ms=60_000), 11))
            disk.fault = lambda operation, path: (
                OSError(errno.EIO, os.strerror(errno.EIO), path) if "/b-0" in path else None
            )
            second = await Client.connect(broker.port)
            topic = CreatableTopic(name="b", num_partitions=1, replication_factor=1)
            await second.call(CreateTopicsRequest(topics=[topic], timeout_ms=100), 5)
            # A fetch that waits is answered at once.
            async with asyncio.timeout(30):
                assert fetched(await waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            await until(lambda: leader_of(broker, "a") == NO_LEADER)
            second.close()
            disk.fault = None

    run(scenario())


def leader_of(broker, topic):
    return broker.parts.cluster.view.image.partition(topic, 0).leader


@pytest.mark.parametrize("power_cut", [False, True])
def test_what_was_acknowledged_survives_a_crash(power_cut):
    """acks=all under group commit: on the disk before the answer, a power cut included."""

    async def scenario():
        disk, tree = MemoryFileSystem(), MemoryTree()
        disk.mkdir("/logs")
        disk.fsync_directory("/")
        async with running(filesystem=disk, store=MemoryStore(tree)) as broker:
            await broker.parts.metadata.topics.auto_create("a")
            client = await Client.connect(broker.port)
            for value in (b"1", b"2", b"3"):
                assert produced(await client.call(produce("a", batch(value)), 9)).error_code == 0
            disk.crash(random.Random(3) if power_cut else None)
            client.close()
        async with running(filesystem=disk, store=MemoryStore(tree)) as broker:
            client = await Client.connect(broker.port)
            answer = fetched(await client.call(fetch("a", 0), 11))
            assert answer.high_watermark == 3
            assert produced(await client.call(produce("a", batch(b"4")), 9)).base_offset == 3
            client.close()

    run(scenario())


def test_a_restart_keeps_offsets_starts_and_sequences():
    """Log end, log start and the sequences of producers come back after a stop in order (P19)."""

    async def scenario():
        disk, tree = MemoryFileSystem(), MemoryTree()

        def of_producer(sequence):
            return batch(b"x", producer_id=5, producer_epoch=0, base_sequence=sequence)

        async with running(filesystem=disk, store=MemoryStore(tree)) as broker:
            await broker.parts.metadata.topics.auto_create("a")
            client = await Client.connect(broker.port)
            for sequence in range(3):
                await client.call(produce("a", of_producer(sequence)), 9)
            broker.partitions.get("a", 0).advance_log_start(2)
            client.close()
        async with running(filesystem=disk, store=MemoryStore(tree)) as broker:
            partition = broker.partitions.get("a", 0)
            assert (partition.log_start_offset, partition.high_watermark) == (2, 3)
            client = await Client.connect(broker.port)
            again = produced(await client.call(produce("a", of_producer(2)), 9))
            assert (again.error_code, again.base_offset) == (0, 2)
            client.close()

    run(scenario())


def test_flush_by_count_and_by_time():
    """log.flush.interval.messages and .ms with log.flush.policy=os (P27)."""

    async def scenario():
        settings = {"log.flush.policy": "os", "log.flush.interval.messages": "3"}
        async with connected(settings) as (broker, client):
            log = broker.partitions.get("a", 0).log
            points = []
            for _ in range(4):
                await client.call(produce("a", batch(b"x"), acks=1), 9)
                await broker.parts.replication.flusher.settle()
                points.append(log.flush_state.recovery_point)
            assert points == [0, 0, 3, 3]
        settings = {"log.flush.policy": "os", "log.flush.interval.ms": "1"}
        async with connected(settings) as (broker, client):
            log = broker.partitions.get("a", 0).log
            await client.call(produce("a", batch(b"x"), acks=1), 9)
            assert log.flush_state.recovery_point == 0
            log.flush_state.last_flush_ms -= 10
            await broker.parts.replication.upkeep.flush_by_time()
            await broker.parts.replication.flusher.settle()
            assert log.flush_state.recovery_point == 1

    run(scenario())


def test_group_commit_flushes_many_appends_with_one_job():
    """What one turn appends is flushed together (P3): far fewer jobs than requests."""

    async def scenario():
        async with connected() as (broker, client):
            before = broker.parts.replication.flusher.jobs_total
            for _ in range(50):
                client.send(produce("a", batch(b"x")), 9)
            for _ in range(50):
                assert produced(await client.receive(0, 9)).error_code == 0
            assert broker.parts.replication.flusher.jobs_total - before <= 10

    run(scenario())


def test_checkpoints_hold_what_is_flushed(tmp_path):
    """recovery-point-, replication- and log-start-offset-checkpoint, in Kafka's form (P19)."""

    async def scenario():
        settings = {"log.dirs": str(tmp_path)}
        async with connected(settings, filesystem=OsFileSystem()) as (broker, client):
            for _ in range(3):
                await client.call(produce("a", batch(b"x")), 9)
            broker.partitions.get("a", 0).advance_log_start(1)
            await broker.parts.replication.upkeep.write_checkpoints()
            assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 3\n"
            assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\na 0 3\n"
            assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 1\n"

    run(scenario())


def test_retention_deletes_whole_segments_and_their_files_later(tmp_path):
    """Retention by size; a reader of the old files has file.delete.delay.ms to finish."""

    async def scenario():
        settings = {"log.dirs": str(tmp_path), "log.segment.delete.delay.ms": "60000"}
        async with connected(settings, filesystem=OsFileSystem()) as (broker, client):
            for _ in range(3):
                await client.call(produce("a", batch(b"x" * 1000)), 9)
                broker.partitions.get("a", 0).log.roll(broker.runtime.clock.now_ms())
            changed = {"retention.bytes": "1000"}
            await broker.parts.configs.configs.replace(2, "a", changed, validate_only=False)
            await broker.parts.retention.apply_retention()
            assert broker.partitions.get("a", 0).log_start_offset == 2
            assert len(list((tmp_path / "a-0").glob("*.log.deleted"))) == 2
        assert list((tmp_path / "a-0").glob("*.deleted")) == []

    run(scenario())


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs Linux's /proc")
def test_a_consumer_that_keeps_up_costs_no_disk_reads(tmp_path):
    """P4: 20 MB are produced and read back from the page cache alone, counted by the system.

    The count is the whole process's, pages of its own code among them, which the system may have
    dropped: what is read back is 20 MB, and not a quarter of that may have come from a disk.
    """

    def read_bytes():
        with open("/proc/self/io", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("read_bytes")).split()[1])

    async def scenario():
        settings = {"log.dirs": str(tmp_path)}
        async with connected(settings, filesystem=OsFileSystem()) as (_, client):
            sent = batch(b"x" * 500_000)
            await client.call(produce("a", sent), 9)
            await client.call(fetch("a", 0), 11)
            before = read_bytes()
            for offset in range(1, 41):
                await client.call(produce("a", sent, acks=1), 9)
                request = fetch("a", offset, max_wait_ms=60_000)
                answer = fetched(await client.call(request, 11))
                assert len(answer.records) == len(sent)
            assert read_bytes() - before < 40 * len(sent) / 4

    run(scenario())


def test_a_log_directory_that_is_open_to_all_users_is_warned_of(tmp_path, caplog):
    """It may hold files that Kafka made; one of a group is its administrator's decision."""

    async def scenario(mode):
        tmp_path.chmod(mode)
        caplog.clear()
        settings = {"log.dirs": str(tmp_path)}
        async with running(settings, filesystem=OsFileSystem(), store=MemoryStore()):
            return [line for line in caplog.messages if "open to every user" in line]

    assert run(scenario(0o770)) == []
    (line,) = run(scenario(0o755))
    assert f"the log directory {tmp_path} is open to every user" in line
    assert "(mode 0755)" in line
    assert f"run `chmod -R go= {tmp_path}`" in line
