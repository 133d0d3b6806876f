"""Runs the system's own tools, and says which of them is missing."""

import os
import shutil
import subprocess
from collections.abc import Sequence


class CommandFailed(RuntimeError):
    """A tool of the system refused; the message says what it was asked and what it said."""


def run(*words: str) -> str:
    """Run one command to its end and return what it printed. Raises CommandFailed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def missing(tools: Sequence[str]) -> str | None:
    """Why faults cannot be made here, or None if they can."""
    if os.geteuid() != 0:
        return "making namespaces and mounting disks needs root"
    for tool in tools:
        if shutil.which(tool) is None:
            return f"the system lacks `{tool}`"
    return None
