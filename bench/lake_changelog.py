"""A table with the latest value of each key: our changelog beside a MERGE in Delta, by delta-rs.

5 M changes of 500 k keys in 4 partitions, a tenth of them deletions, on Ottla. Both sides start
with an empty Delta table and apply the changes in five steps. The other side is what one writes by
hand: read what is new by the data source's reader, keep the last change of each key, MERGE. Sides
take turns; each ends with the table that a replay of the topic gives.
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
from deltalake import DeltaTable

import ottla.lake
from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, create_topic
from ottla.lake.cluster import connect
from ottla.lake.plan import Range
from ottla.lake.reader import read_range
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

Rows = dict[bytes, bytes]


def measure(scale: Scale) -> list[Figure]:
    changes = scale.pick(5_000_000, 100_000)
    folder = Path(tempfile.mkdtemp(prefix="bench-changelog-"))
    seconds: dict[str, list[float]] = {"changelog": [], "merge": []}
    cpu: dict[str, list[float]] = {"changelog": [], "merge": []}
    try:
        with ottla_process(settings=NO_FSYNC) as node:
            topic = create_topic(node, _PARTITIONS)
            ends, wanted = _fill(node, topic, changes)
            for turn in range(scale.warm_up_rounds + scale.rounds):
                for name, side in (("changelog", _changelog), ("merge", _merge)):
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
    middle = {name: statistics.median(found) for name, found in rates.items()}
    note = f"changelog {spread(rates['changelog'])}; MERGE {spread(rates['merge'])} changes/s; "
    note += ", ".join(f"{name} {statistics.median(of):.1f} s of CPU" for name, of in cpu.items())
    ratio = middle["changelog"] / middle["merge"]
    return [Figure("lake changelog / MERGE in Delta", ratio, "×", AT_LEAST, 1.0, note)]


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
            runner=ottla.lake.run_jobs_here,
        )


def _merge(node: Node, topic: str, target: Path, ends: list[dict[int, int]]) -> None:
    starts = dict.fromkeys(range(_PARTITIONS), 0)
    for end in ends:
        changes = _last_of_each_key(_read(node, topic, starts, end))
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
        starts = end


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
