"""Ottla as a process of its own, beside which a test or a measurement stands."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from rig import trees
from rig.nodes import Node, properties
from rig.probe import free_port, wait_until_serving
from rig.process import Process, start
from rig.secret_search import SEARCH


def settings_of(folder: Path, port: int) -> dict[str, str]:
    """The same single node as `rig.kafka` starts, under the same names."""
    return {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "logs"),
        "num.partitions": "1",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.segment.delete.delay.ms": "500",
    }


def launch(
    folder: Path,
    port: int,
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    source: Path | None = None,
) -> Process:
    """Start a broker without waiting for it: for tests of how it refuses, or how fast it starts.

    `source`: the `src` of another tree.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "server.properties"
    file.write_text(properties({**settings_of(folder, port), **(settings or {})}))
    SEARCH.register_settings(settings or {})
    SEARCH.watch(folder)
    return start(trees.broker(source, file), folder / "ottla.log", env=env)


@contextlib.contextmanager
def ottla(
    *,
    settings: Mapping[str, str] | None = None,
    folder: Path | None = None,
    port: int | None = None,
    env: Mapping[str, str] | None = None,
    source: Path | None = None,
    name: str = "ottla",
) -> Iterator[Node]:
    """Start a broker and stop it at the end.

    A `folder` given by the caller is kept, and a second start in it finds its data.
    """
    home = folder or Path(tempfile.mkdtemp(prefix="rig-ottla-"))
    chosen = port or free_port()
    process = launch(home, chosen, settings, env, source)
    try:
        ready_s = wait_until_serving(process, chosen)
        yield Node(name, process, chosen, home, ready_s)
    finally:
        process.terminate()
        SEARCH.leave(home)
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)
