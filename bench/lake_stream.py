"""A topic that gets 20,000 records a second, into a table: how old records are once they count.

    producer (a process) → broker → `ottla lake follow --every 5s` → Parquet
                                  → Spark's connector, its file sink with the same trigger → Parquet

The lag of a record is the time from its timestamp until the commit that has it is there: a
manifest, or an entry of the sink's log; this process looks every 20 ms. The sides run one after the
other, for 20 minutes and a quarter of it (`BENCH_STREAM_S` says other seconds). At the end every
record has to be there once, and the table proven.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import ottla.lake
from bench.figures import AT_MOST, Figure, Scale
from bench.sides import NO_FSYNC, child, create_topic
from ottla.record.builder import build_batch
from rig import accounts
from rig.broker import ottla as ottla_process
from rig.frames import produce_request
from rig.jars import SPARK_CONNECTOR
from rig.java import java_home
from rig.nodes import Node
from rig.probe import connect, receive_frame

TRIGGER_S = 5
_RATE = 20_000
_PARTITIONS = 4
_TICK_S = 0.05
_LOOK_S = 0.02
# Records of the first seconds meet a Java that is not warm yet.
_WARM_UP_S = 30.0
_PATIENCE_S = 180.0

FilesOf = Callable[[Path], list[str]]


@dataclass
class Commits:
    """The commits of a side, and when each was seen first."""

    folder: Path
    target: Path
    files_of: FilesOf
    seen_ms: dict[str, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Until it is over."""
        while not self.over.wait(_LOOK_S):
            with contextlib.suppress(FileNotFoundError):
                names = os.listdir(self.folder)
                now_ms = time.time_ns() // 1_000_000
                for name in names:
                    if name.split(".")[0].isdigit():
                        self.seen_ms.setdefault(name, now_ms)

    def files(self) -> dict[str, int]:
        """Files that count, and since when."""
        found: dict[str, int] = {}
        for name in sorted(self.seen_ms, key=lambda one: int(one.split(".")[0])):
            for path in self.files_of(self.folder / name):
                found.setdefault(path, self.seen_ms[name])
        return found

    def rows(self) -> int:
        """How many rows count."""
        return sum(pq.read_metadata(path).num_rows for path in self.files())

    def lags_s(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Timestamps in seconds since the first one, and the lag of each."""
        times, lags = [], []
        for path, seen_ms in self.files().items():
            column = pq.read_table(path, columns=["timestamp"]).column(0)
            micros = column.cast("timestamp[us]").to_numpy().astype("int64")
            times.append(micros / 1e6)
            lags.append(seen_ms / 1e3 - micros / 1e6)
        at, lag = np.concatenate(times), np.concatenate(lags)
        return at - at.min(), lag


def measure(scale: Scale) -> list[Figure]:
    span_s = float(os.environ.get("BENCH_STREAM_S", scale.pick(20 * 60, 75)))
    folder = Path(tempfile.mkdtemp(prefix="bench-stream-"))
    try:
        with ottla_process(settings=NO_FSYNC) as node:
            figures = _side("lake follow", _follow, node, folder / "follow", span_s, 2 * TRIGGER_S)
            if SPARK_CONNECTOR.ready():
                quarter_s = min(span_s, max(75.0, span_s / 4))
                figures += _side(
                    "Spark's connector", _connector, node, folder / "spark", quarter_s, None
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def _side(
    name: str,
    start: Callable[[Node, str, Path], tuple[subprocess.Popen[bytes], Commits]],
    node: Node,
    target: Path,
    span_s: float,
    bound_s: float | None,
) -> list[Figure]:
    topic = create_topic(node, _PARTITIONS)
    running, commits = start(node, topic, target)
    family = [running.pid]
    watcher = threading.Thread(target=commits.watch)
    watcher.start()
    try:
        assert running.stdout is not None
        assert running.stdout.readline(), f"{name} has ended"
        count = child("bench.lake_stream", "produce", node.port, topic, span_s)["records"]
        deadline_s = time.monotonic() + _PATIENCE_S
        while (there := commits.rows()) < count:
            assert running.poll() is None, f"{name} has ended"
            assert time.monotonic() < deadline_s, f"{name}: {there:,} of {count:,} rows"
            time.sleep(1.0)
        family = [running.pid, *_descendants(running.pid)]
        cpu_s = sum(accounts.cpu_seconds(pid) for pid in family)
    finally:
        commits.over.set()
        watcher.join()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        running.wait()
    assert commits.rows() == count, f"{name}: {commits.rows():,} rows of {count:,} records"
    if bound_s is not None:
        proof = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
        assert proof.proven, proof.problems
    return _figures(name, commits, span_s, cpu_s, count, bound_s)


def _figures(
    name: str, commits: Commits, span_s: float, cpu_s: float, count: int, bound_s: float | None
) -> list[Figure]:
    at, lag = commits.lags_s()
    warm = min(_WARM_UP_S, span_s / 3)
    lag, at = lag[at >= warm], at[at >= warm]
    middle = (warm + at.max()) / 2
    p50, p95, p99 = np.percentile(lag, [50, 95, 99])
    halves = [float(np.percentile(lag[part], 95)) for part in (at < middle, at >= middle)]
    note = (
        f"p50 {p50:.2f}, p99 {p99:.2f}, most {lag.max():.2f} s; {count:,} records in "
        f"{span_s:.0f} s, {len(commits.seen_ms)} commits; {cpu_s / span_s:.2f} cores"
    )
    label = f"stream of {_RATE:,} records/s, {name}"
    grown = f"p95 {halves[0]:.2f} s, then {halves[1]:.2f} s"
    steady = None if bound_s is None else 1.1
    return [
        Figure(f"{label}: lag p95", float(p95), "s", AT_MOST, bound_s, note),
        Figure(f"{label}: second half / first", halves[1] / halves[0], "×", AT_MOST, steady, grown),
    ]


def _descendants(pid: int) -> list[int]:
    found = accounts.children(pid)
    return found + [one for below in found for one in _descendants(below)]


def _started(*words: object) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def _follow(node: Node, topic: str, target: Path) -> tuple[subprocess.Popen[bytes], Commits]:
    def files_of(path: Path) -> list[str]:
        return [str(target / one["path"]) for one in json.loads(path.read_bytes())["files"]]

    words = ("lake", "follow", topic, "--to", target, "--every", f"{TRIGGER_S}s")
    running = _started("ottla.cli", *words, "--master", "local[2]", "--bootstrap", node.bootstrap)
    return running, Commits(target / "_ottla" / "manifests", target, files_of)


def _connector(node: Node, topic: str, target: Path) -> tuple[subprocess.Popen[bytes], Commits]:
    def files_of(path: Path) -> list[str]:
        lines = path.read_text().splitlines()[1:]
        return [json.loads(line)["path"].removeprefix("file://") for line in lines]

    running = _started("bench.lake_stream", "connector", node.bootstrap, topic, target)
    return running, Commits(target / "_spark_metadata", target, files_of)


def _connect(bootstrap: str, topic: str, target: str) -> None:
    """Run the connector's query until it is killed."""
    from bench.lake import _session  # noqa: PLC0415  # Only where there is a Java.

    frame = (
        _session()
        .readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    query = (
        frame.writeStream.format("parquet")
        .option("path", target)
        .option("checkpointLocation", f"{target}-checkpoint")
        .trigger(processingTime=f"{TRIGGER_S} seconds")
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()


def _ticks(span_s: float) -> Iterator[None]:
    """One each time that records are due."""
    began_s = time.monotonic()
    for number in range(round(span_s / _TICK_S)):
        time.sleep(max(0.0, began_s + number * _TICK_S - time.monotonic()))
        yield


def _produce(port: int, topic: str, span_s: float) -> None:
    """Write random records of 100 bytes evenly in time, and say how many."""
    each = round(_RATE * _TICK_S) // _PARTITIONS
    count = 0
    with connect(port) as connection:
        for _ in _ticks(span_s):
            now_ms = time.time_ns() // 1_000_000
            for partition in range(_PARTITIONS):
                content = os.urandom(100 * each)
                values: list[bytes | None] = [
                    content[at : at + 100] for at in range(0, len(content), 100)
                ]
                batch = build_batch([now_ms] * each, None, values)
                connection.sendall(produce_request(topic, partition, bytes(batch), 1))
                count += each
            for _ in range(_PARTITIONS):
                receive_frame(connection)
    print(json.dumps({"records": count}))


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "produce":
        _produce(int(given[0]), given[1], float(given[2]))
    else:
        _connect(*given)
