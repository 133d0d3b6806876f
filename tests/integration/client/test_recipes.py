"""The four recipes of delivery, each killed between its steps (P12, P13)."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client import sync

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

# Appends what is processed to a file; dies by SIGKILL before or after doing so for one record.
_PROCESS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from {recipe} import run
bootstrap, topic, group, path, die_at, count = sys.argv[2:]
def process(record):
    if {early} and record.offset == int(die_at):
        os.kill(os.getpid(), signal.SIGKILL)
    with open(path, "a") as file:
        file.write(f"{{record.offset}}\\n")
    if not {early} and record.offset == int(die_at):
        os.kill(os.getpid(), signal.SIGKILL)
run(bootstrap, topic, group, process, int(count))
"""

_STEPS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from exactly_once import run
bootstrap, topic, path, die_at, count = sys.argv[2:]
def step(name):
    if name == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
run(bootstrap, topic, path, step, int(count))
"""

_TRANSACTIONS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from exactly_once_topics import run
bootstrap, source, target, group, die_at, until = sys.argv[2:]
def step(name):
    if name == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
run(bootstrap, source, target, group, group, step, int(until))
"""


def child(script: str, *arguments: object) -> int:
    """The exit code of a process that runs `script`."""
    command = [sys.executable, "-c", script, str(EXAMPLES), *map(str, arguments)]
    done = subprocess.run(command, timeout=200, check=False, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def fill(bootstrap: str, topic: str, count: int) -> None:
    with sync.Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, key=b"k%d" % (number % 3))


def test_at_most_once_loses_the_record_in_hand_and_repeats_none(
    bootstrap, make_topic, group, tmp_path
) -> None:
    """Killed after the commit, before the work: the record is lost, nothing comes twice (P12)."""
    topic, path = make_topic(), tmp_path / "done"
    fill(bootstrap, topic, 10)
    script = _PROCESS.format(recipe="at_most_once", early=True)
    assert child(script, bootstrap, topic, group, path, 4, 10) == -signal.SIGKILL
    with_session_over(bootstrap, group)
    assert child(script, bootstrap, topic, group, path, -1, 5) == 0
    assert path.read_text().split() == ["0", "1", "2", "3", "5", "6", "7", "8", "9"]


def test_at_least_once_repeats_what_was_not_committed_and_loses_none(
    bootstrap, make_topic, group, tmp_path
) -> None:
    """Killed after the work and before the commit: the record comes again (P12)."""
    topic, path = make_topic(), tmp_path / "done"
    fill(bootstrap, topic, 10)
    script = _PROCESS.format(recipe="at_least_once", early=False)
    assert child(script, bootstrap, topic, group, path, 4, 10) == -signal.SIGKILL
    with_session_over(bootstrap, group)
    assert child(script, bootstrap, topic, group, path, -1, 10) == 0
    assert path.read_text().split() == [*map(str, range(5)), *map(str, range(10))]


@pytest.mark.parametrize(
    "die_at", ["before the transaction", "within the transaction", "after the transaction"]
)
def test_offsets_stored_with_the_output_make_it_exactly_once(
    bootstrap, make_topic, tmp_path, die_at
) -> None:
    """Killed at any step: after a restart every record counts once (P12, P13)."""
    topic, path = make_topic(), tmp_path / "sums.db"
    fill(bootstrap, topic, 30)
    assert child(_STEPS, bootstrap, topic, path, die_at, 30) == -signal.SIGKILL
    assert child(_STEPS, bootstrap, topic, path, "never", 30) == 0
    sums = dict(sqlite3.connect(path).execute("SELECT key, total FROM sums"))
    assert sums == {"k0": 135, "k1": 145, "k2": 155}


@pytest.mark.parametrize("die_at", ["within the transaction", "after the transaction"])
def test_transactions_pass_records_on_exactly_once(bootstrap, make_topic, group, die_at) -> None:
    """Killed at any step: readers of what is committed see each record once (P13)."""
    source, target = make_topic(), make_topic()
    fill(bootstrap, source, 30)
    names = (bootstrap, source, target, group)
    assert child(_TRANSACTIONS, *names, die_at, 30) == -signal.SIGKILL
    with_session_over(bootstrap, group)
    assert child(_TRANSACTIONS, *names, "never", 30) == 0
    found: list[bytes | None] = []
    with sync.Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(target, 0)])
        # The copies, then a last one that shows that no more came before it.
        with sync.Producer(bootstrap) as producer:
            producer.send(target, b"last")
        while b"last" not in found:
            found += [record.value for record in consumer.poll()]
    assert found == [*(b"%d" % number for number in range(30)), b"last"]


def with_session_over(bootstrap: str, group: str) -> None:
    """Let the killed member be gone at once, as it would be when its session ends."""
    with sync.Admin(bootstrap) as admin:
        (described,) = admin.groups.describe_all([group])
        admin.groups.remove_members(group, [member.member_id for member in described.members])
