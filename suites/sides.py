"""The brokers of either side: clusters of three, or a single one on a port of the suite's."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from rig.broker import ottla
from rig.kafka import kafka
from rig.kafka_cluster import kafka_cluster
from rig.ottla_cluster import ottla_cluster
from rig.paths import OUT
from rig.probe import free_port
from suites.suite import Side, Suite

SIDES = ("ottla", "kafka")


@contextlib.contextmanager
def side(name: str, suite: Suite) -> Iterator[Side]:
    """Start what the suite wants, and end it at the end. The brokers' logs are kept in out/."""
    folder = OUT / "suites" / suite.name / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        if suite.brokers == 1:
            yield Side(name, (stack.enter_context(_one(name, suite, folder / "broker")),), folder)
            return
        three = ottla_cluster if name == "ottla" else kafka_cluster
        clusters = [stack.enter_context(three(suite.settings)) for _ in range(suite.clusters)]
        try:
            yield Side(name, tuple(cluster.bootstrap for cluster in clusters), folder)
        finally:
            for index, cluster in enumerate(clusters):
                # Brokers that one command started write one log.
                logs = sorted({member.log for member in cluster.members.values()})
                for number, log in enumerate(logs, start=1):
                    shutil.copyfile(log, folder / f"cluster-{index}-log-{number}.log")


@contextlib.contextmanager
def _one(name: str, suite: Suite, folder: Path) -> Iterator[str]:
    """A single broker, as `localhost`: the name that tests with an address built in expect."""
    port = suite.port or free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://localhost:{port}", **suite.settings}
    start = ottla if name == "ottla" else kafka
    try:
        with start(settings=settings, port=port, folder=folder) as node:
            yield f"localhost:{node.port}"
    finally:
        # The data goes, the log stays.
        shutil.rmtree(folder / "logs", ignore_errors=True)
