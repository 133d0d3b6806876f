"""S3Proxy: a server of S3's API that honours conditional writes, as a process of its own.

Real S3 clients talk to it as they do to Amazon's: signatures, listing pages, multipart uploads.
"""

import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.jars import S3PROXY, class_path, why_unavailable
from rig.java import java
from rig.nodes import properties
from rig.probe import free_port
from rig.process import DiedEarly, Process, start

KEY, SECRET, REGION = "rig", "rig-secret", "us-east-1"
_FLAGS = ("-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_MAIN = "org.gaul.s3proxy.Main"
_LOGGING = """<configuration>
<appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %level %logger %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


def available() -> str | None:
    """Why S3Proxy cannot be started here, or None if it can."""
    return why_unavailable(S3PROXY)


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that serves, with one bucket or more."""

    port: int
    folder: Path
    process: Process
    host: str = "127.0.0.1"

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """What clients take their credentials from."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }


@contextlib.contextmanager
def s3(*buckets: str, signed: bool = True, host: str = "127.0.0.1") -> Iterator[S3Server]:
    """Start a server with `buckets`, and stop it at the end. It checks signatures if `signed`.

    `host`: the address of this machine on which it listens.
    """
    home = Path(tempfile.mkdtemp(prefix="rig-s3-"))
    port = free_port()
    for bucket in buckets:
        (home / "data" / bucket).mkdir(parents=True)
    settings = {
        "s3proxy.endpoint": f"http://{host}:{port}",
        "s3proxy.authorization": "aws-v2-or-v4" if signed else "none",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": KEY,
        "jclouds.credential": SECRET,
        "jclouds.filesystem.basedir": str(home / "data"),
    }
    (home / "s3proxy.conf").write_text(properties(settings))
    (home / "logback.xml").write_text(_LOGGING)
    logging = f"-Dlogback.configurationFile={home}/logback.xml"
    command: list[str | Path] = [java(), *_FLAGS, logging, "-cp", class_path(S3PROXY), _MAIN]
    process = start([*command, "--properties", home / "s3proxy.conf"], home / "s3proxy.log")
    try:
        _wait_until_serving(process, host, port)
        yield S3Server(port, home, process, host)
    finally:
        process.kill()
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_serving(process: Process, host: str, port: int, timeout_s: float = 180.0) -> None:
    deadline_s = time.perf_counter() + timeout_s
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 5):
            return
        if not process.alive() or time.perf_counter() > deadline_s:
            raise DiedEarly(f"S3Proxy does not serve:\n{process.log_tail()}")
        time.sleep(0.05)
