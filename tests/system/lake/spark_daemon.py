"""Daemons of Spark for tests: a master, a worker, a Connect server."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def wait_for(port: int, started: subprocess.Popen[bytes], log: Path) -> None:
    """Until something listens there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert started.poll() is None, log.read_text()[-2000:]
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


@contextmanager
def started(folder: Path, name: str, words: list[str], port: int, **more: str) -> Iterator[None]:
    """A daemon of Spark, until the context ends."""
    log = folder / f"{name}.log"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_PYTHON", "PYTHONPATH")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *words],
            env=environment | {"SPARK_HOME": str(SPARK_HOME)} | more,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait(60)
