"""A real Apache Kafka: one node, broker and controller in one process, on ports of its own."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rig.jars import KAFKA, class_path, why_unavailable
from rig.java import java
from rig.nodes import Node, properties
from rig.paths import RIG
from rig.probe import free_port, wait_until_serving
from rig.process import DiedEarly, start

CLUSTER_ID = "b3R0bGFfcmlnX2thZmthMQ"
_TEMPLATE = RIG / "formatted"
HEAP = ("-Xms1g", "-Xmx1g")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def available() -> str | None:
    """Why Kafka cannot be started here, or None if it can."""
    return why_unavailable(KAFKA)


def settings_of(folder: Path, port: int, controller_port: int) -> dict[str, str]:
    """A single node as small clusters run it: everything replicated once, no waiting for others."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.segment.delete.delay.ms": "500",
    }


def format_storage(properties_file: Path, logs: Path, node_id: int = 1) -> None:
    """Give the node its identity: copied from a folder formatted once, for a JVM costs seconds."""
    template = _TEMPLATE if node_id == 1 else _TEMPLATE.with_name(f"{_TEMPLATE.name}-{node_id}")
    if not (template / "meta.properties").exists():
        command: list[str | Path] = [
            java(),
            *QUICK,
            "-cp",
            class_path(KAFKA),
            "kafka.tools.StorageTool",
        ]
        command += ["format", "-t", CLUSTER_ID, "-c", properties_file]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise DiedEarly(f"Kafka's storage tool failed:\n{done.stdout}{done.stderr}")
        shutil.rmtree(template, ignore_errors=True)
        shutil.copytree(logs, template)
    else:
        shutil.copytree(template, logs, dirs_exist_ok=True)


@contextlib.contextmanager
def kafka(
    *,
    settings: Mapping[str, str] | None = None,
    folder: Path | None = None,
    port: int | None = None,
    quick: bool = False,
    java_options: Sequence[str] = (),
) -> Iterator[Node]:
    """Start Kafka and stop it at the end; `quick` trades its full speed for an early start.

    A `folder` given by the caller is kept, and a second start in it finds its data.
    """
    own = folder is None
    home = folder or Path(tempfile.mkdtemp(prefix="rig-kafka-"))
    home.mkdir(parents=True, exist_ok=True)
    own_port = port or free_port()
    chosen = {**settings_of(home, own_port, free_port()), **(settings or {})}
    file = home / "server.properties"
    file.write_text(properties(chosen))
    if not (home / "logs" / "meta.properties").exists():
        format_storage(file, home / "logs")
    flags = QUICK if quick else ()
    process = start(
        [java(), *HEAP, *flags, *java_options, "-cp", class_path(KAFKA), "kafka.Kafka", file],
        home / "kafka.log",
    )
    try:
        ready_s = wait_until_serving(process, own_port)
        yield Node("kafka", process, own_port, home, ready_s)
    finally:
        process.terminate()
        if own:
            shutil.rmtree(home, ignore_errors=True)
