"""What the disk refuses ends a load with one sentence, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]

REMEDY = "or choose another folder"


def files_in(folder: Path) -> list[str]:
    """All files below the folder, hidden ones as well."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def flights(node: Node, make_topic: MakeTopic, produce: Produce) -> str:
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 200)
    return topic


def load_by_command(node: Node, topic: str, target: str, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "ottla.cli", "lake", "load", topic, "--to", target]
    command += ["--bootstrap", node.bootstrap, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stderr


def fill(disk: Path, spare_bytes: int) -> None:
    """Leave only so much of the disk free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(free - spare_bytes))


@pytest.fixture
def read_only(small_disk: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    yield small_disk
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_file_as_target_is_told(node: Node, flights: str, tmp_path: Path) -> None:
    target = tmp_path / "letter"
    target.write_text("Dear Ida")
    for wrong in (target, target / "table"):
        code, said = load_by_command(node, flights, str(wrong))
        assert code == 1
        assert f"ottla: {wrong} cannot be a folder: a file is at {target}" in said
        assert said.count("\n") == 1
    assert target.read_text() == "Dear Ida"


def test_read_only_target_is_told(node: Node, flights: str, read_only: Path) -> None:
    target = read_only / "table"
    code, said = load_by_command(node, flights, str(target))
    assert code == 1
    assert f"ottla: {target} cannot be written: its file system is mounted read-only" in said
    assert REMEDY in said
    assert said.count("\n") == 1


def test_missing_folder_of_a_task_is_told(node: Node, flights: str, tmp_path: Path) -> None:
    """As on a worker that does not have the target mounted."""
    target = tmp_path / "table"

    def run_elsewhere(planned: Sequence[Any]) -> list[Any]:
        (target / "data").rmdir()
        return run_here(planned)

    with pytest.raises(OttlaError, match=r"data.* is not there \(any more\); .* workers share"):
        ottla.lake.load(flights, str(target), bootstrap=node.bootstrap, runner=run_elsewhere)


# What is there before the first load.
OF_A_NEW_TABLE = ("_ottla/heads", "_ottla/format.json")


@pytest.mark.parametrize("spare_bytes", [0, 4096, 8192, 12288, 16384])
def test_full_disk_is_told_and_keeps_nothing_of_the_load(
    node: Node, flights: str, small_disk: Path, spare_bytes: int
) -> None:
    """Wherever space runs out: no file of the load stays, and with room the next one loads."""
    target = small_disk / "table"
    (target / "_ottla" / "manifests").mkdir(parents=True)
    fill(small_disk, spare_bytes)
    load = partial(ottla.lake.load, flights, str(target), bootstrap=node.bootstrap, runner=run_here)
    said = []
    try:
        load()
    except OttlaError as error:
        said.append(error.message)
    if spare_bytes <= 4096 or said:
        (message,) = said
        assert message.startswith("no space is left on the disk of")
        assert message.endswith("; make room there, or choose another folder")
        assert [name for name in files_in(target) if not name.startswith(OF_A_NEW_TABLE)] == []
    (small_disk / "filler").unlink()
    load()
    assert ottla.lake.verify(str(target), bootstrap=node.bootstrap).rows == 200


def test_full_disk_of_a_spark_task_is_one_sentence(
    node: Node, flights: str, spark: Any, small_disk: Path
) -> None:
    target = small_disk / "table"
    ottla.lake.load(flights, str(target), bootstrap=node.bootstrap, end="0:1,1:0", runner=run_here)
    before = files_in(target)
    fill(small_disk, 4096)  # For the marker of the load.
    with pytest.raises(OttlaError) as refused:
        ottla.lake.load(flights, str(target), bootstrap=node.bootstrap, spark_session=spark)
    assert refused.value.message == (
        "nothing was committed, since a task failed: no space is left on the disk of "
        f"{target}/data; make room there, or choose another folder"
    )
    assert files_in(target) == before


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_full_disk_at_each_step_of_a_commit(
    node: Node, flights: str, small_disk: Path, kind: Any
) -> None:
    """One sentence, no heap of metadata; and whether the load counts is said as it is."""
    target = small_disk / "table"
    load = partial(ottla.lake.load, flights, str(target), bootstrap=node.bootstrap, runner=run_here)
    load(end="0:1,1:0", format=kind)
    before = set(files_in(target))
    message = ""
    for spare_bytes in range(0, 100 << 10, 10 << 10):
        fill(small_disk, spare_bytes)
        try:
            load()
        except OttlaError as error:
            message = error.message
        else:
            break
        finally:
            (small_disk / "filler").unlink()
        assert re.search("no space is left on the disk of [^;]*; make room there, or", message)
        assert "\n" not in message
        if message.startswith(f"version 2 of {target} is committed and counts"):
            break
        # A manifest that no log names does not count, and goes with the next load.
        left = {name for name in files_in(target) if name not in before}
        assert all(name.startswith("_ottla/manifests/") for name in left), left
    assert message
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
    assert (found.proven, found.rows, found.loads) == (True, 200, 2)
