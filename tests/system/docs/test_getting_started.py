"""The tutorial runs as it stands, block by block, and prints what stands beside it.

In an environment that is empty at first: what the page uses and does not install is not there.
"""

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rig.probe import free_port, wait_until_serving
from rig.process import Process, start

from .empty_environment import Environment

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "tutorial" / "getting-started.md"
_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OPEN = "…"


@dataclass(frozen=True)
class Block:
    kind: str
    file: str
    text: str
    # What the page says it prints, or "" where it says nothing.
    expected: str


def blocks() -> list[Block]:
    """All blocks that run, each with the output that follows it on the page."""
    found: list[Block] = []
    for kind, file, text in _BLOCK.findall(PAGE.read_text()):
        if kind == "text":
            found.append(replace(found.pop(), expected=text))
        else:
            found.append(Block(kind, file, text, ""))
    return found


class Tutorial:
    """A folder, a broker that a block started, and the blocks run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.secure_port = free_port()
        self.environment: Environment | None = None
        # The last one is that of which the page shows the words.
        self.brokers: list[Process] = []

    def here(self, text: str) -> str:
        """The page speaks of ports 9092 and 9093; a test takes some that are free."""
        for shown, port in ((9092, self.port), (9093, self.secure_port)):
            for host in ("localhost", "127.0.0.1"):
                text = text.replace(f"{host}:{shown}", f"127.0.0.1:{port}")
        return text.replace("--port 9093", f"--port {self.secure_port}")

    def run(self, block: Block) -> str:
        """What the block prints."""
        text = self.here(block.text)
        if block.file:
            (self.folder / block.file).write_text(text)
            return ""
        if block.kind == "python":
            return self.output([self.active.python, "-c", text])
        lines = [line for line in text.splitlines() if not self.set_up(line)]
        return self.output(["sh", "-ec", "\n".join(lines)])

    def set_up(self, line: str) -> bool:
        """Whether a line is done otherwise: packages are linked, the broker is to stay."""
        if line.startswith("python3 -m venv "):
            self.environment = Environment(self.folder / line.rsplit(maxsplit=1)[-1])
            return True
        if line.startswith(". "):
            assert line == f". {self.active.bin.parent.name}/bin/activate"
            return True
        if line.startswith("pip install "):
            for wanted in shlex.split(line)[2:]:
                self.active.pip_install(wanted)
            return True
        if line.startswith("ottla start"):
            words = shlex.split(line)[2:] or ["--port", str(self.port)]
            command: list[str | Path] = [self.active.bin / "ottla", "start", *words]
            log = self.folder / f"start-{len(self.brokers)}.txt"
            broker = start(command, log, env=self.active.variables(), cwd=self.folder)
            self.brokers.append(broker)
            # A secure one is ready when it prints what the page shows.
            if "--secure" not in words:
                wait_until_serving(broker, int(words[-1]))
            return True
        return False

    @property
    def active(self) -> Environment:
        """The environment that the page has made by now."""
        assert self.environment is not None, "the page uses an environment before it makes one"
        return self.environment

    def told_by_broker(self, block: Block) -> str:
        """What the broker prints, which it may do after it has begun to serve."""
        broker = self.brokers[-1]
        deadline_s = time.monotonic() + 120
        printed = broker.log_tail()
        while not matches(printed, self.here(block.expected)) and time.monotonic() < deadline_s:
            time.sleep(0.05)
            printed = broker.log_tail()
        return printed

    def output(self, command: list[str | Path]) -> str:
        env = self.active.variables(OTTLA_BOOTSTRAP=f"127.0.0.1:{self.port}")
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[Tutorial]:
    made = Tutorial(tmp_path)
    yield made
    for broker in made.brokers:
        assert broker.terminate() == 0


@pytest.mark.timeout(600)
def test_every_block_runs_and_prints_what_stands_beside_it(
    tutorial: Tutorial,
) -> None:
    """A reader who copies block after block sees what the page shows."""
    for block in blocks():
        printed = tutorial.run(block)
        if "\nottla start" in block.text:
            printed = tutorial.told_by_broker(block)
        assert matches(printed, tutorial.here(block.expected)), (block.text, printed)


def test_the_page_has_the_blocks_it_promises() -> None:
    """Install, start, produce, consume, a client, groups, a load, its proof, a test."""
    text = "\n".join(block.text for block in blocks())
    for promised in (
        "pip install ./ottla\n",
        "ottla start\n",
        "ottla produce ",
        "ottla consume ",
        "confluent_kafka",
        "ottla group ",
        "ottla lake load ",
        "ottla lake verify ",
        "pytest -q ",
    ):
        assert promised in text


def test_what_no_command_installs_is_not_there(tmp_path: Path) -> None:
    """The suite has it, the reader has not: an import fails until a command has installed it."""
    environment = Environment(tmp_path / "tour")
    environment.pip_install("./ottla")

    def imports(module: str) -> bool:
        command = [environment.python, "-c", f"import {module}"]
        return (
            subprocess.run(command, capture_output=True, timeout=200, check=False).returncode == 0
        )

    assert imports("ottla.client")
    assert [imports(name) for name in ("confluent_kafka", "pytest", "pyarrow")] == [False] * 3
    environment.pip_install("confluent-kafka")
    environment.pip_install("./ottla[lake]")
    assert [imports(name) for name in ("confluent_kafka", "pytest", "pyarrow", "pyspark")] == [
        *(True, False, True, False)
    ]


def matches(printed: str, expected: str) -> bool:
    """Line by line, trailing blanks aside; `…` stands for anything within its line.

    A last line of `…` alone stands for all that follows.
    """
    if not expected:
        return True
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    wanted = [line.rstrip() for line in expected.rstrip().splitlines()]
    if wanted[-1] == _OPEN:
        del wanted[-1], lines[len(wanted) :]
    patterns = [".*".join(map(re.escape, line.split(_OPEN))) for line in wanted]
    return len(lines) == len(wanted) and all(map(re.fullmatch, patterns, lines))
