"""`ottla start`, `ottla broker run` and `ottla log`: a broker from the command line."""

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.probe import free_port

import ottla.testing
from tests.system.cli.ottla_command import Command


@contextlib.contextmanager
def started(*words: str) -> Iterator[tuple[Command, "subprocess.Popen[str]", str]]:
    """A broker by `words`, the command that talks to it, and its first line."""
    anyone = Command("localhost:1")
    with subprocess.Popen(
        anyone.line(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=anyone.environment,
    ) as broker:
        assert broker.stdout is not None
        first = broker.stdout.readline()
        try:
            address = re.search(r"[\w.]+:\d+", first)
            assert address is not None, f"it said {first!r}"
            yield Command(address[0]), broker, first
        finally:
            broker.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_start_serves_tells_its_contract_and_stops_in_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The first lines say where it serves and what an acknowledgement means; data stays."""
    data = tmp_path / "data"
    words = ("start", "--port", "0", "--data", str(data), "--set", "num.partitions=2")
    with started(*words) as (run, broker, first):
        assert first == f"Ottla serves on {run.bootstrap}, data in {data}\n"
        assert broker.stdout is not None
        assert broker.stdout.readline() == (
            "acks=all is answered once the record is on disk (group commit); ctrl-C stops\n"
        )
        run("topic", "create", "kept")
        run("produce", "kept", "-p", "1", stdin="a\nb\n")
        broker.send_signal(number)
        assert broker.wait(120) == 0
    with started(*words, "-o", "json") as (run, _, first):
        told = json.loads(first)
        assert told == {"bootstrap": run.bootstrap, "port": told["port"], "data": str(data)}
        assert run("consume", "kept").lines == ["a", "b"]
    assert (data / "kept-1").is_dir()


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_start_says_where_the_data_is(tmp_path: Path, name: str) -> None:
    """Not where it would be without the setting."""
    words = ("start", "--port", "0", "--data", str(tmp_path / "data"))
    with started(*words, "--set", f"{name}={tmp_path / 'other'}") as (run, _, first):
        assert first == f"Ottla serves on {run.bootstrap}, data in {tmp_path / 'other'}\n"
    assert (tmp_path / "other" / "meta.properties").is_file()


def test_log_dump_shows_batches_and_records_and_finds_damage(tmp_path: Path) -> None:
    """Every checksum is checked; a flipped bit gives exit code 1."""
    with ottla.testing.Broker(storage=tmp_path) as broker:
        Command(broker.bootstrap)("produce", "t", "-K", ":", stdin="k:v\n")
    nowhere = Command("localhost:1")
    folder = str(tmp_path / "t-0")
    (batch,) = nowhere("log", "dump", folder, "-o", "json").json
    assert (batch["base_offset"], batch["records"], batch["checksum"]) == (0, 1, "right")
    assert nowhere("log", "dump", folder).lines[0].startswith("base offset  last offset")
    (line,) = nowhere("log", "dump", folder, "--records").lines
    assert {"offset": 0, "key": "k", "value": "v"}.items() <= json.loads(line).items()
    log = tmp_path / "t-0" / "00000000000000000000.log"
    damaged = bytearray(log.read_bytes())
    damaged[-3] ^= 1
    log.write_bytes(damaged)
    assert nowhere.try_to("log", "dump", folder).code == 1
    assert "holds no .log files" in nowhere.refused("log", "dump", str(tmp_path))


def test_a_broker_that_cannot_start_says_why(
    tmp_path: Path, broker: ottla.testing.Broker, run: Command
) -> None:
    """Port in use, unknown settings, wrong values, a file that is not there, another's folder."""
    port = str(broker.port)
    data = ("--data", str(tmp_path / "data"))
    told = run.refused("start", "--port", port, *data)
    assert f"port {port} on 127.0.0.1 is in use" in told
    told = run.refused("start", "--port", "0", *data, "--set", "num.partition=2")
    assert "did you mean num.partitions" in told
    told = run.refused("start", "--port", "0", *data, "--set", "num.partitions=none")
    assert "whole number" in told
    assert "is not NAME=VALUE" in run.misused("start", *data, "--set", "x")
    assert "at least one broker" in run.misused("start", *data, "--brokers", "0")
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "meta.properties").touch()
    told = run.refused("start", *data, "--brokers", "3")
    assert "holds the logs of a single broker" in told
    assert "cannot read" in run.refused("broker", "run", str(tmp_path / "none"))
    properties = tmp_path / "server.properties"
    properties.write_bytes(b"num.partitions=\xff\n")
    assert "it is not UTF-8" in run.refused("broker", "run", str(properties))
    properties.write_bytes(b"\xef\xbb\xbfnum.partitons=2\n")
    assert "did you mean num.partitions" in run.refused("broker", "run", str(properties))


def test_broker_run_takes_kafkas_own_file(tmp_path: Path) -> None:
    """A server.properties is served as it stands."""
    port = free_port()
    file = tmp_path / "server.properties"
    file.write_text(
        f"# A node of mine\nbroker.id=7\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
        f"log.dirs={tmp_path / 'data'}\nssl.key.password=not-for-others\n"
    )
    file.chmod(0o644)
    anyone = Command(f"127.0.0.1:{port}")
    with subprocess.Popen(
        anyone.line("broker", "run", str(file)), stderr=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stderr is not None
        said = ""
        while f"serves on port {port}" not in said:
            said += broker.stderr.readline()
        assert f"may read ssl.key.password, which is in {file} (mode 0644)" in said
        assert "not-for-others" not in said
        assert anyone("topic", "create", "t", "-o", "json").json["partition_count"] == 1
        (partition,) = anyone("topic", "describe", "t", "-o", "json").json["partitions"]
        assert partition["leader"] == 7
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(120) == 0


def test_a_single_broker_does_not_begin_empty_in_the_folder_of_a_cluster(tmp_path: Path) -> None:
    """It is refused with the command that starts the cluster."""
    (tmp_path / "store.sqlite").touch()
    for number in (1, 2, 3):
        (tmp_path / f"broker-{number}.properties").touch()
        (tmp_path / f"broker-{number}").mkdir()
        (tmp_path / f"broker-{number}" / "meta.properties").touch()
    said = Command("localhost:1").refused("start", "--port", "0", "--data", str(tmp_path))
    assert f"{tmp_path} holds a cluster of 3 brokers" in said
    assert f"`ottla start --brokers 3 --data {tmp_path}`" in said
    assert not (tmp_path / "meta.properties").exists()
    member = tmp_path / "broker-2"
    said = Command("localhost:1").refused("start", "--port", "0", "--data", str(member))
    assert f"Start that broker with `ottla broker run {member}.properties`" in said
    assert list(member.iterdir()) == [member / "meta.properties"]


def fill(ballast: Path) -> None:
    """Write until the disk is full."""
    with contextlib.suppress(OSError), ballast.open("wb", 0) as file:
        while file.write(bytes(65536)):
            pass


def test_dump_of_an_empty_partition_does_not_say_that_it_is_absent(tmp_path: Path) -> None:
    """Its folder is made by its first record, which dump then shows."""
    with started("start", "--port", "0", "--data", str(tmp_path)) as (run, _, _):
        run("topic", "create", "flights")
        said = run.refused("log", "dump", str(tmp_path / "flights-0"))
        assert "has no replica of it, or one that is empty" in said
        assert "`ottla topic describe flights`" in said
        run("produce", "flights", stdin="a\n")
        (row,) = run("log", "dump", str(tmp_path / "flights-0"), "-o", "json").json
        assert row["base_offset"] == 0


def test_health_tells_of_a_full_disk_and_what_makes_room(small_disk: Path) -> None:
    """While produce requests fail all is not well; with room again it is."""
    with started("start", "--port", "0", "--data", str(small_disk / "data")) as (run, _, _):
        run("topic", "create", "flights")
        assert run("cluster", "health").out.startswith("all is well")
        ballast = small_disk / "ballast"
        fill(ballast)
        told = run.try_to("cluster", "health")
        assert told.code == 1
        assert "disk full" in told.out
        assert "what needs more is refused with KAFKA_STORAGE_ERROR" in told.out
        assert "file.delete.delay.ms" in told.out
        ballast.unlink()
        run("produce", "flights", stdin="a\n")
        assert run("cluster", "health").out.startswith("all is well")
