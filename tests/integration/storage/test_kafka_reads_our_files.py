"""Apache Kafka's own dump tool reads every kind of file we write, and finds nothing amiss."""

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from ottla.base.ids import TopicPartition
from ottla.record.builder import BatchBuilder
from ottla.record.compression import Compression
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.record.header import read_header
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.log import open_log as opening
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig
from ottla.transaction.records import encode
from ottla.transaction.transaction import Transaction, TransactionRecord, TransactionState

JARS = Path(
    os.environ.get("OTTLA_KAFKA_JARS") or Path(__file__).resolve().parents[3] / ".rig" / "kafka"
)
TOOL = "org.apache.kafka.tools.DumpLogSegments"
# What the tool says where a file is bad.
COMPLAINTS = (
    "Mismatches in",
    "Out of order",
    "Could not",
    "corrupt",
    "Exception",
    "isvalid: false",
)

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
    pytest.mark.skipif(
        not any(JARS.glob("kafka-tools-*.jar")),
        reason=f"Apache Kafka's jars are not in {JARS} (see OTTLA_KAFKA_JARS)",
    ),
]


def fill(log: Log) -> None:
    """Batches of every codec, an idempotent and a transactional producer, three leader terms."""
    random = Random(7)
    sequence = transactional_sequence = 0
    codecs = list(Compression)
    for number in range(400):
        epoch, time = number // 150, 1_700_000_000_000 + number * 10
        builder = BatchBuilder(
            compression=codecs[number % len(codecs)],
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        for _ in range(random.randint(1, 6)):
            value = random.randbytes(random.randint(0, 200))
            builder.append(time + random.randint(-50, 50), b"key", value, [("header", b"1")])
        sequence += _append(log, builder.build(), epoch)
        if number % 10 == 0:
            builder = BatchBuilder(
                producer_id=8,
                producer_epoch=0,
                base_sequence=transactional_sequence,
                transactional=True,
            )
            builder.append(time, None, b"in a transaction")
            transactional_sequence += _append(log, builder.build(), epoch)
            outcome = ControlType(number // 10 % 2)
            end = EndTransactionMarker(outcome, coordinator_epoch=3)
            _append(log, build_marker(end, producer_id=8, producer_epoch=0, timestamp=time), epoch)


def _append(log: Log, batch: bytearray, epoch: int) -> int:
    header = read_header(batch)
    log.append_as_leader(memoryview(batch), header, epoch, 1_700_000_000_000)
    return header.record_count


def open_log(folder: Path, **options: int) -> Log:
    config = LogConfig(segment_bytes=60_000, index_interval_bytes=1_000)
    return opening.open_log(
        OsFileSystem(),
        f"{folder}/flights-0",
        TopicPartition("flights", 0),
        config,
        now_ms=1_700_000_000_000,
        recovery_point=options.get("recovery_point", 0),
    )


def dump(folder: Path, suffixes: tuple[str, ...], *options: str) -> str:
    """What the tool prints of the folder's files of these kinds."""
    files = sorted(path for path in (folder / "flights-0").iterdir() if path.suffix in suffixes)
    assert {path.suffix for path in files} == set(suffixes)
    names = ",".join(map(str, files))
    command = ["java", "-cp", f"{JARS}/*", TOOL, "--files", names, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    output = done.stdout + done.stderr
    for complaint in COMPLAINTS:
        assert complaint not in output, output[output.index(complaint) :][:500]
    return output


def offsets(output: str) -> list[int]:
    """Offsets of all records in a deep dump."""
    lines = [line for line in output.splitlines() if line.startswith("| offset: ")]
    return [int(line.split()[2]) for line in lines]


@pytest.mark.parametrize("stopped", ["cleanly", "killed"])
def test_kafka_finds_every_record(tmp_path: Path, stopped: str) -> None:
    """Deep iteration: every batch valid, every offset there, in order (P2)."""
    log = open_log(tmp_path)
    fill(log)
    end = log.log_end_offset
    if stopped == "killed":
        log.close(clean=False)
        torn = max((tmp_path / "flights-0").glob("*.log"))
        with torn.open("ab") as file:
            file.write(bytes(100))
        log = open_log(tmp_path)
    log.close(clean=True)
    output = dump(tmp_path, (".log",), "--deep-iteration")
    assert offsets(output) == list(range(end))
    assert "endTxnMarker: ABORT coordinatorEpoch: 3" in output
    assert "endTxnMarker: COMMIT coordinatorEpoch: 3" in output


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", None])
def test_kafka_finds_the_indexes_right(tmp_path: Path, option: str | None) -> None:
    """Each entry of the offset index leads to its batch, of the time index to its time."""
    log = open_log(tmp_path)
    fill(log)
    log.close(clean=True)
    suffixes = (".index",) if option == "--verify-index-only" else (".index", ".timeindex")
    output = dump(tmp_path, suffixes, *([option] if option else []))
    if option == "--index-sanity-check":
        assert output.count("passed sanity check") == output.count("Dumping")
    if option is None:
        assert output.count("offset: ") > 50
        assert output.count("timestamp: ") > 50


def test_kafka_finds_an_index_that_leads_to_another_batch(tmp_path: Path) -> None:
    """So `--verify-index-only` judges the entries: it complains where one is wrong."""
    log = open_log(tmp_path)
    fill(log)
    log.close(clean=True)
    index = next(tmp_path.rglob("*.index"))
    entries = bytearray(index.read_bytes())
    entries[12:16] = entries[4:8]
    index.write_bytes(entries)
    with pytest.raises(AssertionError, match="Mismatches in"):
        dump(tmp_path, (".index",), "--verify-index-only")


def test_kafka_reads_snapshots_and_transaction_indexes(tmp_path: Path) -> None:
    """The dump tells what the log knows of its producers."""
    log = open_log(tmp_path)
    fill(log)
    [idempotent, transactional] = log.producers.described()
    aborted = log.segments.aborted_transactions(0, log.log_end_offset)
    log.close(clean=True)
    output = dump(tmp_path, (".txnindex", ".snapshot"))
    assert len(aborted) == 20
    for one in aborted:
        assert (
            f"version: 0 producerId: 8 firstOffset: {one.first_offset} "
            f"lastOffset: {one.last_offset} lastStableOffset: {one.last_stable_offset}" in output
        )
    for entry in (idempotent, transactional):
        last = entry.batches[-1]
        assert (
            f"producerId: {entry.producer_id} producerEpoch: 0 "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: "
            f"OptionalLong.empty lastTimestamp: {entry.last_timestamp} "
            f"firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} "
            f"lastOffset: {last.last_offset} offsetDelta: {last.offset_delta} "
            f"timestamp: {last.timestamp}" in output
        )


def test_kafka_reads_the_state_of_transactional_ids(tmp_path: Path) -> None:
    """Its decoder of `__transaction_state` passes over the field of our own."""
    log = open_log(tmp_path)
    known = Transaction(
        producer_id=4,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({TopicPartition("a", 0), TopicPartition("a", 2)}),
        start_timestamp_ms=10,
        last_update_timestamp_ms=11,
        last_producer_epoch=2,
        previous_producer_id=4,
        client_version=2,
    )
    builder = BatchBuilder()
    for record in (TransactionRecord("x", known), TransactionRecord("y", None)):
        builder.append(1_700_000_000_000, *encode(record))
    _append(log, builder.build(), 0)
    log.close(clean=True)
    output = dump(tmp_path, (".log",), "--transaction-log-decoder")
    assert (
        'key: {"type":"0","data":{"transactionalId":"x"}} payload: {"version":"1","data":'
        '{"producerId":4,"previousProducerId":4,"producerEpoch":3,"transactionTimeoutMs":60000,'
        '"transactionStatus":1,"transactionPartitions":[{"topic":"a","partitionIds":[0,2]}],'
        '"transactionLastUpdateTimestampMs":11,"transactionStartTimestampMs":10,'
        '"clientTransactionVersion":2}}' in output
    )
    assert '{"transactionalId":"y"}} payload: <DELETE>' in output
