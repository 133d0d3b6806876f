"""`ottla start --cores 2`: a broker on each core, as one unit, used by librdkafka."""

import signal
import subprocess
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families
from rig import zookeeper
from rig.clusters import free_ports
from rig.consumer import close, read
from rig.topics import wait_for_leaders

from tests.system.cli.ottla_command import Command
from tests.system.cli.several_brokers import PATIENCE_S, children, is_alive, started, until

TWO = ("--cores", "2", "-v")
PARTITIONS = 4


def two() -> tuple[str, ...]:
    """Two cores, on ports that brokers keep when they come back."""
    return (*TWO, "--port", str(free_ports(2)))


class Load:
    """Numbers that librdkafka sends to all partitions, from a thread of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: list[int] = []
        self.errors: list[str] = []
        self._topic = topic
        self._ending = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set():
            self._producer.produce(
                self._topic, str(number), partition=number % PARTITIONS, on_delivery=self._answered
            )
            number += 1
            self._producer.poll(0.002)
        assert self._producer.flush(PATIENCE_S) == 0

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is None:
            self.acknowledged.append(int(value))
        else:
            self.errors.append(str(error))

    def flows(self) -> None:
        """Wait until each partition has acknowledged records that are sent from now on."""
        before = len(self.acknowledged)
        until(
            lambda: (
                {number % PARTITIONS for number in self.acknowledged[before:]}
                == set(range(PARTITIONS))
            )
        )

    def end(self) -> None:
        self._ending.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@contextmanager
def load(bootstrap: str, replicas: int = 1) -> Iterator[Load]:
    """Send to a new topic, and afterwards find each acknowledged record there exactly once."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("load", PARTITIONS, replicas)])["load"].result(PATIENCE_S)
    wait_for_leaders(admin, "load", PARTITIONS)
    sending = Load(bootstrap, "load")
    sending.flows()
    try:
        yield sending
    finally:
        sending.end()
    assert sending.errors == []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["load"])
    found = read(consumer, len(sending.acknowledged))
    close(consumer)
    assert Counter(int(each.value() or b"") for each in found) == Counter(sending.acknowledged)


def processes(run: Command) -> dict[int, int]:
    """The process of each broker."""
    return {row["broker"]: row["pid"] for row in run("broker", "list", "-o", "json").json}


def test_a_broker_of_a_unit_that_is_killed_comes_back_by_itself(tmp_path: Path) -> None:
    """Another process serves its partitions; no record is lost, and the log names each broker."""
    with started(tmp_path / "data", *two()) as (run, starter):
        with load(run.bootstrap) as sending:
            before = processes(run)
            assert sorted(before.values()) == children(starter.pid)
            subprocess.run(["kill", "-9", str(before[2])], check=True)
            sending.flows()
            after = processes(run)
            assert (after[1], after.keys()) == (before[1], before.keys())
            assert after[2] != before[2]
        starter.send_signal(signal.SIGTERM)
        said = starter.communicate(timeout=PATIENCE_S)[1]
        assert starter.returncode == 0
        assert children(starter.pid) == []
    assert "broker 2 was killed by signal 9; it is started again in 0.5 s" in said
    assert "broker 2 serves again on port" in said
    assert "broker 1: stopping" in said
    assert "broker 2: stopping" in said
    assert sorted(path.name for path in (tmp_path / "data").glob("broker-*")) == [
        "broker-1",
        "broker-2",
    ]


def test_a_unit_is_restarted_without_an_error_for_its_clients(tmp_path: Path) -> None:
    """SIGHUP restarts one broker after another; each record that was sent is there once."""
    with (
        started(tmp_path / "data", *two()) as (run, starter),
        load(run.bootstrap) as sending,
    ):
        before = processes(run)
        starter.send_signal(signal.SIGHUP)
        assert starter.stderr is not None
        order = []
        for line in starter.stderr:
            if "is restarted" in line or "serves again" in line:
                order.append(line.split("broker ")[1].split(" on port")[0].strip())
            if len(order) == 4:
                break
        assert order == [
            "1 is restarted",
            "1 serves again",
            "2 is restarted",
            "2 serves again",
        ]
        sending.flows()
        after = processes(run)
        assert before.keys() == after.keys()
        assert set(before.values()).isdisjoint(after.values())
        assert sorted(after.values()) == children(starter.pid)


def test_one_machine_takes_one_replica_and_its_groups_work(tmp_path: Path) -> None:
    """What asks for more is refused with cause and remedy; the rest is as with one broker."""
    with started(tmp_path / "data", *two(), "--set", "num.partitions=4") as (run, _):
        admin = AdminClient({"bootstrap.servers": run.bootstrap, "log_level": 0})
        with pytest.raises(KafkaException) as raised:
            admin.create_topics([NewTopic("t", 1, 2)])["t"].result(PATIENCE_S)
        error = raised.value.args[0]
        assert error.code() == KafkaError.INVALID_REPLICATION_FACTOR
        assert "no two replicas may share a machine" in error.str()
        assert "start brokers on further machines" in error.str()
        made = run("topic", "create", "t", "-o", "json").json
        assert (made["partition_count"], made["replication_factor"]) == (4, 1)
        leaders = [
            p["leader"] for p in run("topic", "describe", "t", "-o", "json").json["partitions"]
        ]
        assert Counter(leaders) == {1: 2, 2: 2}
        run("produce", "t", stdin="a\n")
        assert run("consume", "t", "-n", "1", "--group", "g").lines == ["a"]
        assert run("cluster", "health").code == 0


def test_another_number_of_cores_loses_nothing(tmp_path: Path) -> None:
    """More add brokers. Fewer are refused, until the brokers left out have no partitions."""
    data = tmp_path / "data"
    with started(data, *two(), "--set", "num.partitions=4") as (run, _):
        run("produce", "t", stdin="a\nb\nc\n")
    refused = Command("localhost:1").refused
    said = refused("start", "--data", str(data), "--port", "0")
    assert f"`ottla start --cores 2 --data {data}`" in said
    said = refused("start", "--data", str(data), "--port", "0", "--cores", "1")
    assert "also holds broker 2, which would not be started, and 2 partition(s) live there" in said
    assert "t-" in said
    assert "`ottla broker drain 2`" in said
    with started(data, "--cores", "3") as (run, starter):
        assert starter.stderr is not None
        assert "new in" in starter.stderr.readline()
        assert sorted(processes(run)) == [1, 2, 3]
        assert sorted(run("consume", "t", "-n", "3").lines) == ["a", "b", "c"]
        run("broker", "drain", "3", "--yes")
    with started(data, "--cores", "2") as (run, _):
        run("broker", "drain", "2", "--yes")
    with started(data, "--cores", "1") as (run, _):
        assert sorted(run("consume", "t", "-n", "3").lines) == ["a", "b", "c"]


def test_sums_over_the_metrics_of_all_brokers_are_those_of_the_cluster(tmp_path: Path) -> None:
    """Each broker serves its own; a group's lag is whole, though its partitions are on both."""
    port = free_ports(2)
    options = (*two(), "--metrics", str(port), "--set", "num.partitions=4")
    with started(tmp_path / "data", *options) as (run, _):
        run("produce", "t", stdin="".join(f"{number}\n" for number in range(8)))
        offsets = {"bootstrap.servers": run.bootstrap, "group.id": "g", "enable.auto.commit": False}
        consumer = Consumer(offsets)
        places = [TopicPartition("t", number, 0) for number in range(PARTITIONS)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
        metrics = [_metrics(port), _metrics(port + 1)]
    leaders = [each["kafka_topic_partition_leader"] for each in metrics]
    assert [len(each) for each in leaders] == [2, 2]
    for name, expected in (
        ("kafka_consumergroup_lag", 8),
        ("kafka_consumergroup_lag_sum", 8),
        ("kafka_topic_partition_current_offset", 8),
        ("kafka_server_brokertopicmetrics_messagesin_total", 8),
        ("kafka_controller_kafkacontroller_activecontrollercount", 1),
        ("kafka_brokers", 2),
        ("kafka_topic_partitions", 4),
        ("ottla_broker_info", 2),
    ):
        assert sum(sum(each.get(name, ())) for each in metrics) == expected, name


def _metrics(port: int) -> dict[str, list[float]]:
    """The values by name, without those of internal topics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    found: dict[str, list[float]] = {}
    for family in families:
        for sample in family.samples:
            if not sample.labels.get("topic", "").startswith("__"):
                found.setdefault(sample.name, []).append(sample.value)
    return found


def test_a_settings_file_makes_a_unit(tmp_path: Path) -> None:
    """`ottla broker run` serves `cores`; users are made in its store before it starts.

    A rolling restart takes what has changed in the file.
    """
    port = free_ports(2)
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path / 'data'}\ncores=2\n"
    )
    run = Command(f"127.0.0.1:{port}")
    run("user", "add", "alice", "--store", str(file), stdin="a-password-of-hers\n")
    with subprocess.Popen(
        run.line("broker", "run", str(file)), stderr=subprocess.PIPE, text=True
    ) as unit:
        try:
            assert unit.stderr is not None
            said = ""
            while f"broker 2 serves on port {port + 1}" not in said:
                said += unit.stderr.readline()
            assert {row["user"] for row in run("user", "list", "-o", "json").json} == {"alice"}
            assert sorted(processes(run)) == [1, 2]
            # The file is read again, unless it has become wrong.
            file.write_text(f"{file.read_text()}num.partitions=7\n")
            unit.send_signal(signal.SIGHUP)
            while f"broker 2 serves again on port {port + 1}" not in said:
                said += unit.stderr.readline()
            assert run("topic", "create", "t", "-o", "json").json["partition_count"] == 7
            file.write_text(file.read_text().replace("cores=2", "cores=3"))
            unit.send_signal(signal.SIGHUP)
            while "all go on as before: another number of brokers" not in said:
                said += unit.stderr.readline()
            brokers = children(unit.pid)
            unit.send_signal(signal.SIGTERM)
            assert unit.wait(PATIENCE_S) == 0
            assert not any(map(is_alive, brokers))
        finally:
            unit.kill()
    alone = tmp_path / "alone.properties"
    alone.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n")
    assert "holds a cluster of 2 brokers" in run.refused("broker", "run", str(alone))


def test_a_unit_of_which_no_broker_can_start_ends(tmp_path: Path) -> None:
    """So that a service manager sees it; the reason is in the log."""
    data = tmp_path / "data"
    with started(data, *two()):
        pass
    for number in (1, 2):
        meta = data / f"broker-{number}" / "meta.properties"
        lines = meta.read_text().splitlines()
        meta.write_text("\n".join("node.id=7" if "node.id" in each else each for each in lines))
    said = Command("localhost:1").refused("start", *two(), "--data", str(data))
    assert "broker 1 cannot start: " in said
    assert "none of the brokers could start" in said


def test_two_units_are_two_machines(tmp_path: Path) -> None:
    """With ZooKeeper, replicas are on both; one unit ends, and the clients go on with the other.

    Neither a folder nor a store of one's own makes either an empty cluster.
    """
    if reason := zookeeper.available():
        pytest.skip(reason)
    with zookeeper.zookeeper(1) as ensemble:
        store = ("--set", f"coordination.connect=zookeeper://{ensemble.hosts}/units")
        here = (*two(), *store, "--set", "broker.rack=here")
        there = (*two(), *store, "--set", "broker.rack=there", "--set", "broker.id=11")
        with (
            started(tmp_path / "a", *here) as (run, _),
            started(tmp_path / "b", *there) as (other, second),
        ):
            admin = AdminClient({"bootstrap.servers": run.bootstrap, "log_level": 0})
            with pytest.raises(KafkaException, match="are on 2: here, there"):
                admin.create_topics([NewTopic("t", 1, 3)])["t"].result(PATIENCE_S)
            both = f"{run.bootstrap},{other.bootstrap}"
            with load(both, replicas=2) as sending:
                described = run("topic", "describe", "load", "-o", "json").json["partitions"]
                sides = [{replica < 10 for replica in p["replicas"]} for p in described]
                assert sides == [{True, False}] * PARTITIONS
                second.send_signal(signal.SIGTERM)
                assert second.wait(PATIENCE_S) == 0
                sending.flows()
        anyone = Command("localhost:1")
        said = anyone.refused("start", "--data", str(tmp_path / "a"), "--port", "0")
        assert "holds a cluster of 2 brokers" in said
        assert "and the coordination.connect of before" in said
        said = anyone.refused("start", *two(), "--data", str(tmp_path / "a"))
        assert "none of the brokers could start" in said
