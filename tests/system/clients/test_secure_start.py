"""`ottla start --secure`: what it prints is typed as it stands, by each client, and works."""

import contextlib
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, TOPICS, Tools

TOOLS = {"kafka-topics.sh": TOPICS, "kafka-console-producer.sh": CONSOLE_PRODUCER}
OTTLA = [sys.executable, "-m", "ottla.cli"]


@contextlib.contextmanager
def started(data: Path, *words: str) -> Iterator[list[str]]:
    """The lines that a secure broker prints until it serves; it is stopped in order."""
    line = [*OTTLA, "start", "--secure", "--port", "0", "--data", str(data), *words]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=(data.parent / "log").open("a"), text=True
    ) as broker:
        assert broker.stdout is not None
        printed: list[str] = []
        try:
            # The last one lets a first user read.
            while "ottla acl add" not in "".join(printed[-1:]):
                said = broker.stdout.readline()
                assert said, (data.parent / "log").read_text()
                printed.append(said.rstrip("\n"))
            yield printed
            broker.send_signal(signal.SIGINT)
            assert broker.wait(120) == 0
        finally:
            broker.kill()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    # A folder whose name a shell and Java's properties would read otherwise, if it were not quoted.
    with started(tmp_path_factory.mktemp("a folder") / "data") as lines:
        yield lines


def block(printed: list[str], heading: str) -> list[str]:
    """The lines under a heading, as a reader copies them."""
    begin = next(index for index, line in enumerate(printed) if line.startswith(heading)) + 1
    lines = []
    for line in printed[begin:]:
        if not line.startswith("  "):
            break
        lines.append(line.strip())
    assert lines
    return lines


def run_python(lines: list[str], *more: str) -> str:
    """What a program of these lines prints."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*lines, *more])],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_our_command_reaches_the_broker_by_the_lines_for_it(printed: list[str]) -> None:
    """And makes a user, who may do nothing until an ACL says so."""
    lines = block(printed, "ottla:")
    assert lines[1] == "ottla topic list"
    ottla = " ".join(map(shlex.quote, OTTLA))
    script = "\n".join(
        [
            *(line.replace("ottla ", f"{ottla} ", 1) for line in lines if "export" not in line),
            f"echo hello | {ottla} produce ours",
            f"{ottla} consume ours -n 1",
            f"echo a-password | {ottla} user add bob",
            f"{ottla} acl explain User:bob read topic:ours",
        ]
    )
    done = subprocess.run(
        ["sh", "-ec", f"{lines[0]}\n{script}"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello\n" in done.stdout
    assert "made user bob" in done.stdout
    assert "no ACL allows it" in done.stdout


def test_kafkas_tools_reach_it_by_the_lines_for_them(printed: list[str], jvm: Tools) -> None:
    """They list topics, produce, and consume what they produced."""
    listing, producing = (shlex.split(line) for line in block(printed, "Kafka's tools"))
    assert jvm.run(TOOLS[producing[0]], *producing[1:], stdin=b"one\ntwo\n").exit_code == 0
    assert "greetings" in jvm.run(TOOLS[listing[0]], *listing[1:]).ok()
    words = [*producing[1:], "--from-beginning", "--max-messages", "2"]
    read = jvm.run(CONSOLE_CONSUMER, *words)
    assert read.lines() == ["one", "two"], read


def test_librdkafka_reaches_it_by_the_lines_for_it(printed: list[str]) -> None:
    """With the authority's PEM, and the host name compared."""
    lines = block(printed, "confluent-kafka")
    said = run_python(
        ["import confluent_kafka", *lines],
        "producer.produce('librdkafka', b'x')",
        "print(producer.flush(120), 'librdkafka' in producer.list_topics(timeout=60).topics)",
    )
    assert said == "0 True\n"


def test_kafka_python_reaches_it_by_the_lines_for_it(printed: list[str]) -> None:
    """Its record is acknowledged."""
    lines = block(printed, "kafka-python")
    said = run_python(
        ["import kafka", *lines], "print(producer.send('python', b'x').get(120).offset)"
    )
    assert said == "0\n"


def test_aiokafka_reaches_it_by_the_lines_for_it(printed: list[str]) -> None:
    """With the password that the lines before read; its record is acknowledged."""
    (password,) = [line for line in block(printed, "kafka-python") if "password = " in line][:1]
    context, producer = block(printed, "aiokafka")
    said = run_python(
        ["import aiokafka, aiokafka.helpers, asyncio", password, context],
        "async def main():",
        f"    {producer}",
        "    await producer.start()",
        "    print((await producer.send_and_wait('aio', b'x')).offset)",
        "    await producer.stop()",
        "asyncio.run(main())",
    )
    assert said == "0\n"


def test_the_lines_for_a_first_user_make_one_who_may_read(printed: list[str]) -> None:
    """One topic and nothing else."""
    lines = block(printed, "A first user")
    ottla = " ".join(map(shlex.quote, OTTLA))
    script = [line.replace("ottla ", f"echo a-password | {ottla} ", 1) for line in lines]
    explain = f"{ottla} acl explain User:alice read topic:greetings"
    done = subprocess.run(
        ["sh", "-ec", "\n".join([block(printed, "ottla:")[0], *script, explain])],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "an ACL allows it" in done.stdout


def test_clients_without_the_authority_or_the_password_are_refused(printed: list[str]) -> None:
    """Nothing is served in the clear, to anonymous clients, or by a wrong password."""
    address = re.search(r"[\w.]+:\d+", printed[0])
    assert address is not None
    script = (
        "import confluent_kafka.admin, sys\n"
        "for change in ({'security.protocol': 'plaintext'}, {'sasl.password': 'x'},\n"
        "               {'ssl.ca.location': '/etc/hostname'}, {'security.protocol': 'ssl'}):\n"
        "    try:\n"
        "        client = confluent_kafka.admin.AdminClient({**settings, **change})\n"
        "        print(client.list_topics(timeout=3))\n"
        "    except confluent_kafka.KafkaException:\n"
        "        print('refused')"
    )
    lines = block(printed, "confluent-kafka")[:2]
    assert run_python([*lines, script]) == "refused\n" * 4


def test_the_second_start_has_the_same_password_and_authority(tmp_path: Path) -> None:
    """And neither the console nor a log line shows a secret."""
    data = tmp_path / "data"
    kept = ("admin.password", "ca.pem", "ca.key", "server.pem", "client.properties")
    with started(data) as first:
        secret = (data / "admin.password").read_text().strip()
        before = {name: (data / name).read_bytes() for name in kept}
    with started(data) as second:
        assert {name: (data / name).read_bytes() for name in kept} == before
        said = run_python(
            ["import kafka", *block(second, "kafka-python")],
            "print(producer.send('again', b'x').get(120).offset)",
        )
        assert said == "0\n"
    assert len(secret) == 32
    assert secret not in "\n".join([*first, *second, (tmp_path / "log").read_text()])
