"""Every complaint has a command that answers it where it is true, or plainly none."""

import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Answer, Command
from tests.system.cli.threaded_cluster import ThreadedCluster
from tests.system.docs.complaint_scenes import OF_CLUSTER, SCENES, Scene

ROOT = Path(__file__).parents[3]
COMPLAINTS: list[dict[str, Any]] = tomllib.loads((ROOT / "docs/complaints.toml").read_text())[
    "complaint"
]
ANSWERED = [one for one in COMPLAINTS if "command" in one]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = {"broker.session.timeout.ms": "60000"}
    with (
        ottla.testing.Broker() as broker,
        ThreadedCluster(settings) as cluster,
    ):
        yield Scene(broker, cluster, tmp_path_factory.mktemp("complaints"))


def answer_to(scene: Scene, one: dict[str, Any], given: bytes | None) -> Answer:
    """Run the command of a complaint as it stands on the page."""
    program, *words = shlex.split(one["command"])
    is_of_cluster = one["number"] in OF_CLUSTER
    broker = scene.own or scene.broker
    bootstrap = scene.cluster.bootstrap if is_of_cluster else broker.bootstrap
    if program == "pytest":
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)
    if "lines" in one:
        with subprocess.Popen(
            CommandHere(bootstrap).line(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=CommandHere(bootstrap).environment,
        ) as running:
            assert running.stdout is not None
            lines = [running.stdout.readline() for _ in range(one["lines"])]
            running.send_signal(signal.SIGINT)
            return Answer(running.wait(), "".join(lines), "")
    if words[0] == "mcp":
        return Command(bootstrap).try_to(*words, stdin=given or b"")
    return CommandHere(bootstrap).try_to(*words, stdin=given or b"")


@pytest.mark.parametrize("one", ANSWERED, ids=lambda one: str(one["number"]))
def test_command_answers_the_complaint(
    scene: Scene, one: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what helps, where the complaint is true; and ends with the code of the page."""
    monkeypatch.chdir(scene.folder)
    scene.own = None
    with scene.until_answered:
        given = SCENES[one["number"]](scene)
        answer = answer_to(scene, one, given)
    text = answer.out + answer.error
    assert answer.code == one.get("exits", 0), text
    assert [each for each in one["says"] if each not in text] == [], text


def test_all_complaints_are_there_and_most_have_a_command() -> None:
    """The 64 of two studies, in order; each with a source, and an answer or plainly none."""
    assert [one["number"] for one in COMPLAINTS] == list(range(1, 65))
    for one in COMPLAINTS:
        assert ("answer" in one and "says" in one) == ("command" in one) == ("none" not in one), one
        assert one["seen"].startswith("https://"), one
    assert len(ANSWERED) >= 42
    assert set(SCENES) == {one["number"] for one in ANSWERED}
