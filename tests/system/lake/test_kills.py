"""Loads killed with -9 at any step and any moment lose nothing and double nothing."""

import subprocess
import sys

import pytest
from rig.paths import ROOT

from tests.system.lake.kills.__main__ import FORMATS


@pytest.mark.parametrize("form", FORMATS)
def test_killed_loads_lose_and_double_nothing(form: str) -> None:
    """Four kinds of topics, read by delta-rs, pyiceberg and DuckDB (P12, P13, P14).

    In a process of its own, which forks for each load: libraries that other tests have used do not
    survive a fork. `python -m tests.system.lake.kills --count 500` kills more of them.
    """
    command = [sys.executable, "-m", "tests.system.lake.kills", "--count", "16", "--formats", form]
    command += ["--victims", "loader", "--verbs", "load"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("4 kills") == 4
    assert done.stdout.endswith("16 kills: right\n")


def test_a_broker_that_is_killed_costs_nothing() -> None:
    """It dies at steps of follows, and comes back with its files."""
    command = [
        sys.executable,
        "-m",
        "tests.system.lake.kills",
        "--count",
        "4",
        "--formats",
        "delta",
    ]
    command += ["--victims", "broker", "--verbs", "follow"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("4 kills: right\n")
