"""`ottla start --brokers 3`: a process each, under one command."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.system.cli.ottla_command import Command
from tests.system.cli.several_brokers import PATIENCE_S, children, is_alive, started, until

THREE = ("--brokers", "3")


def test_three_brokers_replicate_and_the_death_of_one_stops_none(tmp_path: Path) -> None:
    """One is killed: the rest serve on and know it; it can be started by itself; ctrl-C ends all.

    What was acknowledged is there at the next start.
    """
    data = tmp_path / "data"
    with started(data, *THREE) as (run, starter):
        made = run("topic", "create", "t", "-o", "json").json
        assert made["replication_factor"] == 3
        assert ("min.insync.replicas", "2") in [
            (row["setting"], row["value"]) for row in made["settings"]
        ]
        run("produce", "t", stdin="a\n")
        brokers = children(starter.pid)
        assert len(brokers) == 3
        victim = brokers[-1]
        subprocess.run(["kill", "-9", str(victim)], check=True)
        assert starter.stderr is not None
        told = next(line for line in starter.stderr if "was killed by signal 9" in line)
        file = told.split("`ottla broker run ")[1].split("`")[0]
        assert Path(file).name == "broker-3.properties"

        def is_missed() -> bool:
            answer = run.try_to("cluster", "health", "-o", "json")
            return answer.code == 1 and len(answer.json["brokers"]) == 2

        until(is_missed)
        run("produce", "t", stdin="b\n")
        assert starter.poll() is None
        with subprocess.Popen(
            run.line("broker", "run", file), stderr=subprocess.DEVNULL, env=run.environment
        ) as again:
            until(lambda: run.try_to("cluster", "health").code == 0)
            again.send_signal(signal.SIGTERM)
            assert again.wait(PATIENCE_S) == 0
        starter.send_signal(signal.SIGINT)
        assert starter.wait(PATIENCE_S) == 0
        assert children(starter.pid) == []
    with started(data, *THREE) as (run, _):
        assert sorted(run("consume", "t", "-n", "2").lines) == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nobody_hands_over_where_all_stop(tmp_path: Path, number: signal.Signals) -> None:
    """There is nobody to hand over to, and nothing to warn of; what was written is there again."""
    data = tmp_path / "data"
    with started(data, *THREE) as (run, starter):
        run("topic", "create", "t")
        run("produce", "t", stdin="a\n")
        starter.send_signal(number)
        said = starter.communicate(timeout=PATIENCE_S)[1]
        assert starter.returncode == 0
        assert "controlled shutdown" not in said
    with started(data, *THREE) as (run, _):
        assert run("consume", "t", "-n", "1").lines == ["a"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_all_end_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """Also where it has no time to tell them."""
    with started(tmp_path / "data", *THREE, "--set", "num.partitions=2") as (run, starter):
        assert run("topic", "create", "t", "-o", "json").json["partition_count"] == 2
        brokers = children(starter.pid)
        starter.send_signal(number)
        starter.wait(PATIENCE_S)
        until(lambda: not any(map(is_alive, brokers)))


def test_brokers_whose_starter_dies_while_they_start_stop_in_order(tmp_path: Path) -> None:
    """No broker takes the end of the one that waits for its port for a mistake of its own."""
    anyone = Command("localhost:1")
    line = anyone.line("start", "--brokers", "3", "--port", "0", "--data", str(tmp_path))
    with subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=anyone.environment
    ) as starter:
        # By then its signals are caught, and the registration is still to come.
        until((tmp_path / "broker-1" / ".lock").exists)
        starter.kill()
        # All of them hold the other end of this pipe.
        _, error = starter.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in error
    assert "mistake" not in error


def test_a_broker_is_restarted_under_the_same_command(tmp_path: Path) -> None:
    """Its process is another one, listed and named; what was acknowledged is there."""
    with started(tmp_path / "data", *THREE) as (run, starter):
        run("produce", "t", stdin="a\n")
        listed = {row["broker"]: row["pid"] for row in run("broker", "list", "-o", "json").json}
        assert sorted(listed.values()) == children(starter.pid)
        names = [Path(f"/proc/{listed[n]}/comm").read_text() for n in (1, 2, 3)]
        assert names == ["ottla broker 1\n", "ottla broker 2\n", "ottla broker 3\n"]
        done = run("broker", "restart", "2", "-o", "json").json
        assert (done["broker"], done["old_pid"]) == (2, listed[2])
        assert sorted({**listed, 2: done["pid"]}.values()) == children(starter.pid)
        until(lambda: run.try_to("cluster", "health").code == 0)
        assert run("consume", "t").lines == ["a"]
        assert "there is no live broker 9; those of this cluster are 1, 2, 3" in run.refused(
            "broker", "restart", "9"
        )
        starter.send_signal(signal.SIGINT)
        assert starter.wait(PATIENCE_S) == 0
        assert children(starter.pid) == []
        assert starter.stderr is not None
        assert "ERROR" not in starter.stderr.read()


def test_a_broker_that_is_stopped_in_order_is_no_error(tmp_path: Path) -> None:
    """SIGTERM to one of them is what its operator wants; the log says how it comes back."""
    with started(tmp_path / "data", *THREE) as (_, starter):
        victim = children(starter.pid)[1]
        subprocess.run(["kill", "-TERM", str(victim)], check=True)
        assert starter.stderr is not None
        told = next(line for line in starter.stderr if "the others go on" in line)
        assert "WARNING broker 2 was stopped; the others go on." in told
        assert "broker-2.properties" in told
