"""`ottla start --brokers 3 --secure`: brokers that log in to each other, and files for one user."""

import json
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.cli.ottla_command import Command

PROCESSES = Path("/proc")
# Neither is a broker to be taken for dead because the machine stood still for a moment.
CALM = ("--set", "broker.session.timeout.ms=60000")


@contextmanager
def started(data: Path, *words: str) -> Iterator[dict[str, Any]]:
    """What the command answers to programs; all brokers stop in order at the end."""
    anyone = Command("localhost:1")
    line = anyone.line("start", "--port", "0", "--data", str(data), *CALM, *words, "-o", "json")
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=(data.parent / "log").open("a"), text=True
    ) as starter:
        assert starter.stdout is not None
        first = starter.stdout.readline()
        try:
            assert first, (data.parent / "log").read_text()
            yield json.loads(first)
            starter.send_signal(signal.SIGINT)
            assert starter.wait(200) == 0
        finally:
            starter.kill()


def words_of_processes() -> str:
    """What `ps` shows of each process, and its title."""
    found = []
    for process in PROCESSES.glob("[0-9]*"):
        for name in ("cmdline", "comm"):
            try:
                found.append((process / name).read_text(errors="replace"))
            except OSError:
                # It has ended.
                continue
    return "\n".join(found)


def modes(data: Path) -> dict[str, str]:
    """The kind and mode of each thing in the folder; brokers rename files meanwhile."""
    found = {}
    for path in [data, *data.rglob("*")]:
        try:
            found[str(path.relative_to(data))] = stat.filemode(path.stat().st_mode)
        except FileNotFoundError:
            continue
    return found


def test_three_brokers_replicate_over_tls_and_show_no_secret(tmp_path: Path) -> None:
    """Twice, with the same password; under a mask that would let every user read."""
    data = tmp_path / "data"
    before = os.umask(0)
    try:
        for number in (1, 2):
            with started(data, "--brokers", "3", "--secure") as answer:
                run = Command(answer["bootstrap"])
                config = ("--config", answer["client_properties"])
                run("produce", "t", *config, stdin=f"{number}\n")
                read = run("consume", "t", "-n", str(number), *config).lines
                assert read == ["1", "2"][:number]
                described = run("topic", "describe", "t", *config, "-o", "json").json
                assert len(described["partitions"][0]["isr"]) == 3
                secrets = [
                    (data / name).read_text().strip()
                    for name in ("admin.password", "broker.password")
                ]
                shown = words_of_processes() + json.dumps(answer)
                assert [secret in shown for secret in secrets] == [False, False]
                found = modes(data)
        assert run.try_to("topic", "list", timeout_s=60).code != 0
    finally:
        os.umask(before)
    assert found.pop("ca.pem") == "-rw-r--r--"
    assert set(found.values()) == {"drwx------", "-rw-------"}, found
    assert len(found) > 30
    log = (tmp_path / "log").read_text()
    assert [secret in log for secret in secrets] == [False, False]
    # Neither trouble between the brokers nor a file that was open to others.
    assert re.findall("ERROR|TLS|certificate|log(ged)? in|other users", log) == [], log


def test_a_member_of_the_cluster_starts_by_itself_from_its_file(tmp_path: Path) -> None:
    """The file has all it needs, and a password, so that it is for its owner alone."""
    data = tmp_path / "data"
    with started(data, "--brokers", "2", "--secure"):
        pass
    file = data / "broker-2.properties"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (data / "broker.password").read_text().strip() in file.read_text()
    with subprocess.Popen(
        Command("localhost:1").line("broker", "run", str(file)), stderr=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stderr is not None
        said = ""
        while "serves on port" not in said:
            line = broker.stderr.readline()
            assert line, said
            said += line
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(120) == 0
    assert "may read" not in said


def test_a_broker_on_each_core_is_secured_like_several(tmp_path: Path) -> None:
    """One authority, one administrator and one store for all brokers of the unit."""
    with started(tmp_path / "data", "--cores", "2", "--secure") as answer:
        run = Command(answer["bootstrap"])
        config = ("--config", answer["client_properties"])
        run("topic", "create", "t", "--partitions", "2", *config)
        described = run("topic", "describe", "t", *config, "-o", "json").json
        assert {partition["leader"] for partition in described["partitions"]} == {1, 2}
        run("produce", "t", *config, stdin="a\nb\n")
        assert sorted(run("consume", "t", "-n", "2", *config).lines) == ["a", "b"]
