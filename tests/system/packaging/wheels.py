"""The wheel of these sources, and programs that use it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rig.paths import ROOT

# What a build needs of the repository.
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("*.so", "__pycache__", "_compiled.json", "*.egg-info")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """The wheel, built in `folder` with the tools that are here, the codec not compiled.

    A folder where it was built before is built anew, with what the earlier build left there.
    """
    if not (folder / "src").exists():
        for name in SOURCES:
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "src", folder / "src", ignore=BUILT)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps")
    run(*pip, "--no-build-isolation", "-w", "out", ".", cwd=folder, OTTLA_PURE="1")
    (built,) = (folder / "out").glob("*.whl")
    return built
