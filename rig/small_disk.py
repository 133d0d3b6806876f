"""A disk that a test can fill: a fixture for all tests."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

MEBIBYTE = 1 << 20
SIZE_BYTES = 24 * MEBIBYTE


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty disk of SIZE_BYTES, in memory. Skips where it cannot be mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
