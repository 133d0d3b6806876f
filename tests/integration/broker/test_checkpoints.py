"""Laws of the checkpoints of many partitions: in slices, and all of them."""

from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.builder import build_batch
from ottla.record.header import read_header
from ottla.storage.disk.filesystem import OsFileSystem
from tests.integration.broker import inprocess

PARTITIONS = 230


def test_recovery_starts_behind_all_that_was_written_to_each_of_many_partitions(tmp_path):
    """No flush takes more than a hundred of them; the checkpoint promises all their records.

    Each has grown enough that a recovery would be long without a checkpoint.
    """

    async def scenario(caller):
        broker = caller.broker
        await broker.parts.metadata.topics.create([RequestedTopic("t", PARTITIONS)])
        now_ms = broker.runtime.clock.now_ms()
        for partition in broker.partitions:
            batch = build_batch([now_ms], [None], [bytes(64 << 10)])
            partition.append(batch, read_header(batch), now_ms)
        await broker.parts.replication.flusher.settle()
        broker.runtime.clock.advance(120_000)
        before = broker.parts.replication.flusher.jobs_total
        await broker.parts.replication.upkeep.write_checkpoints()
        assert broker.parts.replication.flusher.jobs_total - before >= 3
        lines = (tmp_path / "logs/recovery-point-offset-checkpoint").read_text().splitlines()
        assert sorted(lines[2:]) == sorted(f"t {number} 1" for number in range(PARTITIONS))
        for partition in broker.partitions:
            assert partition.log.flush_state.snapshots == [1]

    settings = {"log.dirs": str(tmp_path / "logs")}
    inprocess.run(scenario, settings, filesystem=OsFileSystem())
