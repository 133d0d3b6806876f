"""Rounds of a load that is killed, or whose broker is: after a step of it, or at any moment.

A process is forked for each load, so that a round takes a fraction of a second; it may be a follow
that ends when all is loaded. A load whose broker dies ends or fails, and is run again. What the
table holds in the end is read by other programs: delta-rs, pyiceberg, and DuckDB over the files.
"""

import faulthandler
import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb

import ottla.lake
from tests.system.lake.kills.broker import MortalBroker
from tests.system.lake.kills.topics import Row, Topic, ledgers_wrong

# All of them together; a format has some of its own, and does not meet the others.
STEPS = (
    "planned",
    "files written",
    "manifest stored",
    "manifest offered",
    "manifest written",
    "head written",
    "checkpoint written",
)
VICTIMS = ("loader", "broker")
VERBS = ("load", "follow")
_PATIENCE_S = 150
_RECORDS = 60


@dataclass
class Tally:
    """How many loads ended how."""

    killed: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    failed: int = 0  # Without their broker.

    @property
    def kills(self) -> int:
        return sum(self.killed.values())


@dataclass(frozen=True)
class Kill:
    """What dies in a round, and when: after a step, else so long after the start."""

    victim: str
    verb: str
    step: str | None = None
    after_s: float | None = None


_NONE = Kill("nothing", "load")


def play(
    topic: Topic,
    folder: Path,
    form: str,
    kills: int,
    chance: random.Random,
    broker: MortalBroker,
    victim: str,
    verb: str,
) -> Tally:
    """Write and load, until `victim` was killed so often; then load the rest."""
    tally = Tally()
    span_s = 0.3
    while tally.kills < kills:
        topic.write(_RECORDS)
        step = chance.choice([*STEPS, *(["any moment"] * 3)])
        began = time.monotonic()
        if step == "any moment":
            kill = Kill(victim, verb, after_s=chance.uniform(0.0, span_s))
        else:
            kill = Kill(victim, verb, step)
        happened, code = _load(topic, folder, form, kill, broker)
        tally.killed[step] += happened
        tally.failed += code > 0
        if not happened:
            tally.ended += 1
            span_s = 0.2 * span_s + 0.8 * (time.monotonic() - began)
    assert _load(topic, folder, form, _NONE, broker) == (False, 0), "the last load failed"
    return tally


def _load(
    topic: Topic, folder: Path, form: str, kill: Kill, broker: MortalBroker
) -> tuple[bool, int]:
    """Load in a process of its own; whether the victim was killed, and the load's exit code."""
    before = broker.pid
    pid = os.fork()
    if pid == 0:
        faulthandler.enable()  # What hangs is aborted, and says where it hung.
        os._exit(_loaded(topic, folder, form, kill, before))
    status = None
    try:
        if kill.after_s is not None:
            status = _ended(pid, kill.after_s)
            if status is None:
                _kill(pid if kill.victim == "loader" else before)
        deadline = time.monotonic() + _PATIENCE_S
        while status is None:
            broker.revive()
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGABRT)
            status = _ended(pid, 0.01)
        broker.revive()
    finally:
        if status is None:
            os.kill(pid, signal.SIGKILL)  # It holds the output open of the one that failed.
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}"
        return True, 0
    is_broker_killed, code = broker.pid != before, os.WEXITSTATUS(status)
    assert code == 0 or is_broker_killed, "a load failed; its error is above"
    return is_broker_killed, code


def _kill(pid: int) -> None:
    """End a process, and wait until its last thread has ended: a broker would else seem alive."""
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        select.select([handle], [], [])
    finally:
        os.close(handle)


def _ended(pid: int, within_s: float) -> int | None:
    """The status of a child that has ended."""
    deadline = time.monotonic() + within_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.002)


def _loaded(topic: Topic, folder: Path, form: str, kill: Kill, broker_pid: int) -> int:
    victim = os.getpid() if kill.victim == "loader" else broker_pid
    left = [kill.step]

    def on_step(done: str) -> None:
        if done == left[0]:
            left[0] = None
            _kill(victim)

    more: dict[str, Any] = {"once": True} if kill.verb == "follow" else {}
    run: Callable[..., object] = ottla.lake.follow if kill.verb == "follow" else ottla.lake.load
    try:
        run(
            topic.name,
            str(folder),
            bootstrap=topic.bootstrap,
            runner=ottla.lake.run_here,
            format=form,
            accept_loss=True,
            watch=ottla.lake.Observer(on_step=on_step),
            **more,
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
    paths = files_of(folder, form)
    if not paths:
        return []  # All of its transactions were aborted.
    query = 'select partition, "offset", value from read_parquet(?)'
    rows: list[Row] = duckdb.execute(query, [paths]).fetchall()
    return rows


def files_of(folder: Path, form: str) -> list[str]:
    """The table's files as readers of its format find them."""
    if form == "delta":
        from deltalake import DeltaTable

        return list(DeltaTable(str(folder)).file_uris())
    if form == "iceberg":
        from tests.unit.lake.logged.readers import iceberg

        return [task.file.file_path for task in iceberg(folder).scan().plan_files()]
    return list(ottla.lake.files(str(folder)))
