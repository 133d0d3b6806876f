"""Kafka Connect, distributed: a file goes into a topic and out into another file.

Two workers share the connectors. One worker is killed in between, and the other takes over: the
sink may write a line twice then, and may lose none.
"""

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from rig.jars import KAFKA_VERSION
from rig.probe import free_port
from rig.process import Process
from suites import java, topics
from suites.result import Result
from suites.suite import Side, Suite, timed

_WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
_PATIENCE_S = 180.0
_LINES = 2000


def _worker(side: Side, number: int, exactly_once: bool) -> tuple[Process, int]:
    port = free_port()
    file = side.folder / f"worker-{number}.properties"
    file.write_text(
        f"bootstrap.servers={side.bootstrap}\n"
        "group.id=connect\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "offset.storage.topic=connect-offsets\noffset.storage.replication.factor=3\n"
        "config.storage.topic=connect-configs\nconfig.storage.replication.factor=3\n"
        "status.storage.topic=connect-status\nstatus.storage.replication.factor=3\n"
        "offset.flush.interval.ms=1000\n"
        "scheduled.rebalance.max.delay.ms=1000\n"
        f"exactly.once.source.support={'enabled' if exactly_once else 'disabled'}\n"
        f"listeners=http://127.0.0.1:{port}\n"
        "plugin.discovery=service_load\n"
    )
    return java.begin(side.folder, f"worker-{number}", _WORKER, file, heap="512m"), port


def _call(port: int, method: str, path: str, body: object = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def _started(port: int) -> str | None:
    return _until(lambda: isinstance(_call(port, "GET", "/connectors"), list), "the worker serves")


def _until(condition: Any, what: str) -> str | None:
    """None once `condition` holds; else what did not come to be."""
    deadline_s = time.monotonic() + _PATIENCE_S
    last = ""
    while time.monotonic() < deadline_s:
        try:
            if condition():
                return None
        except OSError as error:
            last = str(error)
        time.sleep(0.3)
    return f"after {_PATIENCE_S:.0f} s not so: {what} {last}"


def _running(port: int, name: str) -> bool:
    status = _call(port, "GET", f"/connectors/{name}/status")
    tasks = status["tasks"]
    return bool(tasks) and all(task["state"] == "RUNNING" for task in tasks)


def _configured(port: int, source: Path, target: Path) -> str | None:
    _call(
        port,
        "PUT",
        "/connectors/source/config",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(source),
            "topic": "lines",
            "tasks.max": "1",
        },
    )
    _call(
        port,
        "PUT",
        "/connectors/sink/config",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "file": str(target),
            "topics": "lines",
            "tasks.max": "2",
        },
    )
    return _until(
        lambda: _running(port, "source") and _running(port, "sink"), "both connectors run"
    )


def _append(source: Path, first: int) -> None:
    with source.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(first, first + _LINES))


def _arrived(target: Path, count: int) -> str | None:
    expected = {f"line {number}" for number in range(count)}
    return _until(
        lambda: target.exists() and expected <= set(target.read_text().splitlines()),
        f"all {count} lines in the sink's file",
    )


def _offsets(port: int) -> str | None:
    """The offsets of a stopped connector can be read, reset, and are committed as a group's."""
    _call(port, "PUT", "/connectors/sink/stop")
    stopped = _until(
        lambda: _call(port, "GET", "/connectors/sink/status")["connector"]["state"] == "STOPPED",
        "the sink has stopped",
    )
    if stopped:
        return stopped
    read = _call(port, "GET", "/connectors/sink/offsets")["offsets"]
    total = sum(each["offset"]["kafka_offset"] for each in read)
    # Transactions of the source leave markers between the lines, which have offsets, too.
    if total < 2 * _LINES:
        return f"committed offsets sum to {total}"
    _call(port, "DELETE", "/connectors/sink/offsets")
    left = _call(port, "GET", "/connectors/sink/offsets")["offsets"]
    return f"offsets after the reset: {left}" if left else None


def _run(side: Side) -> list[Result]:
    source, target = side.folder / "source.txt", side.folder / "target.txt"
    _append(source, 0)
    topics.create(side.bootstrap, "lines", partitions=2)
    workers = [_worker(side, number, exactly_once=True) for number in range(2)]
    (first, first_port), (_, second_port) = workers
    results = []

    def take_over() -> str | None:
        first.kill()
        _append(source, _LINES)
        return _arrived(target, 2 * _LINES)

    try:
        for name, check in (
            ("two workers form a group", lambda: _started(first_port) or _started(second_port)),
            ("file source and sink run", lambda: _configured(second_port, source, target)),
            ("every line arrives", lambda: _arrived(target, _LINES)),
            ("a worker is killed, the other goes on", take_over),
            ("offsets of the sink are read and reset", lambda: _offsets(second_port)),
        ):
            results.append(timed(name, check))
    finally:
        for process, _ in workers:
            process.kill()
    return results


SUITE = Suite(
    name="connect",
    title="Kafka Connect: file source (exactly once) and file sink, two workers",
    source=f"Maven: org.apache.kafka:connect-runtime and connect-file:{KAFKA_VERSION}",
    needs=("java",),
    fetch=java.fetch,
    run=_run,
)
