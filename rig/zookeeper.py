"""A real Apache ZooKeeper: one server, or an ensemble, each a process on ports of its own."""

import contextlib
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rig.jars import ZOOKEEPER, class_path, why_unavailable
from rig.java import java
from rig.nodes import properties
from rig.probe import free_port
from rig.process import DiedEarly, Process, start

# Small, so that sessions of a fraction of a second can be had.
TICK_MS = 100
_FLAGS = (
    *("-Xms32m", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
    "-Dzookeeper.forceSync=no",
    # Its client's and its server's words, without a logging library of their own.
    "-Dzookeeper.admin.enableServer=false",
)
_SERVER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SHELL = "org.apache.zookeeper.ZooKeeperMain"


def available() -> str | None:
    """Why ZooKeeper cannot be started here, or None if it can."""
    return why_unavailable(ZOOKEEPER)


@dataclass(slots=True)
class Server:
    """One server of an ensemble; it can be killed, paused and started again."""

    number: int
    folder: Path
    port: int
    host: str = "127.0.0.1"
    # What to put before the command, so that it runs on another host of the rig's.
    prefix: tuple[str, ...] = ()
    # Further flags of Java's.
    flags: tuple[str, ...] = ()
    process: Process | None = None
    paused: bool = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Start it, with the data it had; returns at once."""
        command: list[str | Path] = [*self.prefix, java(), *_FLAGS, *self.flags]
        command += ["-cp", class_path(ZOOKEEPER), _SERVER, self.folder / "zoo.cfg"]
        self.process = start(command, self.folder / "zookeeper.log")
        self.paused = False

    def kill(self) -> None:
        """End it as a crash does."""
        assert self.process is not None
        self.resume()
        self.process.kill()

    def pause(self) -> None:
        """Keep it from running, as a machine that hangs; none of its threads runs any more."""
        assert self.process is not None
        self.process.child.send_signal(signal.SIGSTOP)
        self.paused = True
        tasks = Path(f"/proc/{self.process.pid}/task")
        _wait(lambda: all(_stopped(task) for task in tasks.iterdir()), [self], 180)

    def resume(self) -> None:
        assert self.process is not None
        if self.paused:
            self.process.child.send_signal(signal.SIGCONT)
            self.paused = False

    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None while it does not serve."""
        try:
            with socket.create_connection((self.host, self.port), 5) as connection:
                connection.settimeout(5)
                connection.sendall(b"srvr")
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return None
        for line in answer.decode("utf-8", "replace").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None


@dataclass(slots=True)
class Ensemble:
    """Servers that elect a leader, or a single one."""

    servers: list[Server] = field(default_factory=list)

    @property
    def hosts(self) -> str:
        """`host:port,host:port`, as clients are told."""
        return ",".join(server.address for server in self.servers)

    def leader(self) -> Server:
        """The server that leads, or the only one."""
        return next(s for s in self.servers if s.mode() in ("leader", "standalone"))

    def wait_until_serving(self, timeout_s: float = 180.0) -> None:
        """Wait until every server that runs serves."""
        running = [s for s in self.servers if s.process is not None and s.process.alive()]
        _wait(lambda: all(s.mode() for s in running), running, timeout_s)

    def run_shell(self, *command: str) -> str:
        """What ZooKeeper's own command line client (`zkCli`) prints for one command."""
        shell = start(
            [
                *(java(), *_FLAGS, "-cp", class_path(ZOOKEEPER), _SHELL),
                *("-server", self.hosts, *command),
            ],
            self.servers[0].folder / f"shell-{time.monotonic_ns()}.log",
        )
        if shell.child.wait(180) != 0:
            raise DiedEarly(f"zkCli {' '.join(command)} failed:\n{shell.log_tail()}")
        return shell.log_tail()


@contextlib.contextmanager
def zookeeper(
    size: int = 1,
    *,
    host: str = "127.0.0.1",
    prefix: tuple[str, ...] = (),
    tick_ms: int = TICK_MS,
    settings: Mapping[str, str] | None = None,
    flags: tuple[str, ...] = (),
) -> Iterator[Ensemble]:
    """Start an ensemble of `size` servers with empty data, and stop it at the end.

    They listen on `host`; `prefix` stands before their commands, for hosts of the rig's own.
    `tick_ms` is `tickTime`: they grant no session of less than two ticks. `settings` and `flags`
    (of Java) are added to those of each server.
    """
    home = Path(tempfile.mkdtemp(prefix="rig-zookeeper-"))
    ensemble = Ensemble(_configure(home, size, host, prefix, tick_ms))
    for server in ensemble.servers:
        server.flags = flags
        with (server.folder / "zoo.cfg").open("a") as file:
            file.write(properties(dict(settings or {})))
    try:
        for server in ensemble.servers:
            server.start()
        ensemble.wait_until_serving()
        yield ensemble
    finally:
        for server in ensemble.servers:
            if server.process is not None:
                server.kill()
        shutil.rmtree(home, ignore_errors=True)


def _configure(
    home: Path, size: int, host: str, prefix: tuple[str, ...], tick_ms: int
) -> list[Server]:
    """Write each server's folder and settings."""
    servers = [Server(n, home / str(n), free_port(), host, prefix) for n in range(1, size + 1)]
    members = {
        f"server.{server.number}": f"{host}:{free_port()}:{free_port()}" for server in servers
    }
    for server in servers:
        (server.folder / "data").mkdir(parents=True)
        (server.folder / "data" / "myid").write_text(str(server.number))
        settings = {
            "tickTime": str(tick_ms),
            "initLimit": "100",
            "syncLimit": "20",
            "dataDir": str(server.folder / "data"),
            "clientPort": str(server.port),
            "clientPortAddress": host,
            "maxClientCnxns": "0",
            "maxSessionTimeout": "60000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            **(members if size > 1 else {}),
        }
        (server.folder / "zoo.cfg").write_text(properties(settings))
    return servers


def _stopped(task: Path) -> bool:
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def _wait(done: Callable[[], bool], servers: list[Server], timeout_s: float) -> None:
    deadline_s = time.perf_counter() + timeout_s
    while not done():
        for server in servers:
            assert server.process is not None
            if not server.process.alive():
                raise DiedEarly(f"ZooKeeper ended:\n{server.process.log_tail()}")
        if time.perf_counter() > deadline_s:
            raise DiedEarly(f"no ZooKeeper after {timeout_s:.0f} s")
        time.sleep(0.02)
