"""Shells complete names of topics, partitions, groups, brokers and transactional ids."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.probe import free_port

from ottla.client import sync
from tests.system.cli.ottla_command import Command


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
        ("partition", "plan"),
        ("why", "leader"),
        ("dlq", "list"),
        ("lake", "load"),
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


@pytest.mark.parametrize(
    "words",
    [
        ("group", "describe"),
        ("group", "reset"),
        ("group", "delete"),
        ("why", "rebalance"),
        ("consume", "t", "-g"),
    ],
    ids=" ".join,
)
def test_a_group_is_completed(
    run: Command, make_topic: Callable[..., str], words: tuple[str, ...]
) -> None:
    """Also one that has no members."""
    topic = make_topic()
    run("produce", topic, stdin="a\n")
    run("consume", topic, "--group", f"{topic}-readers")
    assert completed(run, *words, topic) == [f"{topic}-readers"]


@pytest.mark.parametrize(
    "words", [("txn", "hanging", "--topic"), ("group", "reset", "g", "--topic")], ids=" ".join
)
def test_the_topic_of_an_option_is_completed(
    run: Command, make_topic: Callable[..., str], words: tuple[str, ...]
) -> None:
    """As that of an argument."""
    topic = make_topic()
    assert completed(run, *words, topic) == [topic]


def test_a_partition_is_completed_after_its_topic(
    run: Command, make_topic: Callable[..., str]
) -> None:
    """The topic alone would not be taken by `why`."""
    topic = make_topic(partitions=2)
    assert completed(run, "why", "leader", f"{topic}-") == [f"{topic}-0", f"{topic}-1"]
    assert f"{topic}-1" in completed(run, "partition", "status", topic)


@pytest.mark.parametrize("verb", ["drain", "remove", "restart"])
def test_a_broker_is_completed_by_its_id(run: Command, verb: str) -> None:
    """Of those that live."""
    assert completed(run, "broker", verb, "") == ["0"]


def test_a_transactional_id_is_completed(run: Command, make_topic: Callable[..., str]) -> None:
    """Also one whose transaction has ended."""
    topic = make_topic()
    with sync.Producer(run.bootstrap, transactional_id=f"{topic}-copier") as producer:
        producer.init_transactions()
    for verb in ("describe", "abort"):
        assert completed(run, "txn", verb, topic) == [f"{topic}-copier"]


def test_nothing_is_said_where_no_broker_answers() -> None:
    """The command itself will say it."""
    assert completed(Command(f"127.0.0.1:{free_port()}"), "topic", "describe", "f") == []
