"""Builds Prometheus' promtool, which checks rules and the text that an endpoint serves.

`go install` refuses the module for its `replace` lines, so a module of ours requires it.
"""

import os
import shutil
import subprocess
from pathlib import Path

from rig.paths import RIG

VERSION = "v0.316.0"
_PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"


def why_unavailable() -> str | None:
    """Return why promtool cannot be built here; None if it can, or has been."""
    if _binary().exists() or shutil.which("go"):
        return None
    return "Go is missing, with which promtool is built"


def promtool() -> Path:
    """Return promtool, built at the first call: that takes minutes."""
    binary = _binary()
    if not binary.exists():
        work = binary.parent
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "go.mod").exists():
            _go(work, "mod", "init", "rig/promtool")
        _go(work, "get", f"{_PACKAGE}@{VERSION}")
        made = work / f"promtool.{os.getpid()}"
        # Without the clouds in which Prometheus looks for targets, it is half as large.
        _go(work, "build", "-tags", "remove_all_sd", "-ldflags=-s -w", "-o", str(made), _PACKAGE)
        made.replace(binary)
    return binary


def _binary() -> Path:
    return RIG / f"promtool-{VERSION}" / "promtool"


def _go(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"go {' '.join(arguments)}: {done.stderr[-2_000:]}")
