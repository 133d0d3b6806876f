"""From the command to the first acknowledged record: `ottla start` on an empty folder, and Kafka.

The record is produced by hand-made frames, so that no client's own start-up counts. Kafka's
storage is formatted beforehand, which Ottla does inside the measured time.
"""

import shutil
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import AT_MOST, Figure, Scale, spread
from rig import kafka as kafka_rig
from rig.frames import batch, error_position, produce_request
from rig.jars import KAFKA, class_path
from rig.java import java
from rig.nodes import properties
from rig.probe import connect, free_port, receive_frame, request_frame
from rig.process import DiedEarly, Process, start

_METADATA = 3
_TOPIC = "first"
_NOT_READY = {3, 5, 6}  # unknown topic or partition, leader not available, not the leader


def measure(scale: Scale) -> list[Figure]:
    rounds = scale.rounds
    ours = [_ottla_once() for _ in range(rounds + 1)][1:]
    median_ms = statistics.median(ours)
    figures = [Figure("cold start to first record", median_ms, "ms", AT_MOST, 500, spread(ours))]
    if kafka_rig.available() is None:
        theirs = [_kafka_once() for _ in range(2)]
        figures.append(Figure("the same for Kafka", min(theirs), "ms", note=spread(theirs)))
    return figures


def _ottla_once() -> float:
    home = Path(tempfile.mkdtemp(prefix="bench-start-"))
    port = free_port()
    ottla = Path(sys.executable).parent / "ottla"
    process = start(
        [ottla, "start", "--data", home / "data", "--port", str(port)], home / "ottla.log"
    )
    return _finish(process, port, home)


def _kafka_once() -> float:
    home = Path(tempfile.mkdtemp(prefix="bench-start-"))
    port = free_port()
    file = home / "server.properties"
    file.write_text(properties(kafka_rig.settings_of(home, port, free_port())))
    kafka_rig.format_storage(file, home / "logs")
    process = start(
        [java(), "-Xms1g", "-Xmx1g", "-cp", class_path(KAFKA), "kafka.Kafka", file],
        home / "kafka.log",
    )
    return _finish(process, port, home)


def _finish(process: Process, port: int, home: Path) -> float:
    try:
        first_acknowledged(process, port)
        return (time.perf_counter() - process.started_s) * 1000
    finally:
        process.terminate()
        shutil.rmtree(home, ignore_errors=True)


def first_acknowledged(process: Process, port: int, timeout_s: float = 30.0) -> None:
    """Return as soon as the broker acknowledged one record to a topic made on demand, acks=all."""
    name = _TOPIC.encode()
    metadata = request_frame(_METADATA, 1, struct.pack(">ih", 1, len(name)) + name)
    produce = produce_request(_TOPIC, 0, batch(1, 100, int(time.time() * 1000)).data, -1)
    at = error_position(_TOPIC) - 4
    deadline_s = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline_s and process.alive():
        try:
            with connect(port) as connection:
                while time.perf_counter() < deadline_s:
                    connection.sendall(metadata)
                    receive_frame(connection)
                    connection.sendall(produce)
                    (error,) = struct.unpack_from(">h", receive_frame(connection), at)
                    if error == 0:
                        return
                    if error not in _NOT_READY:
                        raise RuntimeError(f"produce was answered with error {error}")
                    time.sleep(0.002)
        except OSError:
            time.sleep(0.002)
    raise DiedEarly(f"no record was acknowledged:\n{process.log_tail()}")
