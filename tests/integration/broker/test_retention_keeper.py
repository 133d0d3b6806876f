"""Laws of retention carried out: only what was judged goes, in slices beside everything else."""

import asyncio

from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.builder import build_batch
from ottla.record.header import read_header
from ottla.storage.disk.filesystem import OsFileSystem
from tests.integration.broker import inprocess

# The last one has room for a second record, as all others had.
SEGMENTS, RECORDS = 70, 139


def on_disk(tmp_path, scenario):
    """Run `scenario(broker, partition)` with a partition of old records in many segments."""

    async def with_partition(caller):
        broker = caller.broker
        configs = {"internal.segment.bytes": "220", "retention.ms": "1000"}
        await broker.parts.metadata.topics.create([RequestedTopic("t", 1, configs=configs)])
        partition = broker.partitions.get("t", 0)
        for _ in range(RECORDS):
            append(broker, partition)
        await broker.parts.replication.flusher.settle()
        assert len(partition.log.segments) == SEGMENTS
        assert partition.high_watermark == RECORDS
        broker.runtime.clock.advance(10_000)
        await scenario(broker, partition)

    settings = {"log.dirs": str(tmp_path / "logs")}
    inprocess.run(with_partition, settings, filesystem=OsFileSystem())


def append(broker, partition):
    """One record of now; its offset."""
    now_ms = broker.runtime.clock.now_ms()
    batch = build_batch([now_ms], [None], [b"x" * 30])
    return partition.append(batch, read_header(batch), now_ms).base_offset


def test_a_record_that_comes_while_retention_works_stays(tmp_path):
    """Its segment was old a moment ago, when retention judged it; the older ones may go."""

    async def scenario(broker, partition):
        now_ms = broker.runtime.clock.now_ms()
        keeping = asyncio.create_task(broker.parts.retention.apply(partition, now_ms))
        await asyncio.sleep(0)
        assert not keeping.done(), "the ledger is written in a thread"
        assert append(broker, partition) == RECORDS
        await keeping
        assert partition.log_start_offset <= RECORDS
        assert partition.log_end_offset == RECORDS + 1

    on_disk(tmp_path, scenario)


def test_many_segments_go_in_slices(tmp_path):
    """The loop has other turns in between; in the end all of them are gone."""

    async def scenario(broker, partition):
        now_ms = broker.runtime.clock.now_ms()
        keeping = asyncio.create_task(broker.parts.retention.apply(partition, now_ms))
        counts = set()
        while not keeping.done():
            counts.add(len(partition.log.segments))
            await asyncio.sleep(0)
        assert counts >= {70, 38, 6}
        assert (partition.log_start_offset, partition.log_end_offset) == (RECORDS, RECORDS)

    on_disk(tmp_path, scenario)
