"""Compacting 10 million records of a million keys, beside Kafka's cleaner with one thread.

Both are told to begin by the same change of a setting, and both say when they are done by the same
file, `cleaner-offset-checkpoint`. Meanwhile a client asks Ottla's broker a small question all the
time: the longest answer bounds how long its loop stood still.
"""

import contextlib
import random
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench.figures import AT_LEAST, AT_MOST, Figure, Scale
from bench.sides import NO_FSYNC
from ottla.client import TopicPartition, sync
from ottla.record.builder import build_batch
from ottla.wire.messages.api_versions import ApiVersionsRequest
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.frames import error_position, produce_request
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import connect, receive_frame
from rig.topics import wait_for_leaders
from rig.wire_client import WireClient

_TOPIC = "compacted"
_BATCH_RECORDS = 500
_VALUE = b"v" * 100
_SETTINGS = {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"}
_LONGEST_S = 240.0
_MB = 1 << 20


def measure(scale: Scale) -> list[Figure]:
    records, keys = scale.pick(10_000_000, 300_000), scale.pick(1_000_000, 30_000)
    with ottla(settings={**NO_FSYNC, **_SETTINGS}) as node:
        ours = _compact(node, records, keys)
        ours["wrong"] = _differs(node, records, keys, ours["end"])
    figures = [
        Figure("compaction, wrong records", ours["wrong"], "", AT_MOST, 0, "against a replay"),
        Figure(
            "longest answer meanwhile",
            ours["longest_ms"],
            "ms",
            AT_MOST,
            50,
            f"{ours['longest_after_ms']:.0f} ms afterwards, in at most 30 s of quiet",
        ),
        Figure(
            "memory of the cleaner",
            ours["peak_bytes"] / _MB,
            "MB",
            AT_MOST,
            (24 * keys + 64 * _MB) / _MB,
        ),
    ]
    theirs = None
    if kafka_rig.available() is None:
        with kafka(settings=_SETTINGS) as node:
            theirs = _compact(node, records, keys)["rate"]
        figures.append(Figure("compaction, Kafka", theirs, "records/s"))
    figures.append(
        Figure(
            "compaction",
            ours["rate"],
            "records/s",
            AT_LEAST,
            None if theirs is None else theirs / 2,
            f"{records:,} records, {keys:,} keys, {ours['elapsed_s']:.1f} s",
        )
    )
    return figures


def _compact(node: Node, records: int, keys: int) -> dict[str, Any]:
    """Fill a topic, have it cleaned, and watch."""
    client = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    segment_bytes = max(_MB, records * 120 // 12)
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1.0",
        "segment.bytes": str(segment_bytes),
    }
    client.create_topics([NewTopic(_TOPIC, 1, 1, config=configs)])[_TOPIC].result(30)
    wait_for_leaders(client, _TOPIC, 1)
    _fill(node, records, keys)
    time.sleep(2.0)  # Until what was rolled is flushed.
    began_s = time.monotonic()
    with _watched(node) as seen:
        _lower_ratio(client)
        end = _wait_for_checkpoint(node)
        elapsed_s = time.monotonic() - began_s
    print(f"   {node.name}: {end:,} records in {elapsed_s:.1f} s", flush=True)
    with _watched(node) as quiet:
        # What the machine, and whatever else runs on it, does to answers.
        time.sleep(min(elapsed_s, 30.0))
    return {
        "rate": end / elapsed_s,
        "elapsed_s": elapsed_s,
        "end": end,
        "longest_after_ms": quiet["longest_ms"],
        **seen,
    }


def _fill(node: Node, records: int, keys: int) -> None:
    with connect(node.port) as connection:
        waiting = 0
        for batch in _batches(records, keys):
            connection.sendall(produce_request(_TOPIC, 0, bytes(batch), 1))
            waiting += 1
            if waiting > 5:
                _check(receive_frame(connection))
                waiting -= 1
        for _ in range(waiting):
            _check(receive_frame(connection))


def _batches(records: int, keys: int) -> Iterator[bytearray]:
    now_ms = int(time.time() * 1000)
    values: list[bytes | None] = [_VALUE] * _BATCH_RECORDS
    for numbers in _key_numbers(records, keys):
        names: list[bytes | None] = [b"%016d" % number for number in numbers]
        yield build_batch([now_ms] * _BATCH_RECORDS, names, values)


def _key_numbers(records: int, keys: int) -> Iterator[list[int]]:
    """The same ones whenever asked."""
    chance = random.Random(7)
    for _ in range(records // _BATCH_RECORDS):
        yield [int(chance.random() * keys) for _ in range(_BATCH_RECORDS)]


def _check(answer: bytes) -> None:
    at = error_position(_TOPIC) - 4
    if code := int.from_bytes(answer[at : at + 2], "big"):
        raise RuntimeError(f"produce was answered with error {code}")


def _lower_ratio(client: AdminClient) -> None:
    entry = ConfigEntry(
        "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, _TOPIC, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)


def _wait_for_checkpoint(node: Node) -> int:
    """The offset below which all is clean, as the checkpoint says."""
    file = node.folder / "logs" / "cleaner-offset-checkpoint"
    deadline_s = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError):
            for line in file.read_text().splitlines()[2:]:
                topic, _, offset = line.split()
                if topic == _TOPIC and int(offset) > 0:
                    return int(offset)
        time.sleep(0.01)
    raise RuntimeError(f"{node.name} has not compacted within {_LONGEST_S} s")


@contextlib.contextmanager
def _watched(node: Node) -> Iterator[dict[str, float]]:
    """Ask all the time; afterwards the longest answer and the peak of the child's memory."""
    seen = {"longest_ms": 0.0, "peak_bytes": 0.0}
    over = threading.Event()

    def ask() -> None:
        with WireClient(node.port) as client:
            while not over.wait(0.002):
                began_s = time.perf_counter()
                client.call(ApiVersionsRequest(), 0)
                took_ms = (time.perf_counter() - began_s) * 1000
                seen["longest_ms"] = max(seen["longest_ms"], took_ms)
                seen["peak_bytes"] = max(seen["peak_bytes"], _peak_of_children(node.process.pid))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _peak_of_children(pid: int) -> int:
    """Bytes of memory that the largest child has had at once."""
    largest = 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                status = Path(f"/proc/{child}/status").read_text()
                largest = max(largest, int(status.split("VmHWM:")[1].split()[0]) * 1024)
    return largest


def _differs(node: Node, records: int, keys: int, end: int) -> int:
    """How many records below `end` a replay would have kept and the log has not, or the reverse."""
    last = array("q", [-1]) * keys
    offset = 0
    for numbers in _key_numbers(records, keys):
        for number in numbers:
            if offset < end:
                last[number] = offset
            offset += 1
    expected = {offset for offset in last if offset >= 0}
    wrong = 0
    partition = TopicPartition(_TOPIC, 0)
    with sync.Consumer(node.bootstrap) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        while consumer.position(partition) < end:
            for found in consumer.poll(5).by_partition:
                for record in found.records:
                    if record.offset >= end:
                        continue
                    key = int(record.key or b"-1")
                    wrong += last[key] != record.offset
                    expected.discard(record.offset)
    return wrong + len(expected)
