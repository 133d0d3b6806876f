"""Three nodes of a real Apache Kafka (KRaft), each broker and controller in one process."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from rig.clusters import Cluster, Member
from rig.jars import KAFKA, class_path
from rig.java import java
from rig.kafka import HEAP, QUICK, format_storage, settings_of
from rig.nodes import properties
from rig.probe import free_port

SIZE = 3
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


def prepare(
    home: Path, settings: Mapping[str, str] | None = None, *, quick: bool = False
) -> Cluster:
    """Three formatted nodes that do not run yet. The heap is Kafka's own default, 1 GiB."""
    ports = {number: (free_port(), free_port()) for number in range(1, SIZE + 1)}
    voters = ",".join(f"{number}@127.0.0.1:{ports[number][1]}" for number in ports)
    cluster = Cluster("kafka")
    for number, (port, controller_port) in ports.items():
        folder = home / str(number)
        folder.mkdir(parents=True)
        chosen = {
            **settings_of(folder, port, controller_port),
            "node.id": str(number),
            "controller.quorum.voters": voters,
            **_REPLICATED,
            **(settings or {}),
        }
        file = folder / "server.properties"
        file.write_text(properties(chosen))
        format_storage(file, folder / "logs", number)
        command: list[str | Path] = [java(), *HEAP, *(QUICK if quick else ())]
        command += ["-cp", class_path(KAFKA), "kafka.Kafka", file]
        cluster.members[number] = Member(number, port, folder, folder / "logs", command)
    return cluster


@contextlib.contextmanager
def kafka_cluster(
    settings: Mapping[str, str] | None = None, *, quick: bool = False
) -> Iterator[Cluster]:
    """Start the nodes, and end them at the end; `quick` as `rig.kafka` has it."""
    home = Path(tempfile.mkdtemp(prefix="rig-kafka-"))
    cluster = Cluster("kafka")
    try:
        cluster = prepare(home, settings, quick=quick)
        for member in cluster.members.values():
            member.start()
        cluster.wait_until_formed()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(home, ignore_errors=True)
