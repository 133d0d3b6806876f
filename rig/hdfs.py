"""Hadoop's file system: a name node and a data node in one process, with WebHDFS."""

import contextlib
import json
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.jars import HADOOP, class_path, why_unavailable
from rig.java import java
from rig.probe import free_port
from rig.process import DiedEarly, Process, start

_FLAGS = ("-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"


def available() -> str | None:
    """Why Hadoop cannot be started here, or None if it can."""
    return why_unavailable(HADOOP)


@dataclass(frozen=True, slots=True)
class HdfsCluster:
    """A name node that serves, with one data node."""

    port: int
    process: Process

    @property
    def url(self) -> str:
        return f"webhdfs://127.0.0.1:{self.port}"


@contextlib.contextmanager
def hdfs() -> Iterator[HdfsCluster]:
    """Start a cluster with an empty file system, and stop it at the end."""
    home = Path(tempfile.mkdtemp(prefix="rig-hdfs-"))
    port = free_port()
    command: list[str | Path] = [
        *(java(), *_FLAGS, f"-Dtest.build.data={home}/data", "-cp", class_path(HADOOP), _MAIN),
        *("-format", "-datanodes", "1", "-nnport", str(free_port()), "-httpport", str(port)),
    ]
    process = start(command, home / "hdfs.log", cwd=home)
    try:
        _wait_until_serving(process, port)
        yield HdfsCluster(port, process)
    finally:
        process.kill()
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_serving(process: Process, port: int, timeout_s: float = 180.0) -> None:
    """Wait until the name node knows a data node."""
    deadline_s = time.perf_counter() + timeout_s
    beans = f"http://127.0.0.1:{port}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    while True:
        with (
            contextlib.suppress(OSError, urllib.error.URLError, KeyError, IndexError),
            urllib.request.urlopen(beans, timeout=5) as answer,
        ):
            if json.load(answer)["beans"][0]["NumLiveDataNodes"] > 0:
                return
        if not process.alive() or time.perf_counter() > deadline_s:
            raise DiedEarly(f"Hadoop does not serve:\n{process.log_tail()}")
        time.sleep(0.1)
