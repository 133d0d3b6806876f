"""The tutorial runs as it stands, block by block, and prints what stands beside it."""

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig.java import NoJava, java_home
from rig.probe import free_port, wait_until_serving
from rig.process import Process, start

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OPEN = "…"
LAKE = "Into a lake, exactly once"


@dataclass(frozen=True)
class Block:
    section: str
    kind: str
    file: str
    text: str
    # What the page says it prints, or "" where it says nothing.
    expected: str


def blocks() -> list[Block]:
    """All blocks that run, each with the output that follows it on the page."""
    found: list[Block] = []
    for section in PAGE.read_text().split("\n## ")[1:]:
        title = section.partition("\n")[0]
        for kind, file, text in _BLOCK.findall(section):
            if kind == "text":
                last = found.pop()
                found.append(Block(last.section, last.kind, last.file, last.text, text))
            else:
                found.append(Block(title, kind, file, text, ""))
    return found


class Tutorial:
    """A folder, a broker that a block started, and the blocks run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.broker: Process | None = None

    def here(self, text: str) -> str:
        """The page speaks of port 9092; a test takes one that is free."""
        return text.replace("localhost:9092", f"127.0.0.1:{self.port}").replace(
            "127.0.0.1:9092", f"127.0.0.1:{self.port}"
        )

    def run(self, block: Block) -> str:
        """What the block prints."""
        text = self.here(block.text)
        if block.file:
            (self.folder / block.file).write_text(text)
            return ""
        if block.kind == "python":
            return self.output([sys.executable, "-c", text])
        lines = [line for line in text.splitlines() if not self.set_up(line)]
        return self.output(["sh", "-ec", "\n".join(lines)])

    def set_up(self, line: str) -> bool:
        """Whether a line is done otherwise: packages are installed, the broker is to stay."""
        if line.startswith("pip install "):
            assert_installable(line.removeprefix("pip install ").strip("'"))
            return True
        if line == "ottla start":
            command: list[str | Path] = [
                Path(sys.executable).parent / "ottla",
                "start",
                "--port",
                str(self.port),
            ]
            self.broker = start(command, self.folder / "start.txt", cwd=self.folder)
            wait_until_serving(self.broker, self.port)
            return True
        return False

    def told_by_broker(self, block: Block) -> str:
        """What the broker prints, which it may do after it has begun to serve."""
        assert self.broker is not None
        deadline_s = time.monotonic() + 120
        printed = self.broker.log_tail()
        while not matches(printed, self.here(block.expected)) and time.monotonic() < deadline_s:
            time.sleep(0.05)
            printed = self.broker.log_tail()
        return printed

    def output(self, command: list[str]) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "OTTLA_BOOTSTRAP": f"127.0.0.1:{self.port}"}
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


def assert_installable(requirement: str) -> None:
    """What the page installs is this project, with an extra that it has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, _, extra = requirement.rstrip("]").partition("[")
    assert name == project["name"]
    assert not extra or extra in project["optional-dependencies"]


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[Tutorial]:
    made = Tutorial(tmp_path)
    yield made
    if made.broker is not None:
        assert made.broker.terminate() == 0


@pytest.mark.timeout(600)
def test_every_block_runs_and_prints_what_stands_beside_it(
    tutorial: Tutorial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who copies block after block sees what the page shows."""
    try:
        monkeypatch.setenv("JAVA_HOME", str(java_home()))
        no_java = ""
    except NoJava as reason:
        no_java = str(reason)
    for block in blocks():
        if no_java and block.section == LAKE:
            continue
        printed = tutorial.run(block)
        if block.text.rstrip().endswith("ottla start"):
            printed = tutorial.told_by_broker(block)
        assert matches(printed, tutorial.here(block.expected)), (block.text, printed)
    if no_java:
        pytest.skip(f"all but the lake was run: {no_java}")


def test_the_page_has_the_blocks_it_promises() -> None:
    """Install, start, produce, consume, a client, groups, a load, its proof, a test."""
    text = "\n".join(block.text for block in blocks())
    for promised in (
        "pip install ottla\n",
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


def matches(printed: str, expected: str) -> bool:
    """Line by line, trailing blanks aside; `…` stands for anything within its line."""
    if not expected:
        return True
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    wanted = [line.rstrip() for line in expected.rstrip().splitlines()]
    patterns = [".*".join(map(re.escape, line.split(_OPEN))) for line in wanted]
    return len(lines) == len(wanted) and all(map(re.fullmatch, patterns, lines))
