"""Shells complete names of topics and groups."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ottla_command import Command
from rig.probe import free_port


def completed(run: Command, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    line = ["ottla", *words]
    done = subprocess.run(
        [Path(sys.executable).with_name("ottla")],
        env={
            **run.environment,
            "_OTTLA_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(line),
            "COMP_CWORD": str(len(line) - 1),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "describe"),
        ("topic", "delete"),
        ("produce",),
        ("consume", "-f"),
        ("topic", "alter"),
    ],
    ids=" ".join,
)
def test_a_topic_is_completed(
    run: Command, make_topic: Callable[..., str], words: tuple[str, ...]
) -> None:
    """By the cluster that the command would talk to."""
    topic = make_topic()
    assert topic in completed(run, *words, topic[:5])
    elsewhere = Command(f"127.0.0.1:{free_port()}")
    assert completed(elsewhere, *words, "-b", run.bootstrap, topic[:5]).count(topic) == 1


@pytest.mark.parametrize("verb", ["describe", "reset", "delete"])
def test_a_group_is_completed(run: Command, make_topic: Callable[..., str], verb: str) -> None:
    """Also one that has no members."""
    topic = make_topic()
    run("produce", topic, stdin="a\n")
    run("consume", topic, "--group", f"{topic}-readers")
    assert completed(run, "group", verb, topic) == [f"{topic}-readers"]


def test_nothing_is_said_where_no_broker_answers() -> None:
    """The command itself will say it."""
    assert completed(Command(f"127.0.0.1:{free_port()}"), "topic", "describe", "f") == []
