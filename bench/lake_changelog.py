"""A table with the latest value of each key: our changelog beside a MERGE in Delta, by delta-rs.

5 M changes of 500 k keys in 4 partitions, a tenth of them deletions, on Ottla. Each side starts
with an empty Delta table and applies the changes in five steps: read what is new, keep the last
change of each key, MERGE. `by hand` reads with confluent-kafka, as a program of one's own does;
`merge` reads with our own reader, so that it differs from ours in the merge and the proof alone.
Sides take turns; each ends with the table that a replay of the topic gives.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

import ottla.lake
from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, create_topic
from ottla.lake.model.plan import Range
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.source.cluster import connect
from ottla.lake.source.reader import read_range
from ottla.ledger.partition import RangeAccount
from ottla.record.builder import build_batch
from rig.broker import ottla as ottla_process
from rig.frames import produce_request
from rig.nodes import Node
from rig.probe import connect as connect_to
from rig.probe import receive_frame

_PARTITIONS = 4
_STEPS = 5
_BATCH = 500
_COLUMNS = ["key", "value", "partition", "offset"]
_SCHEMA = pa.schema([ROW_SCHEMA.field(name) for name in _COLUMNS])

Rows = dict[bytes, bytes]


def measure(scale: Scale) -> list[Figure]:
    changes = scale.pick(5_000_000, 100_000)
    folder = Path(tempfile.mkdtemp(prefix="bench-changelog-"))
    sides = {"changelog": _changelog, "by hand": _by_hand, "merge": _merge}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    try:
        with ottla_process(settings=NO_FSYNC) as node:
            topic = create_topic(node, _PARTITIONS)
            ends, wanted = _fill(node, topic, changes)
            for turn in range(scale.warm_up_rounds + scale.rounds):
                for name, side in sides.items():
                    target = folder / f"{name}-{turn}"
                    began, before = time.monotonic(), _cpu_seconds()
                    side(node, topic, target, ends)
                    taken = time.monotonic() - began, _cpu_seconds() - before
                    _require_equal(name, target, wanted)
                    shutil.rmtree(target)
                    if turn >= scale.warm_up_rounds:
                        seconds[name].append(taken[0])
                        cpu[name].append(taken[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rates = {name: [changes / taken for taken in times] for name, times in seconds.items()}
    return [
        _beside("lake changelog / MERGE in Delta by hand", "by hand", rates, cpu, 1.0),
        _beside("lake changelog / MERGE in Delta with our reader", "merge", rates, cpu, 1.0),
    ]


def _beside(
    name: str,
    other: str,
    rates: dict[str, list[float]],
    cpu: dict[str, list[float]],
    bound: float | None,
) -> Figure:
    used = {side: statistics.median(cpu[side]) for side in ("changelog", other)}
    note = f"changelog {spread(rates['changelog'])}; {other} {spread(rates[other])} changes/s; "
    note += ", ".join(f"{side} {seconds:.1f} s of CPU" for side, seconds in used.items())
    ratio = statistics.median(rates["changelog"]) / statistics.median(rates[other])
    return Figure(name, ratio, "×", AT_LEAST, bound, note)


def _fill(node: Node, topic: str, changes: int) -> tuple[list[dict[int, int]], Rows]:
    """Write the changes; return where each step ends, and the rows that the table must have."""
    chance = np.random.default_rng(11)
    keys_of_partition = changes // 10 // _PARTITIONS
    table: Rows = {}
    ends, at = [], dict.fromkeys(range(_PARTITIONS), 0)
    batches_of_step = -(-changes // (_STEPS * _PARTITIONS * _BATCH))
    with connect_to(node.port) as connection:
        for _ in range(_STEPS):
            for _ in range(batches_of_step):
                for partition in range(_PARTITIONS):
                    numbers = chance.integers(0, keys_of_partition, _BATCH).tolist()
                    keys: list[bytes | None] = [b"%d-%010d" % (partition, n) for n in numbers]
                    content = chance.bytes(100 * _BATCH)
                    values: list[bytes | None] = [
                        None if n % 10 == at[partition] // _BATCH % 10 else content[i : i + 100]
                        for n, i in zip(numbers, range(0, len(content), 100), strict=True)
                    ]
                    now_ms = time.time_ns() // 1_000_000
                    made = build_batch([now_ms] * _BATCH, keys, values)
                    connection.sendall(produce_request(topic, partition, bytes(made), 1))
                    receive_frame(connection)
                    at[partition] += _BATCH
                    for key, value in zip(keys, values, strict=True):
                        assert key is not None
                        if value is None:
                            table.pop(key, None)
                        else:
                            table[key] = value
            ends.append(dict(at))
    return ends, table


def _changelog(node: Node, topic: str, target: Path, ends: list[dict[int, int]]) -> None:
    for end in ends:
        ottla.lake.changelog(
            topic,
            str(target),
            bootstrap=node.bootstrap,
            end=",".join(f"{partition}:{offset}" for partition, offset in end.items()),
            format="delta",
            runner=ottla.lake.run_here,
        )


def _merge(node: Node, topic: str, target: Path, ends: list[dict[int, int]]) -> None:
    starts = dict.fromkeys(range(_PARTITIONS), 0)
    for end in ends:
        _merge_into(target, _last_of_each_key(_read(node, topic, starts, end)))
        starts = end


def _by_hand(node: Node, topic: str, target: Path, ends: list[dict[int, int]]) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends[0]])
    read = 0
    for end in ends:
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        while read < sum(end.values()):
            # A partition may run ahead of the step; its own order is what counts.
            for message in consumer.consume(min(10_000, sum(end.values()) - read), 10.0):
                columns["key"].append(message.key())
                columns["value"].append(message.value())
                columns["partition"].append(message.partition())
                columns["offset"].append(message.offset())
                read += 1
        _merge_into(target, _last_of_each_key(pa.table(columns, _SCHEMA)))
    consumer.close()


def _merge_into(target: Path, changes: pa.Table) -> None:
    if not DeltaTable.is_deltatable(str(target)):
        DeltaTable.create(str(target), changes.schema)
    (
        DeltaTable(str(target))
        .merge(changes, "old.key = new.key", source_alias="new", target_alias="old")
        .when_matched_delete("new.value IS NULL")
        .when_matched_update_all()
        .when_not_matched_insert_all("new.value IS NOT NULL")
        .execute()
    )


def _read(node: Node, topic: str, starts: dict[int, int], ends: dict[int, int]) -> pa.Table:
    batches = []
    cluster = connect(node.bootstrap)
    try:
        for partition, start in starts.items():
            wanted = Range(topic, partition, start, ends[partition])
            account = RangeAccount(partition, start, ends[partition], False)
            batches += [batch.select(_COLUMNS) for batch in read_range(wanted, cluster, account)]
    finally:
        cluster.close()
    return pa.Table.from_batches(batches)


def _last_of_each_key(changes: pa.Table) -> pa.Table:
    """Each key is in one partition, in order of offset."""
    numbered = changes.append_column("number", pa.array(np.arange(changes.num_rows)))
    last = numbered.group_by("key").aggregate([("number", "max")]).column("number_max")
    return changes.take(last)


def _require_equal(name: str, target: Path, wanted: Rows) -> None:
    read: Any = DeltaTable(str(target)).to_pyarrow_table(columns=["key", "value"])
    keys, values = read.column("key").to_pylist(), read.column("value").to_pylist()
    found = dict(zip(keys, values, strict=True))
    if len(keys) != len(found) or found != wanted:
        raise AssertionError(f"{name}: {len(keys)} rows are not the {len(wanted)} of the replay")


def _cpu_seconds() -> float:
    used = getrusage(RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
