"""A broker that is started again after a kill -9, over a ZooKeeper that counts in long ticks."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from rig import zookeeper as rig
from rig.broker import launch
from rig.probe import free_port, wait_until_serving
from rig.process import Process
from rig.zookeeper import Ensemble

from ottla.broker.cluster.old_session import SESSION_NOTE

# ZooKeeper's own example; no session of less than two of them is granted, and none ends before
# the next one begins.
TICK_MS = 3000
WAITING = "waiting for the end of this broker's last session"
ENDED = "this broker's last session has ended"
# Far more than a start takes, also on a machine with much else to do.
PATIENCE_S = 180
ATTEMPTS = 5


@pytest.fixture(scope="module")
def slow() -> Iterator[Ensemble]:
    """A server that ends no session of three seconds before six to nine are over."""
    if reason := rig.available():
        pytest.skip(reason)
    with rig.zookeeper(1, tick_ms=TICK_MS) as ensemble:
        yield ensemble


def settings(ensemble: Ensemble, name: str, more: Mapping[str, str]) -> dict[str, str]:
    address = f"zookeeper://{ensemble.hosts}/restart-{name}"
    return {"coordination.connect": address, "broker.session.timeout.ms": "3000", **more}


def run(ensemble: Ensemble, folder: Path, port: int, **more: str) -> Process:
    """A broker's process with its data in `folder`, in the cluster of the test's name."""
    return launch(folder, port, settings(ensemble, folder.parent.name, more))


def log_of(process: Process) -> str:
    return process.log.read_text()


def test_it_ends_its_last_session_and_does_not_wait(slow: Ensemble, tmp_path: Path) -> None:
    """It has the lock of its data, so whoever held that session is dead."""
    port = free_port()
    process = run(slow, tmp_path / "1", port)
    wait_until_serving(process, port)
    process.kill()
    process = run(slow, tmp_path / "1", port)
    try:
        wait_until_serving(process, port)
        assert WAITING not in log_of(process)
        assert "Traceback" not in log_of(process)
    finally:
        process.terminate()


def without_credential(line: str) -> str:
    return f"{line.split(maxsplit=1)[0]}\n"


def with_rubbish(line: str) -> str:
    number, _, *place = line.split()
    return f"{' '.join([number, 'rubbish', *place])}\n"


@pytest.mark.parametrize("change", [without_credential, with_rubbish])
def test_it_waits_as_long_as_the_ticks_take_and_says_so_once(
    slow: Ensemble, tmp_path: Path, change: Callable[[str], str]
) -> None:
    """Where the session cannot be ended, as after a power cut: six to nine seconds, two lines."""
    port = free_port()
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt) / "1"
        process = run(slow, folder, port)
        wait_until_serving(process, port)
        process.kill()
        note = folder / "logs" / SESSION_NOTE
        note.write_text("".join(map(change, note.read_text().splitlines())))
        process = run(slow, folder, port)
        try:
            wait_until_serving(process, port)
            said = (log_of(process).count(WAITING), log_of(process).count(ENDED))
        finally:
            process.terminate()
        # The machine may have stood still until the session was over.
        if said != (0, 0):
            break
    assert said == (1, 1)


def test_another_broker_of_the_same_id_is_refused_by_both_names(
    slow: Ensemble, tmp_path: Path
) -> None:
    """At once where its data are its own; the first one lives on."""
    first_port, second_port = free_port(), free_port()
    first = run(slow, tmp_path / "1", first_port)
    try:
        wait_until_serving(first, first_port)
        second = run(slow, tmp_path / "2", second_port)
        assert second.child.wait(PATIENCE_S) != 0
        for word in ("node.id 1", f":{first_port}", f":{second_port}"):
            assert word in log_of(second)
        assert WAITING not in log_of(second)
        assert "registration is gone" not in log_of(first)
    finally:
        first.terminate()


def test_a_copy_of_its_folder_does_not_end_the_session_of_the_living(
    server: Ensemble, tmp_path: Path
) -> None:
    """The note that came with the copy names another place: the copy waits, and is refused."""
    first_port, second_port = free_port(), free_port()
    first = run(server, tmp_path / "1", first_port)
    try:
        wait_until_serving(first, first_port)
        shutil.copytree(tmp_path / "1" / "logs", tmp_path / "2" / "logs")
        assert (tmp_path / "2" / "logs" / SESSION_NOTE).read_text().count(":") == 1
        second = run(server, tmp_path / "2", second_port)
        assert second.child.wait(PATIENCE_S) != 0
        for word in (f":{first_port}", f":{second_port}", "its session has not ended for 8.0 s"):
            assert word in log_of(second)
        assert log_of(second).count(WAITING) == 1
        assert "registration is gone" not in log_of(first)
    finally:
        first.terminate()
