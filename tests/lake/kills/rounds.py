"""Rounds of a load that is killed: after a step of it, or at a moment of its own.

A process is forked for each load, so that a round takes a fraction of a second. What the table
holds in the end is read by other programs: delta-rs, pyiceberg, and DuckDB over the files.
"""

import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import duckdb

import ottla.lake
from tests.lake.kills.topics import Row, Topic, ledgers_wrong

# All of them together; a format has some of its own, and does not meet the others.
STEPS = (
    "planned",
    "files written",
    "manifest stored",
    "manifest offered",
    "manifest written",
    "record written",
    "head written",
    "checkpoint written",
)
_PATIENCE_S = 250
_RECORDS = 60


@dataclass
class Tally:
    """How many loads ended how."""

    killed: Counter[str] = field(default_factory=Counter)
    ended: int = 0

    @property
    def kills(self) -> int:
        return sum(self.killed.values())


def play(topic: Topic, folder: Path, form: str, kills: int, chance: random.Random) -> Tally:
    """Write and load, until so many loads were killed; then load the rest."""
    tally = Tally()
    span_s = 0.3
    while tally.kills < kills:
        topic.write(_RECORDS)
        step = chance.choice([*STEPS, *(["any moment"] * 3)])
        began = time.monotonic()
        if step == "any moment":
            died = _load(topic, folder, form, None, chance.uniform(0.0, span_s))
        else:
            died = _load(topic, folder, form, step, None)
        if died:
            tally.killed[step] += 1
        else:
            tally.ended += 1
            span_s = 0.2 * span_s + 0.8 * (time.monotonic() - began)
    assert not _load(topic, folder, form, None, None), "the last load was not to be killed"
    return tally


def _load(topic: Topic, folder: Path, form: str, step: str | None, after_s: float | None) -> bool:
    """Load in a process of its own; whether it was killed."""
    pid = os.fork()
    if pid == 0:
        os._exit(_loaded(topic, folder, form, step))
    if after_s is not None:
        time.sleep(after_s)
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGABRT)
        time.sleep(0.002)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}"
        return True
    assert os.WEXITSTATUS(status) == 0, "a load failed; its error is above"
    return False


def _loaded(topic: Topic, folder: Path, form: str, step: str | None) -> int:
    def kill(done: str) -> None:
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        ottla.lake.load(
            topic.name,
            str(folder),
            bootstrap=topic.bootstrap,
            runner=ottla.lake.run_here,
            format=form,  # type: ignore[arg-type]
            accept_loss=True,
            on_step=kill,
        )
    except BaseException as error:  # noqa: BLE001  # A forked process must not go on as a test.
        os.write(2, f"{error!r}\n".encode())
        return 1
    return 0


def problems(topic: Topic, folder: Path, form: str) -> list[str]:
    """What is wrong with the table, by other programs than ours, and by ours."""
    # In a process of their own: threads of these libraries do not survive a later fork.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        rows = pool.submit(_rows, folder, form).result(_PATIENCE_S)
        verified = pool.submit(_verified, folder, topic.bootstrap).result(_PATIENCE_S)
    return [*topic.wrong(rows), *ledgers_wrong(folder), *verified]


def _verified(folder: Path, bootstrap: str) -> list[str]:
    found = ottla.lake.verify(str(folder), bootstrap=bootstrap)
    return [f"verify: {problem}" for problem in found.problems]


def _rows(folder: Path, form: str) -> list[Row]:
    query = 'select partition, "offset", value from read_parquet(?)'
    rows: list[Row] = duckdb.execute(query, [_files(folder, form)]).fetchall()
    return rows


def _files(folder: Path, form: str) -> list[str]:
    if form == "delta":
        from deltalake import DeltaTable

        return list(DeltaTable(str(folder)).file_uris())
    if form == "iceberg":
        from tests.unit.lake.logged.readers import iceberg

        return [task.file.file_path for task in iceberg(folder).scan().plan_files()]
    return list(ottla.lake.files(str(folder)))
