"""Administrators of a cluster of `ottla start --secure`: over TLS, with logins and ACLs."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from os import kill
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from rig import accounts, secret_search
from rig import tools as t
from rig.tools import Ran, Tools

OTTLA = [sys.executable, "-m", "ottla.cli"]
ALICE = "the-password-of-alice"
LIMIT_S = 120
SETTINGS = (
    "broker.session.timeout.ms=60000",
    "auto.leader.rebalance.enable=false",
    "unclean.leader.election.enable=false",
)


@dataclass(frozen=True)
class SecureCluster:
    """Brokers 1 to 3 and how their administrator reaches them."""

    data: Path
    bootstrap: str
    config: Path
    librdkafka: dict[str, str]
    processes: list[int]
    jvm: Tools

    def tool(self, name: str, *words: object, config: Path | None = None) -> Ran:
        """Run one of Kafka's tools."""
        where = ("--bootstrap-server", self.bootstrap, "--command-config", config or self.config)
        return self.jvm.run(name, *where, *words)

    def ottla(self, *words: str, stdin: str = "") -> str:
        """What a command of ours prints."""
        line = [*OTTLA, *words, "--bootstrap", self.bootstrap, "--config", str(self.config)]
        done = subprocess.run(
            line, input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait_for(self, leader: int, *in_sync: int) -> None:
        """Wait until the only partition of `m` is led so; in any ISR where none is given."""
        admin = AdminClient({**self.librdkafka, "log_level": 0})

        def there() -> bool:
            found = admin.list_topics("m", timeout=LIMIT_S).topics["m"].partitions[0]
            return found.leader == leader and set(in_sync) in (set(), set(found.isrs))

        until(there)


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path, jvm: Tools) -> Iterator[SecureCluster]:
    data = tmp_path / "data"
    line = [*OTTLA, "start", "--secure", "--brokers", "3", "--port", "0", "--data", str(data)]
    for setting in SETTINGS:
        line += ["--set", setting]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([*line, "-o", "json"], stdout=subprocess.PIPE, stderr=log) as starter,
    ):
        assert starter.stdout is not None
        try:
            first = starter.stdout.readline()
            assert first, (tmp_path / "log").read_text()
            answer = json.loads(first)
            lines = Path(answer["librdkafka_properties"]).read_text().splitlines()
            yield SecureCluster(
                data,
                answer["bootstrap"],
                Path(answer["client_properties"]),
                {
                    "bootstrap.servers": answer["bootstrap"],
                    **dict(one.split("=", 1) for one in lines if "=" in one),
                },
                accounts.children(starter.pid),
                jvm,
            )
        finally:
            starter.send_signal(signal.SIGINT)
            starter.wait(LIMIT_S)


@pytest.mark.timeout(600)
def test_administrators_do_what_they_do_without_security(
    cluster: SecureCluster, tmp_path: Path
) -> None:
    """A move, preferred and unclean elections, a user's quota, a deletion; not by another user."""
    replicas = ("--replica-assignment", "1:2", "--config", "min.insync.replicas=1")
    cluster.tool(t.TOPICS, "--create", "--topic", "m", *replicas).ok()
    produce(cluster, b"one")

    # A move, with a throttle, by Kafka's tool; and back by ours.
    plan = tmp_path / "move.json"
    moved = {"topic": "m", "partition": 0, "replicas": [3, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    file = ("--reassignment-json-file", plan)
    cluster.tool(t.REASSIGN, *file, "--execute", "--throttle", "10000000").ok()
    until(lambda: "is completed" in cluster.tool(t.REASSIGN, *file, "--verify").ok())
    cluster.wait_for(1, 1, 3)
    preferred = ("--election-type", "preferred", "--topic", "m", "--partition", 0)
    assert "Successfully completed" in cluster.tool(t.LEADER_ELECTION, *preferred).ok()
    cluster.wait_for(3, 1, 3)
    cluster.ottla("partition", "reassign", "m-0", "--to", "2,3", "--wait", "--yes")
    cluster.ottla("partition", "elect", "m-0", "--preferred")
    cluster.wait_for(2, 2, 3)

    # A quota of a user throttles the client that logged in as that user.
    user = ("--entity-type", "users", "--entity-name", "admin")
    cluster.tool(t.CONFIGS, "--alter", "--add-config", "producer_byte_rate=1000", *user).ok()
    assert "producer_byte_rate=1000" in cluster.tool(t.CONFIGS, "--describe", *user).ok()
    produce_until_throttled(cluster)
    cluster.tool(t.CONFIGS, "--alter", "--delete-config", "producer_byte_rate", *user).ok()

    # A user without ACLs may do none of it.
    alice = config_of_alice(cluster, tmp_path)
    refused = cluster.tool(t.REASSIGN, *file, "--execute", config=alice)
    assert "Cluster authorization failed" in refused.out + refused.err
    refused = cluster.tool(t.LEADER_ELECTION, *preferred, config=alice)
    assert "Not authorized" in refused.out + refused.err
    refused = cluster.tool(t.TOPICS, "--delete", "--topic", "m", config=alice)
    assert refused.exit_code == 1

    # Broker 2 lacks a record that only broker 3 has, and is elected because it is asked for.
    kill(cluster.processes[1], signal.SIGKILL)
    cluster.wait_for(3, 3)
    produce(cluster, b"3 alone has this")
    kill(cluster.processes[2], signal.SIGKILL)
    cluster.wait_for(-1)
    with again(cluster, 2):
        unclean = ("--election-type", "unclean", "--topic", "m", "--partition", 0)
        until(lambda: "Successfully completed" in cluster.tool(t.LEADER_ELECTION, *unclean).out)
        cluster.wait_for(2, 2)
        cluster.tool(t.TOPICS, "--delete", "--topic", "m").ok()
        until(lambda: "m" not in cluster.tool(t.TOPICS, "--list").ok().split())


def produce(cluster: SecureCluster, value: bytes) -> None:
    producer = Producer({**cluster.librdkafka, "log_level": 0})
    producer.produce("m", value)
    assert producer.flush(LIMIT_S) == 0


def produce_until_throttled(cluster: SecureCluster) -> None:
    throttled: list[object] = []
    producer = Producer({**cluster.librdkafka, "log_level": 0, "throttle_cb": throttled.append})

    def there() -> bool:
        producer.produce("m", b"x" * 2_000)
        assert producer.flush(LIMIT_S) == 0
        return bool(throttled)

    until(there)


def config_of_alice(cluster: SecureCluster, folder: Path) -> Path:
    """The settings of a user who was just made."""
    secret_search.register(ALICE)
    cluster.ottla("user", "add", "alice", stdin=f"{ALICE}\n")
    text = re.sub(r'password="[^"]*"', f'password="{ALICE}"', cluster.config.read_text())
    file = folder / "alice.properties"
    file.touch(0o600)
    file.write_text(text.replace('username="admin"', 'username="alice"'))
    return file


def again(cluster: SecureCluster, number: int) -> ExitStack:
    """A broker that was killed, started by itself; it is stopped at the end."""
    file = cluster.data / f"broker-{number}.properties"
    stack = ExitStack()
    broker = stack.enter_context(subprocess.Popen([*OTTLA, "broker", "run", str(file)]))
    stack.callback(broker.wait, LIMIT_S)
    stack.callback(broker.terminate)
    return stack
