"""A standalone Spark cluster with a broker and an S3 server, for its test."""

import os
import random
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from chaos.commands import missing
from chaos.hosts import TOOLS, network
from confluent_kafka import Producer
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem
from rig.broker import ottla
from rig.java import java_home
from rig.loopback_hosts import LoopbackHosts
from rig.nodes import Node
from rig.probe import free_port
from rig.s3 import KEY, REGION, SECRET, S3Server, s3
from rig.secret_search import SecretSearch, register
from rig.spark_cluster import Network, SparkCluster, spark_cluster

from ottla.client import sync
from ottla.lake import files as lake_files
from ottla.lake import verify
from ottla.operations.certificates import make_development_files

BUCKET = "lake"
WORKERS = ("one", "two")
PATIENCE_S = 250
RECORD_BYTES = 1024
USER, PASSWORD = "loader", "the-password-of-cluster-loads"
register(PASSWORD)
CLIENT = f"""security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.username={USER}
sasl.password={PASSWORD}
ssl.truststore.type=PEM
ssl.truststore.location={{authority}}
"""


@dataclass
class Site:
    """Two hosts, a broker and an S3 server that they reach, and a Spark cluster."""

    here: str
    node: Node
    server: S3Server
    cluster: SparkCluster
    bare_python: Path  # The only one on the workers' path: it has nothing but its library.
    secured: str  # Where the broker demands TLS and a login.
    config: Path  # How commands and tasks log in there.
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The broker under the address that workers reach, in the clear."""
        return f"{self.here}:{self.node.port}"

    def options(self) -> list[str]:
        """Those of a command that runs on the cluster, and reads from the secured listener."""
        reading = ["--bootstrap", self.secured, "--config", str(self.config)]
        return [*self.cluster.options(), *reading]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin `ottla lake …` on the cluster."""
        return subprocess.Popen(
            [sys.executable, "-m", "ottla.cli", "lake", *words, *self.options()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **self.environment},
        )

    def run(self, *words: str) -> tuple[int, str]:
        """`ottla lake …` on the cluster: its exit code, and what it printed."""
        started = self.start(*words)
        told, _ = started.communicate(timeout=PATIENCE_S)
        return started.returncode, told

    def kill_a_busy_worker(self, runs: Callable[[], bool]) -> str:
        """Kill all on the first host that runs tasks, as if it had lost its power; which it was."""
        name = self._busy(runs)
        self.cluster.kill(name)
        return name

    def kill_a_busy_executor(self, runs: Callable[[], bool]) -> str:
        """Kill the executor alone on the first host that runs tasks; which it was."""
        name = self._busy(runs)
        assert self.cluster.kill_executors(name) == 1
        return name

    def _busy(self, runs: Callable[[], bool]) -> str:
        deadline_s = time.monotonic() + PATIENCE_S
        while not (busy := self.cluster.busy()):
            assert runs(), "it has ended"
            assert time.monotonic() < deadline_s, "no tasks run"
            time.sleep(0.02)
        return busy[0]

    def require_each_once(self, topic: str, target: str, count: int) -> None:
        """Verify finds nothing, and DuckDB counts the numbers from 0 to `count` once each."""
        options = store_options(target, self.server)
        proof = verify(target, bootstrap=self.node.bootstrap, store_options=options)
        assert (proof.topic, proof.problems, proof.rows) == (topic, [], count)
        paths = lake_files(target, store_options=options)
        columns = ["partition", "offset", "value"]
        system = file_system(target, self.server)
        found = [
            pq.ParquetFile(system.open_input_file(path.removeprefix("s3://"))) for path in paths
        ]
        rows = pa.concat_tables([file.read(columns) for file in found])
        with duckdb.connect() as database:
            database.register("lake", rows)
            number = "CAST(CAST(value[1:10] AS VARCHAR) AS BIGINT)"
            counted = database.execute(
                f"SELECT count(*), count(DISTINCT {number}), min({number}), max({number}),"
                ' count(DISTINCT (partition, "offset")) FROM lake'
            ).fetchone()
        assert counted == (count, count, 0, count - 1, count)


def store_options(target: str, server: S3Server) -> Mapping[str, str]:
    """What this process needs to read a table; commands have it in their environment."""
    if not target.startswith("s3://"):
        return {}
    return {
        "aws_endpoint": server.endpoint,
        "aws_region": REGION,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }


def file_system(target: str, server: S3Server) -> FileSystem:
    """Where pyarrow reads a table."""
    if not target.startswith("s3://"):
        return LocalFileSystem()
    return S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=server.endpoint
    )


@contextmanager
def hosts() -> Iterator[Network]:
    """Network namespaces where they can be made, else addresses of loopback."""
    if reason := missing(TOOLS):
        print(f"workers are on addresses of loopback, not in namespaces of their own: {reason}")
        yield LoopbackHosts(WORKERS)
        return
    with network(WORKERS) as made:
        yield made


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """All of it for as long as the block lasts."""
    bare, secrets, events = (folder / name for name in ("bare", "secrets", "events"))
    venv.create(bare, symlinks=True, with_pip=False)
    events.mkdir()
    with ExitStack() as stack:
        made = stack.enter_context(hosts())
        files = make_development_files(secrets, [made.here], USER, datetime.now(UTC))
        port, secured = free_port(), free_port()
        settings = {
            "listeners": f"PLAINTEXT://0.0.0.0:{port},SASL_SSL://0.0.0.0:{secured}",
            "advertised.listeners": (
                f"PLAINTEXT://{made.here}:{port},SASL_SSL://{made.here}:{secured}"
            ),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files.server),
        }
        node = stack.enter_context(ottla(port=port, settings=settings))
        with sync.Admin(node.bootstrap) as admin:
            admin.users.set_password(USER, PASSWORD)
        config = secrets / "client.properties"
        config.write_text(CLIENT.format(authority=files.authority))
        server = stack.enter_context(s3(BUCKET, host=made.here))
        on_workers = {
            **server.environment(),
            "PATH": f"{bare / 'bin'}:{os.environ['PATH']}",
        }
        cluster = stack.enter_context(spark_cluster(made, WORKERS, folder, on_workers))
        cluster.configure("spark.eventLog.enabled", "true")
        cluster.configure("spark.eventLog.compress", "false")
        cluster.configure("spark.eventLog.dir", events.as_uri())
        of_commands = {**server.environment(), "JAVA_HOME": str(java_home())}
        python = bare / "bin" / "python"
        address = f"{made.here}:{secured}"
        yield Site(made.here, node, server, cluster, python, address, config, of_commands)
    assert any(events.rglob("events_*")), "no event log was written"
    require_no_secret(folder, secrets)


def require_no_secret(folder: Path, secrets: Path) -> None:
    """Neither password nor storage key stands in event logs, logs and folders of work."""
    search = SecretSearch()
    search.register(PASSWORD)
    search.register(SECRET, "the key of the S3 server")
    found = search.found_below(folder)
    assert found, "the file of settings has it"
    assert [one for one in found if not one.startswith(str(secrets))] == []


def send(node: Node, topic: str, count: int) -> None:
    """Values of `RECORD_BYTES` that begin with the numbers below `count`; they do not compress."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0, "linger.ms": 20})
    chance = random.Random(count)
    for number in range(count):
        producer.produce(topic, b"%010d" % number + chance.randbytes(RECORD_BYTES - 10))
        producer.poll(0)
    assert producer.flush(120) == 0
