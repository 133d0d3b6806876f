"""Brokers run where calls of Linux are missing: in memory, on a disk, simulated."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.system.platforms import other_systems

ROOT = Path(__file__).parents[3]

IN_MEMORY = """
    import ottla.testing
    from ottla.client.sync import Producer
    with ottla.testing.Broker() as broker:
        with Producer(broker.bootstrap) as producer:
            producer.send("t", b"v")
        print("in memory")
"""

ON_DISK = """
    import ottla.testing
    from ottla.client.ranges import RangeClient
    from ottla.client.sync import Producer
    from ottla.base.errors import OttlaError
    settings = {"coordination.connect": "sqlite://" + str(folder / "store.sqlite")}
    data = folder / "data"
    data.mkdir()

    def count(broker):
        with RangeClient(broker.bootstrap) as client:
            for fetched in client.fetch_range("t", 0, 0, 1000):
                end = fetched.next_offset
            return end

    with ottla.testing.Broker(storage=data, settings=settings) as broker:
        with Producer(broker.bootstrap) as producer:
            for _ in range(1000):
                producer.send("t", b"v" * 1000)
        print("read", count(broker))
        try:
            ottla.testing.Broker(storage=data, settings=settings).start()
        except OttlaError as error:
            print("refused", "in use" in error.message or error.message)
    with ottla.testing.Broker(storage=data, settings=settings) as broker:
        print("read again", count(broker))
"""

SIMULATED = """
    from verify.simulation.__main__ import main
    assert main(["--seed", "1", "--minutes", "0.02"]) == 0
    print("simulated")
"""


def run_like(system: str, script: str, folder: Path) -> str:
    """What a Python prints that is made to look like another system's."""
    text = (
        "from pathlib import Path\n"
        "from tests.system.platforms import other_systems\n"
        f"other_systems.like({system!r})\n"
        f"folder = Path({str(folder)!r})\n"
    ) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("system", ["macos", "windows", "bare"])
def test_a_broker_in_memory_runs(system: str, tmp_path: Path) -> None:
    """A test suite on that system has its broker."""
    assert "in memory" in run_like(system, IN_MEMORY, tmp_path)


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_a_broker_on_a_disk_runs_and_keeps_its_folder_to_itself(
    system: str, tmp_path: Path
) -> None:
    """Records are read, and read again after a restart; a second broker is refused meanwhile."""
    told = run_like(system, ON_DISK, tmp_path)
    assert told.splitlines() == ["read 1000", "refused True", "read again 1000"]


def test_without_any_lock_a_broker_on_a_disk_runs(tmp_path: Path) -> None:
    """Nothing can keep a second broker out then; everything else works."""
    told = run_like(
        "bare",
        ON_DISK.replace("        try:", "        if False:").replace(
            "        except OttlaError as error:", "        if False:"
        ),
        tmp_path,
    )
    assert told.splitlines() == ["read 1000", "read again 1000"]


def test_macos_syncs_past_the_cache_of_the_drive(tmp_path: Path) -> None:
    """By F_FULLFSYNC: its fsync alone would not survive a power cut."""
    check = "\n    assert other_systems.SYNCED\n    print('synced')\n"
    assert "synced" in run_like("macos", ON_DISK + check, tmp_path)


def test_the_simulator_runs(tmp_path: Path) -> None:
    """It needs nothing of the system."""
    assert "simulated" in run_like("bare", SIMULATED, tmp_path)


def test_a_broker_process_starts_and_stops(tmp_path: Path) -> None:
    """Without signal handlers on the loop, it listens to signals all the same."""
    script = """
    import threading, signal
    from ottla.base.settings import BrokerSettings
    from ottla.broker.process.main import run
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}

    def on_ready(broker):
        print("ready")
        threading.Timer(0, signal.raise_signal, [signal.SIGINT]).start()

    run(BrokerSettings(settings), on_ready=on_ready)
    print("stopped")
    """
    assert run_like("windows", script, tmp_path).split() == ["ready", "stopped"]


# Guarded where they stand, by the line that uses them or the one before.
GUARDED = {
    "base/private_files.py": {"geteuid"},
    "base/system.py": None,
    "cli/start/several.py": None,
    "coordination/sqlite/file.py": {"O_NONBLOCK", "O_CLOEXEC"},
    "network/output.py": {"preadv", "writev"},
    "network/tls/context.py": {"memfd_create", "MFD_CLOEXEC"},
}


def test_calls_that_some_system_lacks_are_made_in_one_place() -> None:
    """`base/system.py` has a stand-in for each; elsewhere their use is guarded."""
    lacking = {*other_systems.NOT_ON_MACOS.split(), *other_systems.NOT_ON_WINDOWS.split()}
    source = ROOT / "src" / "ottla"
    found = set()
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if name in GUARDED and GUARDED[name] is None:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = node.value.id == "os" and node.attr in lacking
                if used and node.attr not in (GUARDED.get(name) or ()):
                    found.add(f"{name}: os.{node.attr}")
            if isinstance(node, ast.Import) and name != "base/file_lock.py":
                found |= {
                    f"{name}: import {alias.name}"
                    for alias in node.names
                    if alias.name in {"fcntl", "resource", "pwd", "grp", "termios"}
                }
    assert found == set()


def test_several_brokers_by_one_command_need_fork(tmp_path: Path) -> None:
    """Where there is none the refusal says how to start them."""
    script = """
    from ottla.base.errors import OttlaError
    from ottla.cli.start.plan import several
    from ottla.cli.start.several import Brokers
    try:
        Brokers(several(3, folder, "PLAINTEXT://127.0.0.1:0", {}), "%(message)s").start()
    except OttlaError as error:
        print("ottla broker run" in error.message, "broker-1.properties" in error.message)
    """
    assert run_like("windows", script, tmp_path).split() == ["True", "True"]
