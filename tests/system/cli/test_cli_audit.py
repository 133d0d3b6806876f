"""`ottla audit`, on the log of a broker that real clients used, and that was killed."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla

from ottla.security.audit.chain import Chain, hash_of
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command

CHECKER = Path(__file__).resolve().parents[3] / "examples" / "check_audit.py"
COUNT = 30


@dataclass
class Audited:
    """The folder of a broker that was killed in the middle, and changes that it had answered."""

    folder: Path
    topics: list[str]
    log: str


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Topics are created one after the other; after each the broker may be killed."""
    home = tmp_path_factory.mktemp("audited")
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "audit.log.file.bytes": "4096",
    }
    made: list[str] = []
    with ottla(settings=settings, folder=home) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for number in range(COUNT):
            admin.create_topics([NewTopic(f"t{number}", 1, 1)])[f"t{number}"].result(90)
            made.append(f"t{number}")
        node.process.kill()
    with ottla(settings=settings, folder=home) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.delete_topics(["t0"])["t0"].result(90)
        command = Command(node.bootstrap)
        command("acl", "add", "User:ANONYMOUS", "describe", "topic:t1")
        command("acl", "add", "User:ANONYMOUS", "write", "topic:t1", "--deny")
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        producer.produce("t1", b"x")
        producer.flush(90)
        log = node.process.log.read_text()
    return Audited(home / "logs", made, log)


def files(audited: Audited) -> list[Path]:
    return sorted(audited.folder.glob("ottla-audit-1-*.log"))


def test_the_log_of_a_killed_broker_is_intact_and_has_what_was_answered(audited: Audited) -> None:
    """All but what the broker's last milliseconds may have taken with them."""
    command = Command("127.0.0.1:1")
    told = command("audit", "verify", str(audited.folder)).out
    assert "broker 1: intact, lines 1 to " in told
    assert "Not proven without --head" in told
    shown = command("audit", "show", str(audited.folder), "-o", "json").json
    created = [each["resource"] for each in shown if each.get("api") == "CREATE_TOPICS"]
    assert created == [f"Topic:{name}" for name in audited.topics][: len(created)]
    assert len(created) >= COUNT - 5
    deleted = command("audit", "show", str(audited.folder), "--resource", "Topic:t0").out
    assert "DELETE_TOPICS" in deleted
    (denied,) = [each for each in shown if each["event"] == "denied" and each["api"] == "PRODUCE"]
    assert denied["rule"] == "DENY User:ANONYMOUS from * WRITE on Topic:LITERAL:t1"
    assert len(files(audited)) > 1
    assert {file.stat().st_mode & 0o777 for file in files(audited)} == {0o600}


def test_a_head_of_the_brokers_own_log_proves_the_lines_up_to_it(audited: Audited) -> None:
    """A hash that no line has does not."""
    command = Command("127.0.0.1:1")
    head = re.findall(
        r"audit log: line (\d+) of broker 1 has the hash ([0-9a-f]{64})", audited.log
    )[0]
    told = command("audit", "verify", str(audited.folder), "--head", head[1]).out
    proven = f"lines 1 to {head[0]} are those that were there when it was noted"
    assert f"line {head[0]} of broker 1 has the hash: {proven}" in told
    assert told.endswith(f"Not proven: lines behind line {head[0]}\n")
    spelled = f" {head[1].upper()} "
    assert _exit_code("audit", "verify", str(audited.folder), "--head", spelled) == 0
    assert _exit_code("audit", "verify", str(audited.folder), "--head", head[1][:10]) == 2
    assert _exit_code("audit", "verify", str(audited.folder), "--head", "0" * 64) == 3


def test_a_tampered_log_is_found_by_command_and_checker(audited: Audited, tmp_path: Path) -> None:
    """The example needs nothing but Python; exit codes are those of other verify commands."""
    copies = []
    for file in [*files(audited), audited.folder / "ottla-audit-1.head"]:
        copies.append(tmp_path / file.name)
        copies[-1].write_bytes(file.read_bytes())
    logs = [str(file) for file in copies[:-1]]
    assert _exit_code("audit", "verify", str(tmp_path)) == 0
    assert subprocess.run([sys.executable, CHECKER, *logs], check=False).returncode == 0
    copies[1].write_bytes(copies[1].read_bytes().replace(b"User:ANONYMOUS", b"User:somebody", 1))
    assert _exit_code("audit", "verify", str(tmp_path)) == 3
    assert subprocess.run([sys.executable, CHECKER, *logs], check=False).returncode == 3
    answer = subprocess.run(
        [sys.executable, "-m", "ottla.cli", "audit", "verify", str(tmp_path), "-o", "json"],
        check=False,
        capture_output=True,
    )
    (chain,) = json.loads(answer.stdout)["chains"]
    assert len(chain["problems"]) == 1
    os.unlink(copies[0])
    assert _exit_code("audit", "verify", str(tmp_path)) == 3
    checked = subprocess.run([sys.executable, CHECKER, *logs[2:]], check=False, capture_output=True)
    assert checked.returncode == 3
    assert b"are missing, and none says that retention did it" in checked.stdout


def test_what_verify_does_not_prove_it_names(audited: Audited, tmp_path: Path) -> None:
    """Lines of other brokers; a broker of whom the head file alone is there has lost its files."""
    for file in [*files(audited), audited.folder / "ottla-audit-1.head"]:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = Command("127.0.0.1:1")
    head = re.findall(r"head ([0-9a-f]{64})", command("audit", "verify", str(tmp_path)).out)[0]
    chain = Chain()
    other = tmp_path / "ottla-audit-2-00000000000000000001.log"
    other.write_bytes(chain.link({"event": "start", "broker": 2}))
    told = command("audit", "verify", str(tmp_path), "--head", head).out
    assert "broker 2: intact, lines 1 to 1" in told
    assert "there is no head file, or it is damaged" in told
    assert told.endswith("; the lines of other brokers (2)\n")
    (tmp_path / "ottla-audit-2.head").write_text(f"1 {chain.head}\n")
    other.unlink()
    found = subprocess.run(
        [sys.executable, "-m", "ottla.cli", "audit", "verify", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 3
    assert "the end is cut off: the head file knows line 1\nbroker 2: DAMAGED" in found.stdout


def test_the_checker_knows_crashes_and_what_brokers_found(tmp_path: Path) -> None:
    """A torn line that a later one records is in order; lines that were cut off are not."""
    log = tmp_path / "ottla-audit-1-00000000000000000001.log"
    chain, torn = Chain(), b'{"event":"den'
    start = chain.link({"event": "start", "broker": 1})
    record = {"event": "torn", "broker": 1, "bytes": len(torn), "sha256": hash_of(torn)}
    log.write_bytes(start + torn + b"\n" + chain.link(record))
    assert _checked(log) == 0
    chain.skip(5)
    missing = chain.link({"event": "missing", "broker": 1, "first": 3, "last": 5})
    log.write_bytes(log.read_bytes() + missing)
    assert _checked(log) == 3
    log.write_bytes(b"5\n" + start)
    assert _checked(log) == 3


def _checked(log: Path) -> int:
    return subprocess.run([sys.executable, CHECKER, log], check=False).returncode


def test_a_folder_without_an_audit_log_is_refused(tmp_path: Path) -> None:
    """With where to look."""
    said = Command("127.0.0.1:1").refused("audit", "verify", str(tmp_path))
    assert "has no audit log: name a file ottla-audit-" in said


def _exit_code(*words: str) -> int:
    command = [sys.executable, "-m", "ottla.cli", *words]
    return subprocess.run(command, check=False, capture_output=True).returncode


def test_a_number_of_lines_is_positive(tmp_path: Path) -> None:
    """Others are refused as words that mean nothing, and so is none at all."""
    for count in ("-3", "0"):
        assert "is not in the range" in Command("127.0.0.1:1").misused(
            "audit", "show", str(tmp_path), "-n", count
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--event", "unknown"), "is not one of 'denied', 'changed', 'login', 'login_failed'"),
        (("--principal", "bob"), "bob lacks its type: write User:bob"),
        (("--resource", "flights"), "write Topic:flights; types are Topic, Group"),
        (("--resource", "topic:flights"), "write Topic:flights;"),
    ],
)
def test_what_no_line_has_is_refused_with_what_was_meant(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """An empty answer would look as if nothing had happened."""
    answer = CommandHere("127.0.0.1:1").misused("audit", "show", str(tmp_path), *words)
    assert said in " ".join(answer.split())
