"""A standalone Spark cluster: a master on this machine, and each worker on a host of its own.

The programs are those of the installed pyspark. A worker has one core, and so do its executors,
which run on its host and in its environment.
"""

import contextlib
import importlib.util
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rig.java import NoJava, java_home
from rig.probe import free_port
from rig.process import DiedEarly, Process, start

_DAEMON = "-Xms32m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_EXECUTOR = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PATIENCE_S = 180.0
# In a view of the mounts that only this program and its children have; folders are made there.
_PRIVATE_DISK = 'mount -t tmpfs none "$0" && mkdir -p "$1" && shift && exec "$@"'
# A session of Spark needs none of these, and a worker elsewhere would not have them.
_NOT_ON_WORKERS = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")


_EXECUTORS = "CoarseGrainedExecutorBackend"


class Network(Protocol):
    """Hosts that reach each other and this machine."""

    @property
    def here(self) -> str:
        """The address of this machine."""

    def address(self, name: str) -> str:
        """The address of a host."""

    def inside(self, name: str) -> list[str]:
        """What to put before a command so that it runs on a host; it keeps its process id."""


class SparkCluster:
    """A master that runs, and the workers that were started. `close` ends all of them."""

    def __init__(
        self, network: Network, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the master. `environment` is what workers, and so executors, have besides ours."""
        self._network = network
        self._folder = folder
        self._spark = _spark_home()
        self._environment = {
            **dict.fromkeys(_NOT_ON_WORKERS, ""),
            **(environment or {}),
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(self._spark),
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": _DAEMON,
            "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        }
        self._workers: dict[str, Process] = {}
        self._settings: dict[str, str] = {}
        self._starts = 0
        port = free_port()
        self.url = f"spark://{network.here}:{port}"
        words = ["Master", "--host", network.here, "--port", str(port), "--webui-port", "0"]
        self._master = self._start(words, "master")
        try:
            _wait_for_line(self._master, "New state: ALIVE")
        except DiedEarly:
            self.close()
            raise

    def options(self) -> list[str]:
        """What commands of ottla need to run here: the master, and a driver that workers reach."""
        settings = {
            "spark.driver.host": self._network.here,
            "spark.driver.extraJavaOptions": _EXECUTOR,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _EXECUTOR,
            "spark.log.level": "ERROR",
            "spark.ui.enabled": "false",
            **self._settings,
        }
        named = [f"--conf={name}={value}" for name, value in settings.items()]
        return ["--master", self.url, *named]

    def configure(self, name: str, value: str) -> None:
        """Give all commands that run from now on a setting of Spark."""
        self._settings[name] = value

    def start_worker(self, name: str, private: tuple[Path, Path] | None = None) -> None:
        """Start a worker on the host `name`, and wait until the master has it.

        `private`: a folder, which is there, where it has a disk of its own, and a folder that is
        made on that disk.
        """
        self._starts += 1
        log = f"worker-{name}-{self._starts}"
        words = ["Worker", "--host", self._network.address(name), "--webui-port", "0"]
        words += ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / log)]
        before = self._network.inside(name)
        if private is not None:
            before += [*_private_mounts(), "sh", "-c", _PRIVATE_DISK, *map(str, private)]
        worker = self._start([*words, self.url], log, before)
        self._workers[name] = worker
        _wait_for_line(worker, "Successfully registered with master")

    def heal(self) -> None:
        """Start the workers again that were killed. Raises DiedEarly where the master is dead."""
        if not self._master.alive():
            raise DiedEarly(f"the master has ended:\n{self._master.log_tail()}")
        for name, worker in list(self._workers.items()):
            if not worker.alive():
                self.start_worker(name)

    def busy(self) -> list[str]:
        """The hosts on which Python workers run tasks, or did and wait for others."""
        return [
            name
            for name, worker in self._workers.items()
            if any("pyspark.daemon" in _words(pid) for pid in _of_session(worker.pid))
        ]

    def kill(self, name: str) -> int:
        """Kill -9 all that runs on a host: worker, executors and theirs; how many those were."""
        worker = self._workers[name]
        count = 0
        while found := _of_session(worker.pid):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    count += 1
            worker.kill()  # Its own process is a child of ours, to be waited for.
            time.sleep(0.02)
        return count

    def kill_executors(self, name: str) -> int:
        """Kill -9 the executors on a host, whose worker starts others; how many those were."""
        found = [pid for pid in _of_session(self._workers[name].pid) if _EXECUTORS in _words(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def tasks(self, application: str, words: str) -> dict[str, int]:
        """How many tasks of the newest application of that name say `words`, by host.

        By what its executors have logged: "Running task", "Finished task".
        """
        name = re.escape(application)
        found = re.findall(rf"Registered app {name} with ID (\S+)", self._master_log())
        assert found, f"no application {application!r} was registered"
        counts: dict[str, int] = {}
        for log in self._folder.glob(f"worker-*/{found[-1]}/*/stderr"):
            host = log.parts[len(self._folder.parts)].split("-")[1]
            count = log.read_text(errors="replace").count(words)
            counts[host] = counts.get(host, 0) + count
        return counts

    def drivers(self) -> set[str]:
        """The addresses of drivers to which executors were sent."""
        logs = (path.read_text(errors="replace") for path in self._folder.glob("worker-*.log"))
        return {
            address
            for log in logs
            for address in re.findall(r"CoarseGrainedScheduler@([\d.a-z-]+):", log)
        }

    def close(self) -> None:
        """End all of it."""
        for name in self._workers:
            self.kill(name)
        self._master.kill()

    def _master_log(self) -> str:
        return self._master.log_tail(1 << 22)

    def _start(self, words: Sequence[str], log: str, before: Sequence[str] = ()) -> Process:
        program = f"org.apache.spark.deploy.{words[0].lower()}.{words[0]}"
        command: list[str | Path] = [
            *before,
            self._spark / "bin" / "spark-class",
            program,
            *words[1:],
        ]
        path = self._folder / f"{log}.log"
        return start(command, path, env=self._environment, session=True)


def available() -> str | None:
    """Why Spark's programs cannot be started here, or None if they can."""
    try:
        java_home()
    except NoJava as reason:
        return str(reason)
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'ottla[spark]'"
    return None


@contextlib.contextmanager
def spark_cluster(
    network: Network,
    names: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[SparkCluster]:
    """A master, and a worker on each of the hosts `names`, for as long as the block lasts."""
    cluster = SparkCluster(network, folder, environment)
    try:
        for name in names:
            cluster.start_worker(name)
        yield cluster
    finally:
        cluster.close()


def _spark_home() -> Path:
    """The folder of pyspark, which is slow to import."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None, available()
    assert found.origin is not None, available()
    return Path(found.origin).parent


def _private_mounts() -> list[str]:
    """Where root is missing the system may still give a view of the mounts to a user's own."""
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]


def _wait_for_line(process: Process, text: str) -> None:
    deadline_s = time.perf_counter() + _PATIENCE_S
    while text not in process.log_tail(1 << 20):
        if not process.alive() or time.perf_counter() > deadline_s:
            raise DiedEarly(f"{process.log.name} has no line {text!r}:\n{process.log_tail()}")
        time.sleep(0.05)


def _of_session(leader: int) -> list[int]:
    """The ids of all processes of a session that have not ended, whatever became of its leader."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue  # It has ended.
        state, _parent, _group, session = stat.rpartition(")")[2].split()[:4]
        if int(session) == leader and state != "Z":
            found.append(int(entry.name))
    return found


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""  # It has ended.
