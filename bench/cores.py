"""One process on each core: what `--cores 2` carries against `--cores 1`, and `--cores 4` besides.

A thousand connections of one topic with 16 partitions, five Produce requests of 8 KiB in flight
on each, acks=1, flush policy `os`; the files are in memory, because one disk is no part of a core.

The generator works elsewhere in time. It stops the brokers (SIGSTOP), sends what is in flight into
the sockets, and lets the brokers continue; a burst lasts until the last answer is there. Meanwhile
the generator sleeps in the kernel. The CPU that it still takes, to collect the answers, is
subtracted from the burst, divided among the cores of this machine.
"""

import contextlib
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.figures import AT_MOST, Figure, Scale, number, spread
from bench.load import connected, first_answer
from rig import accounts
from rig.clusters import free_ports
from rig.frames import batch, error_position, produce_request
from rig.process import DiedEarly, start
from rig.topics import wait_for_leaders

_CORES = (1, 2, 4)
_CONNECTIONS = 1000
_PARTITIONS = 16
_IN_FLIGHT = 5
_BATCH_BYTES = 8192
_MEMORY = "/dev/shm"
# A broker that is stopped must not be taken for dead.
_SETTINGS = {
    "log.flush.policy": "os",
    "broker.session.timeout.ms": "60000",
    "log.segment.delete.delay.ms": "500",
}


@dataclass(slots=True)
class Unit:
    """The brokers of one command, and the results of its rounds."""

    cores: int
    port: int
    brokers: list[int]
    results: list[dict[str, float]] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        return sum(map(accounts.cpu_seconds, self.brokers))

    def signal(self, number: signal.Signals) -> None:
        for pid in self.brokers:
            os.kill(pid, number)

    def stop(self) -> None:
        """Stop all brokers, and return when each has stopped."""
        self.signal(signal.SIGSTOP)
        for pid in self.brokers:
            while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.0001)


def measure(scale: Scale) -> list[Figure]:
    bursts = scale.pick(20, 2)
    with contextlib.ExitStack() as stack:
        units = [stack.enter_context(_unit(cores)) for cores in _CORES]
        for round_number in range(scale.warm_up_rounds + scale.rounds):
            # In alternating order, so that a slow minute of the machine meets all sides.
            for unit in units if round_number % 2 else units[::-1]:
                result = _round(unit, bursts)
                if round_number >= scale.warm_up_rounds:
                    unit.results.append(result)
        memory = [accounts.proportional_bytes(pid) / 1e6 for pid in units[1].brokers]
    one, two, four = units
    return [
        _against(one, two, "records/CPU s", "records per CPU second", 0.95),
        _against(one, two, "records/s", "records per second, generator elsewhere in time", 1.7),
        _against(one, four, "records/CPU s", "records per CPU second", None),
        Figure(
            "memory of a process of --cores 2 (shared pages divided)",
            max(memory),
            "MB",
            AT_MOST,
            60,
            "; ".join(map(number, memory)),
        ),
    ]


@contextlib.contextmanager
def _unit(cores: int) -> Iterator[Unit]:
    """Start the command; nothing of it is left at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-cores-", dir=_MEMORY) as folder:
        port = free_ports(cores)
        command: list[str | Path] = [Path(sys.executable).parent / "ottla", "start"]
        command += ["--cores", str(cores), "--port", str(port), "--data", Path(folder) / "data"]
        for name, value in _SETTINGS.items():
            command += ["--set", f"{name}={value}"]
        process = start(command, Path(folder) / "log")
        try:
            deadline_s = time.monotonic() + 90
            while " on 127.0.0.1" not in process.log_tail():
                if not process.alive() or time.monotonic() > deadline_s:
                    raise DiedEarly(f"no {cores} brokers:\n{process.log_tail()}")
                time.sleep(0.01)
            yield Unit(cores, port, accounts.children(process.pid))
        finally:
            process.terminate()


def _round(unit: Unit, bursts: int) -> dict[str, float]:
    """So many bursts to a new topic, which is deleted afterwards."""
    admin = AdminClient({"bootstrap.servers": unit.bootstrap, "log_level": 0})
    topic = f"bench-{time.monotonic_ns()}"
    admin.create_topics([NewTopic(topic, _PARTITIONS, 1)])[topic].result(60)
    wait_for_leaders(admin, topic, _PARTITIONS)
    made = batch(_BATCH_BYTES, 100, int(time.time() * 1000))
    requests = [produce_request(topic, each, made.data, 1) for each in range(_PARTITIONS)]
    metadata = admin.list_topics(topic)
    ports = [
        metadata.brokers[metadata.topics[topic].partitions[each].leader].port
        for each in range(_PARTITIONS)
    ]
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(connected(ports[each % _PARTITIONS]))
            for each in range(_CONNECTIONS)
        ]
        sizes = [
            first_answer(connection, requests[each % _PARTITIONS], topic)
            for each, connection in enumerate(connections)
        ]
        for connection in connections:
            connection.settimeout(None)  # Else the kernel does not wait for all answers.
        several = [request * _IN_FLIGHT for request in requests]
        _burst(unit, connections, several, sizes, topic)
        cpu_s = unit.cpu_s()
        took = [_burst(unit, connections, several, sizes, topic) for _ in range(bursts)]
        cpu_s = unit.cpu_s() - cpu_s
    admin.delete_topics([topic])[topic].result(60)
    time.sleep(1.0)  # The files go half a second later.
    records = bursts * _CONNECTIONS * _IN_FLIGHT * made.records
    wall_s, generator_s = (sum(column) for column in zip(*took, strict=True))
    result = {
        "records/s": records / (wall_s - generator_s / (os.cpu_count() or 1)),
        "records/CPU s": records / cpu_s,
    }
    print(
        f"   --cores {unit.cores}  {result['records/s']:>11,.0f} records/s  "
        f"{result['records/CPU s']:>11,.0f} records/CPU s  ({wall_s:.2f} s, brokers' CPU "
        f"{cpu_s:.2f} s, generator's {generator_s:.2f} s)",
        flush=True,
    )
    return result


def _burst(
    unit: Unit,
    connections: Sequence[socket.socket],
    several: Sequence[bytes],
    sizes: Sequence[int],
    topic: str,
) -> tuple[float, float]:
    """Seconds from the continuation of the brokers to the last answer, and the generator's CPU."""
    unit.stop()
    for each, connection in enumerate(connections):
        connection.sendall(several[each % _PARTITIONS])
    error_at = error_position(topic)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    unit.signal(signal.SIGCONT)
    answers = [
        connection.recv(size * _IN_FLIGHT, socket.MSG_WAITALL)
        for connection, size in zip(connections, sizes, strict=True)
    ]
    result = time.perf_counter() - began_s, time.process_time() - cpu_s
    for answer, size in zip(answers, sizes, strict=True):
        for at in range(0, size * _IN_FLIGHT, size):
            if answer[at + error_at : at + error_at + 2] != b"\0\0":
                raise ValueError(f"a broker answered with {answer[at : at + size]!r}")
    return result


def _against(one: Unit, other: Unit, key: str, what: str, bound: float | None) -> Figure:
    """The median of `other` over that of one process."""
    ours, theirs = ([result[key] for result in unit.results] for unit in (other, one))
    details: dict[str, Any] = {f"cores {other.cores}": ours, f"cores {one.cores}": theirs}
    return Figure(
        f"--cores {other.cores}: {what}",
        statistics.median(ours) / statistics.median(theirs),
        "× one process",
        bound=bound,
        note=f"{spread(ours)}; one process {spread(theirs)}",
        details=details,
    )
