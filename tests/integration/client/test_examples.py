"""The examples run as they stand (P39 to P42)."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(name: str, bootstrap: str) -> str:
    """The last line an example prints."""
    command = [sys.executable, EXAMPLES / f"{name}.py", "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_database_change_subscription(bootstrap) -> None:
    """A cache that follows a table's changes ends up equal to it (P39)."""
    assert run("database_changes", bootstrap) == (
        "the cache equals the table: {'1': {'name': 'Ottla', 'city': 'Prague'}, "
        "'2': {'name': 'Max', 'city': 'Tel Aviv'}}"
    )


def test_event_sourcing(bootstrap) -> None:
    """Balances are what the events make of them (P40)."""
    assert run("event_sourcing", bootstrap) == "now: {'alice': 70, 'bob': 0}"


def test_journaling(bootstrap) -> None:
    """A lost state is restored from its journal, deleted keys excepted (P41)."""
    assert run("journal", bootstrap) == (
        "restored 4 keys: {'sensor-1': '96 degrees', 'sensor-2': '97 degrees', "
        "'sensor-3': '98 degrees', 'sensor-4': '99 degrees'}"
    )


def test_log_aggregation(bootstrap) -> None:
    """Every line arrives, in order per machine (P42)."""
    assert run("log_aggregation", bootstrap) == "3 logs of 200 lines each arrived in order"
