"""From the command to the first record on three brokers: `ottla start --brokers 3`, and Kafka.

Ottla begins with an empty folder, Kafka with formatted ones. The topic is made on demand as soon
as three brokers are there, and a record is sent by hand-made frames with acks=all: no client's
own start-up counts.
"""

import contextlib
import shutil
import socket
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import AT_MOST, Figure, Scale, spread
from rig import kafka as kafka_rig
from rig import metadata
from rig.clusters import free_ports
from rig.frames import batch, error_position, produce_request
from rig.kafka_cluster import prepare
from rig.ottla_cluster import SIZE, launch
from rig.probe import connect, receive_frame
from rig.process import DiedEarly

_TOPIC = "first"
_NOT_READY = {3, 5, 6, 19}  # unknown, no leader yet, not the leader, too few in sync
_POLL_S = 0.005
_PATIENCE_S = 60.0


def measure(scale: Scale) -> list[Figure]:
    ours = [_ottla_once() for _ in range(scale.rounds + 1)][1:]
    name = "3 brokers up and the first acks=all record"
    figures = [Figure(name, statistics.median(ours), "s", AT_MOST, 1.5, spread(ours))]
    if kafka_rig.available() is None:
        theirs = [_kafka_once() for _ in range(2)]
        figures.append(Figure("the same for Kafka", min(theirs), "s", note=spread(theirs)))
    return figures


def _ottla_once() -> float:
    home = Path(tempfile.mkdtemp(prefix="bench-start-"))
    port = free_ports(SIZE)
    settings = {"num.partitions": "1", "min.insync.replicas": "2"}
    process = launch(home, port, settings)
    try:
        first_acknowledged(port, process.alive)
        return time.perf_counter() - process.started_s
    except DiedEarly as error:
        raise DiedEarly(f"{error}\n{process.log_tail()}") from error
    finally:
        process.terminate()
        shutil.rmtree(home, ignore_errors=True)


def _kafka_once() -> float:
    home = Path(tempfile.mkdtemp(prefix="bench-start-"))
    cluster = prepare(home)
    began_s = time.perf_counter()
    try:
        for member in cluster.members.values():
            member.start()
        first_acknowledged(
            cluster.members[1].port, lambda: len(cluster.running) == len(cluster.members)
        )
        return time.perf_counter() - began_s
    finally:
        cluster.stop()
        shutil.rmtree(home, ignore_errors=True)


def first_acknowledged(port: int, alive: Callable[[], bool]) -> None:
    """Return as soon as a record to a topic of three replicas is acknowledged, acks=all."""
    deadline_s = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < deadline_s and alive():
        with contextlib.suppress(OSError), connect(port, 5.0) as connection:
            while time.perf_counter() < deadline_s:
                leader = _leader_port(connection)
                if leader is not None and _produce(leader):
                    return
                time.sleep(_POLL_S)
        time.sleep(_POLL_S)
    raise DiedEarly("no record was acknowledged")


def _leader_port(connection: socket.socket) -> int | None:
    """Where the topic's leader serves; None while brokers are missing, or the leader is."""
    seen = metadata.ask(connection, [])
    if len(seen.ports) < SIZE:
        return None
    seen = metadata.ask(connection, [_TOPIC])
    partition = seen.topics.get(_TOPIC, {}).get(0)
    if partition is None or partition.error:
        return None
    assert len(partition.replicas) == SIZE
    return seen.ports.get(partition.leader)


def _produce(port: int) -> bool:
    request = produce_request(_TOPIC, 0, batch(1, 100, int(time.time() * 1000)).data, -1)
    with connect(port, 5.0) as connection:
        connection.sendall(request)
        answer = receive_frame(connection)
    (error,) = struct.unpack_from(">h", answer, error_position(_TOPIC) - 4)
    if error and error not in _NOT_READY:
        raise RuntimeError(f"produce was answered with error {error}")
    return bool(error == 0)
