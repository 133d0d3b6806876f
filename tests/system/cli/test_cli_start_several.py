"""`ottla start --brokers 3`: a process each, under one command."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.system.cli.ottla_command import Command

_PATIENCE_S = 200


@contextmanager
def started(data: Path, *words: str) -> Iterator[tuple[Command, "subprocess.Popen[str]"]]:
    """Three brokers, and the command that talks to them; nothing of them is left at the end."""
    anyone = Command("localhost:1")
    # None is to be taken for dead because the machine stood still for a moment.
    calm = ("--set", "broker.session.timeout.ms=60000")
    line = anyone.line(
        *("start", "--brokers", "3", "--port", "0", "--data", str(data), *calm, *words)
    )
    with subprocess.Popen(
        [*line, "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=anyone.environment,
    ) as starter:
        assert starter.stdout is not None
        first = starter.stdout.readline()
        assert first, starter.communicate()[1]
        left = children(starter.pid)
        try:
            yield Command(json.loads(first)["bootstrap"]), starter
        finally:
            # Whoever is left ends with the starter.
            starter.kill()
            until(lambda: not any(map(is_alive, left)))


def children(process: int) -> list[int]:
    """The processes started by one, in the order of their ids."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        _, _, rest = text.rpartition(")")
        state, parent = rest.split()[:2]
        if int(parent) == process and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`, as long as it may take on a busy machine."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_three_brokers_replicate_and_the_death_of_one_stops_none(tmp_path: Path) -> None:
    """One is killed: the rest serve on and know it; it can be started by itself; ctrl-C ends all.

    What was acknowledged is there at the next start.
    """
    data = tmp_path / "data"
    with started(data) as (run, starter):
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
            assert again.wait(_PATIENCE_S) == 0
        starter.send_signal(signal.SIGINT)
        assert starter.wait(_PATIENCE_S) == 0
        assert children(starter.pid) == []
    with started(data) as (run, _):
        assert sorted(run("consume", "t", "-n", "2").lines) == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nobody_hands_over_where_all_stop(tmp_path: Path, number: signal.Signals) -> None:
    """There is nobody to hand over to, and nothing to warn of; what was written is there again."""
    data = tmp_path / "data"
    with started(data) as (run, starter):
        run("topic", "create", "t")
        run("produce", "t", stdin="a\n")
        starter.send_signal(number)
        said = starter.communicate(timeout=_PATIENCE_S)[1]
        assert starter.returncode == 0
        assert "controlled shutdown" not in said
    with started(data) as (run, _):
        assert run("consume", "t", "-n", "1").lines == ["a"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_all_end_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """Also where it has no time to tell them."""
    with started(tmp_path / "data", "--set", "num.partitions=2") as (run, starter):
        assert run("topic", "create", "t", "-o", "json").json["partition_count"] == 2
        brokers = children(starter.pid)
        starter.send_signal(number)
        starter.wait(_PATIENCE_S)
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
        _, error = starter.communicate(timeout=_PATIENCE_S)
    assert "Traceback" not in error
    assert "mistake" not in error


def test_a_broker_is_restarted_under_the_same_command(tmp_path: Path) -> None:
    """Its process is another one, listed and named; what was acknowledged is there."""
    with started(tmp_path / "data") as (run, starter):
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
        assert starter.wait(_PATIENCE_S) == 0
        assert children(starter.pid) == []
        assert starter.stderr is not None
        assert "ERROR" not in starter.stderr.read()


def test_a_broker_that_is_stopped_in_order_is_no_error(tmp_path: Path) -> None:
    """SIGTERM to one of them is what its operator wants; the log says how it comes back."""
    with started(tmp_path / "data") as (_, starter):
        victim = children(starter.pid)[1]
        subprocess.run(["kill", "-TERM", str(victim)], check=True)
        assert starter.stderr is not None
        told = next(line for line in starter.stderr if "the others go on" in line)
        assert "WARNING broker 2 was stopped; the others go on." in told
        assert "broker-2.properties" in told
