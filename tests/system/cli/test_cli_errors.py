"""Errors of the command, as people and programs get them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.system.cli.ottla_command import Answer, Command


def failure(answer: Answer) -> dict[str, Any]:
    """The object on standard error, and nothing beside it."""
    assert answer.out == ""
    told = json.loads(answer.error)
    assert list(told) == ["error"]
    assert list(told["error"]) == ["code", "message", "remedy"]
    error: dict[str, Any] = told["error"]
    return error


def test_with_o_json_an_error_is_an_object(run: Command) -> None:
    """Kafka's name of the error, what happened, what helps; the exit code is the same."""
    plain = run.try_to("topic", "describe", "thin")
    told = run.try_to("topic", "describe", "thin", "-o", "json")
    assert (plain.code, told.code) == (1, 1)
    assert plain.error.startswith("ottla: there is no topic 'thin'; ")
    error = failure(told)
    assert (error["code"], error["message"]) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "there is no topic 'thin'",
    )
    assert plain.error == (
        f"ottla: {error['message']}; {error['remedy']} (UNKNOWN_TOPIC_OR_PARTITION)\n"
    )


def test_a_broker_that_is_not_there_is_an_object(run: Command) -> None:
    """Also where no cluster answers, with what to check."""
    error = failure(run.try_to("topic", "list", "-o", "json", "-b", "127.0.0.1:1"))
    assert error["code"] == "NETWORK_EXCEPTION"
    assert "cannot connect to 127.0.0.1:1" in error["message"]
    assert error["remedy"]


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "create", "-o", "json"),
        ("topic", "list", "--no-such-option", "--output=json"),
        ("no-such-noun", "-o", "json"),
        ("consume", "t", "--from", "nowhere", "--json"),
    ],
)
def test_wrong_words_are_an_object_with_their_own_exit_code(
    run: Command, words: tuple[str, ...]
) -> None:
    """USAGE, exit code 2, and which help to read."""
    answer = run.try_to(*words)
    assert answer.code == 2
    error = failure(answer)
    assert error["code"] == "USAGE"
    assert error["message"]
    assert "--help" in error["remedy"]


def test_an_offset_beyond_the_end_is_said(run: Command, name: str) -> None:
    """Where the log ends, on standard error; nothing is printed, and that is no failure."""
    run("produce", name, stdin="a\nb\nc\n")
    answer = run("consume", name, "--from", "7")
    assert answer.out == ""
    assert answer.error == (f"there is no record from offset 7 on yet: {name}-0 ends at offset 3\n")
    assert run("consume", name, "--from", "3").error.endswith("ends at offset 3\n")
    there = run("consume", name, "--from", "2")
    assert (there.out, there.error) == ("c\n", "")


def test_a_time_after_all_records_is_said(run: Command, name: str) -> None:
    """As an offset; where one partition has such records, the others are no news."""
    run("produce", name, stdin="a\n")
    answer = run("consume", name, "--from", "2100-01-01")
    assert answer.error == (
        f"there is no record of that time or later yet: {name}-0 ends at offset 1\n"
    )
    assert run("consume", name, "--from", "2000-01-01").error == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_an_output_that_cannot_be_written_is_a_sentence() -> None:
    """The disk on which the output goes is full: no traceback, and exit code 1."""
    command = Command("localhost:1")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command.line("config", "explain", "retention.ms"),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env=command.environment,
        )
    assert done.stderr.decode() == (
        "ottla: cannot write the output: No space left on device; "
        "make room where it goes (KAFKA_STORAGE_ERROR)\n"
    )
    assert done.returncode == 1


def test_closed_standard_streams_are_empty_ones() -> None:
    """As a service manager may start the command: without input, output or a place for errors."""
    command = Command("localhost:1")
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            [
                "sh",
                "-c",
                f'"$@" {closed}',
                "sh",
                *command.line("config", "explain", "retention.ms"),
            ],
            capture_output=True,
            check=False,
            env=command.environment,
        )
        assert (done.returncode, done.stderr) == (0, b"")
