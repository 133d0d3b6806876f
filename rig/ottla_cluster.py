"""Three Ottla brokers as `ottla start --brokers 3` makes them: a process each, one SQLite store."""

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rig import accounts, trees
from rig.clusters import Cluster, Member, free_ports
from rig.process import DiedEarly, Process, start
from rig.secret_search import SEARCH

SIZE = 3
# As `rig.kafka_cluster` has them.
SETTINGS = {
    "offsets.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "500",
}


def launch(
    home: Path, port: int, settings: Mapping[str, str] | None = None, source: Path | None = None
) -> Process:
    """Run the command without waiting for it: brokers on `port` and the next ones.

    `source`: the `src` of another tree.
    """
    command: list[str | Path] = [Path(sys.executable).parent / "ottla", "start"]
    if source is not None:
        command = [*trees.python(source), "-m", "ottla.cli", "start"]
    command += ["--brokers", str(SIZE), "--port", str(port), "--data", home / "data"]
    for name, value in {**SETTINGS, **(settings or {})}.items():
        command += ["--set", f"{name}={value}"]
    SEARCH.register_settings(settings or {})
    return start(command, home / "broker.log")


@contextlib.contextmanager
def ottla_cluster(
    settings: Mapping[str, str] | None = None,
    folder: Path | None = None,
    *,
    source: Path | None = None,
    name: str = "ottla",
) -> Iterator[Cluster]:
    """Start the command, and end all its brokers at the end.

    A broker that was killed is started again by itself, as the command advises. A `folder` given
    by the caller is kept.
    """
    home = folder or Path(tempfile.mkdtemp(prefix="rig-ottla-"))
    port = free_ports(SIZE)
    parent = launch(home, port, settings, source)
    cluster = Cluster(name)
    try:
        for number, pid in enumerate(_brokers_of(parent), start=1):
            logs = home / "data" / f"broker-{number}"
            file = logs.with_suffix(".properties")
            again = trees.broker(source, file)
            cluster.members[number] = Member(number, port + number - 1, home, logs, again, pid)
        cluster.wait_until_formed()
        yield cluster
    finally:
        cluster.stop()
        parent.terminate()
        SEARCH.leave(home)
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)


def _brokers_of(parent: Process) -> list[int]:
    """The brokers' processes, in order. Raises DiedEarly where they do not come to be."""
    deadline_s = time.perf_counter() + 90
    while parent.alive() and time.perf_counter() < deadline_s:
        found = accounts.children(parent.pid)
        if len(found) == SIZE:
            return found
        time.sleep(0.01)
    raise DiedEarly(f"no {SIZE} brokers:\n{parent.log_tail()}")
