"""A process that is killed while it appends: what it had told is there, in order, and no more."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition
from ottla.record.header import computed_crc, read_header
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.open_log import open_log
from ottla.storage.segment.config import LogConfig

# Appends batches of 1 to 40 records for ever, and tells each offset that it was given.
WRITER = """
import sys
from random import Random
from ottla.base.ids import TopicPartition
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.segment.config import LogConfig
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.log.open_log import open_log

folder, seed = sys.argv[1], int(sys.argv[2])
log = open_log(OsFileSystem(), folder, TopicPartition("flights", 0),
               LogConfig(segment_bytes=300_000), now_ms=0)
random, sequence = Random(seed), log.log_end_offset
while True:
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=sequence)
    for _ in range(random.randint(1, 40)):
        builder.append(0, None, random.randbytes(random.randint(0, 2_000)))
    batch = builder.build()
    header = read_header(batch)
    sequence += header.record_count
    appended = log.append_as_leader(memoryview(batch), header, 0, 0)
    if random.random() < 0.02:
        log.flush(checkpoint=True)
    print(appended.last_offset, flush=True)
"""


def read_all(log: Log) -> list[tuple[int, int]]:
    """(first, last offset) of all batches, their checksums tried."""
    found: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while (located := log.read(offset, 1 << 20, max_offset=log.log_end_offset)).size:
        content = located.file.pread(located.size, located.position)
        position = 0
        while position < len(content):
            header = read_header(content, position)
            assert computed_crc(content, position, header.size) == header.crc
            found.append((header.base_offset, header.last_offset))
            position += header.size
        offset = found[-1][1] + 1
    return found


@pytest.mark.parametrize("seed", range(4))
def test_log_of_a_killed_process_is_found_whole(tmp_path: Path, seed: int) -> None:
    """kill -9 in the middle of appending, three times over the same log (P1, P19)."""
    folder = f"{tmp_path}/flights-0"
    for round_number in range(3):
        told = _write_and_kill(folder, 40 + 60 * seed, seed * 10 + round_number)
        log = open_log(OsFileSystem(), folder, TopicPartition("flights", 0), LogConfig(), now_ms=0)
        found = read_all(log)
        assert log.log_end_offset - 1 >= told
        assert found[-1][1] == log.log_end_offset - 1
        assert [first for first, _ in found] == [0, *(last + 1 for _, last in found[:-1])]
        [producer] = log.producers.described()
        assert producer.last_offset == log.log_end_offset - 1
        log.close(clean=False)


def _write_and_kill(folder: str, batches: int, seed: int) -> int:
    """The last offset that the killed process told."""
    command = [sys.executable, "-c", WRITER, folder, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = -1
        for _ in range(batches):
            told = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
    return told
