"""`ottla start` with several brokers, for tests of what becomes of their processes."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.cli.ottla_command import Command

PATIENCE_S = 200


@contextmanager
def started(data: Path, *words: str) -> Iterator[tuple[Command, "subprocess.Popen[str]"]]:
    """Brokers, and the command that talks to them; nothing of them is left at the end."""
    anyone = Command("localhost:1")
    # None is to be taken for dead because the machine stood still for a moment.
    calm = ("--set", "broker.session.timeout.ms=60000")
    line = anyone.line("start", "--port", "0", "--data", str(data), *calm, *words)
    with subprocess.Popen(
        [*line, "-o", "json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=anyone.environment,
    ) as starter:
        assert starter.stdout is not None
        first = starter.stdout.readline()
        assert first, starter.communicate()[1]
        left = children(starter.pid)
        try:
            yield Command(json.loads(first)["bootstrap"]), starter
        finally:
            # Whoever is left ends with the starter.
            starter.kill()
            until(lambda: not any(map(is_alive, left)))


def children(process: int) -> list[int]:
    """The processes started by one, in the order of their ids."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        _, _, rest = text.rpartition(")")
        state, parent = rest.split()[:2]
        if int(parent) == process and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`, as long as it may take on a busy machine."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
