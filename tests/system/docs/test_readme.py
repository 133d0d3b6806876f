"""The README's commands work for a stranger, in the order in which they stand."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig.paths import ROOT
from rig.probe import free_port

_TEXT = (ROOT / "README.md").read_text()
_BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", _TEXT, re.DOTALL | re.MULTILINE)


def lines_of(marker: str) -> list[str]:
    """The lines of the shell block that contains `marker`, without comments."""
    (text,) = [text for kind, _, text in _BLOCKS if kind == "sh" and marker in text]
    return [line.partition("  #")[0].strip() for line in text.splitlines() if line]


def environment() -> dict[str, str]:
    """Ottla's commands are on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


@contextmanager
def started(words: list[str], folder: Path) -> Iterator[dict[str, str]]:
    """What `ottla start` serves, and the environment of the reader's second terminal."""
    variables = environment()
    with subprocess.Popen(
        ["ottla", "start", "-o", "json", *words],
        stdout=subprocess.PIPE,
        cwd=folder,
        env=variables,
    ) as broker:
        try:
            assert broker.stdout is not None
            variables["OTTLA_BOOTSTRAP"] = json.loads(broker.stdout.readline())["bootstrap"]
            variables["STARTED_PID"] = str(broker.pid)
            yield variables
        finally:
            broker.terminate()


def run(line: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """One line as a shell runs it."""
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=variables,
        capture_output=True,
        check=False,
        timeout=250,
    )


def test_the_first_commands_and_the_load_need_nothing_but_a_broker(tmp_path: Path) -> None:
    """No file, topic or group that the reader does not have."""
    lines = [*lines_of("ottla consume greetings"), *lines_of("ottla lake load")]
    assert lines.pop(lines.index("pip install 'ottla[lake]'"))
    assert len(lines) >= 5
    with started(["--port", "0"], tmp_path) as variables:
        for line in lines:
            done = run(line, tmp_path, variables)
            assert done.returncode == 0, (line, done)
    assert b"proven" in done.stdout


def test_a_killed_broker_is_replaced(tmp_path: Path) -> None:
    """The lines of the fail-over, with the broker of this test in the place of any other."""
    port = free_port()
    with started(["--brokers", "3", "--data", "three", "--port", str(port)], tmp_path) as variables:
        for line in lines_of("pkill"):
            if line.startswith("pkill"):
                kill_broker_2(int(variables["STARTED_PID"]))
                continue
            done = run(line, tmp_path, variables)
            # Health says by its exit code that a broker is missing.
            expected = {0, 1} if "health" in line or "doctor" in line else {0}
            assert done.returncode in expected, (line, done)


def kill_broker_2(parent: int) -> None:
    """As `pkill -9 -x 'ottla broker 2'`, among the children of `parent` alone."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (broker,) = [
        int(child)
        for child in children
        if Path(f"/proc/{child}/comm").read_text().strip() == "ottla broker 2"
    ]
    os.kill(broker, signal.SIGKILL)


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    """The fixture needs no configuration."""
    ((file, text),) = [(file, text) for kind, file, text in _BLOCKS if kind == "python"]
    (tmp_path / file).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout


def test_one_spelling_installs() -> None:
    """`./ottla` from a clone; extras by name, which leaves what is installed as it is."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    installs = [
        line.strip()
        for page in pages
        for line in page.read_text().splitlines()
        if line.strip().startswith("pip install") and "ottla" in line
    ]
    spellings = {line.split("#")[0].split("[")[0].strip() for line in installs}
    assert spellings == {
        "pip install ./ottla",
        "pip install 'ottla",
        "pip install --upgrade ./ottla",
        "pip install --target packages './ottla",  # For the executors of Spark.
    }
    assert "pip install '.[" not in "".join(page.read_text() for page in pages)
