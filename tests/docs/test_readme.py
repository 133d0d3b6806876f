"""The README's commands work for a stranger, in the order in which they stand."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rig.paths import ROOT


def first_commands() -> list[str]:
    """The block after the one that installs and starts."""
    block = (ROOT / "README.md").read_text().split("```")[3]
    return [line.partition("  #")[0] for line in block.splitlines() if line]


def test_the_first_commands_need_nothing_but_a_broker(tmp_path: Path) -> None:
    """No file, topic or group that the reader does not have."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with subprocess.Popen(
        ["ottla", "start", "--port", "0", "-o", "json"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    ) as broker:
        try:
            assert broker.stdout is not None
            environment["OTTLA_BOOTSTRAP"] = json.loads(broker.stdout.readline())["bootstrap"]
            lines = [line for line in first_commands() if " -f " not in line]
            assert len(lines) >= 6
            for line in lines:
                done = subprocess.run(
                    ["sh", "-c", line],
                    cwd=tmp_path,
                    env=environment,
                    capture_output=True,
                    check=False,
                    timeout=250,
                )
                assert done.returncode == 0, (line, done)
        finally:
            broker.terminate()


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
    assert spellings == {"pip install ./ottla", "pip install 'ottla"}
    assert "pip install '.[" not in "".join(page.read_text() for page in pages)
