"""Brokers of one machine share a SQLite file: real processes that die, stop and starve."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import time

import pytest

from ottla.coordination.connect import connect
from ottla.coordination.interface.store import Create
from tests.integration.coordination.processes import members


@pytest.fixture
def address(tmp_path):
    return f"sqlite://{tmp_path}/store.db"


def test_the_death_of_a_process_is_seen_at_once(address):
    """By the kernel's lock: its lease would have lasted for many minutes more."""
    with members(address, "1", "2", "3", lease_ms=3_600_000) as (first, second, third):
        third.kill()
        first.wait_for("ids 1,2")
        second.wait_for("ids 1,2")
        second.kill()
        first.wait_for("ids 1")


def test_a_process_that_stands_still_loses_its_session_when_its_lease_ends(address):
    """And is told as soon as it goes on; then it comes back with a session of its own."""
    with members(address, "1", "2", lease_ms=1_000) as (first, second):
        second.pause()
        first.wait_for("ids 1")
        second.resume()
        second.wait_for("expired 1")
        first.wait_for("ids 1,2")


def test_a_loop_that_does_not_turn_does_not_live_for_ever(address):
    """The thread that shows life shows the loop's."""
    with members(address, "1", "2", lease_ms=500) as (first, second):
        second.tell("block 3600")
        first.wait_for("ids 1")


def test_processes_that_starve_keep_their_sessions(address):
    """More work than processors, for longer than a lease, ends none."""
    burner = [sys.executable, "-c", "while True: pass"]
    with members(address, "1", "2", lease_ms=3_000) as (first, second):
        burners = [subprocess.Popen(burner) for _ in range(2 * (os.cpu_count() or 1))]
        try:
            time.sleep(4)
        finally:
            for child in burners:
                child.kill()
                child.wait()
        second.tell("create /ids/after")
        first.wait_for("ids 1,2,after")
        assert not any(line.startswith("expired") for line in first.said + second.said)


def test_a_store_that_nobody_can_write_ends_no_session(tmp_path):
    """Another program holds the file for longer than the leases; then all goes on.

    Who has stood still for a part of its lease must ask the file whether it lives, and cannot: so
    it is no wonder if a lease ends on a machine that stands still for as long, and a longer one
    is tried.
    """
    assert any(outlives_a_held_store(tmp_path / f"{ms}.db", ms) for ms in (1_000, 4_000, 20_000))


def outlives_a_held_store(path, lease_ms):
    """Whether both members keep their sessions, and go on afterwards."""
    with members(f"sqlite://{path}", "1", "2", lease_ms=lease_ms) as (first, second):
        holder = sqlite3.connect(path, isolation_level=None, timeout=60)
        holder.execute("BEGIN IMMEDIATE")
        time.sleep(1.5 * lease_ms / 1_000)
        holder.execute("ROLLBACK")
        holder.close()
        second.tell("create /ids/after")
        first.wait_for("ids 1,2,after")
        return not any(line.startswith("expired") for line in first.said + second.said)


def test_what_the_dead_left_is_removed_by_the_next(address, tmp_path):
    """Also where nobody was left to see them die."""
    with members(address, "1", "2", lease_ms=3_600_000) as (first, second):
        first.pause()
        second.kill()
        first.kill()

    async def main():
        store = await connect(address)
        assert await store.children("/ids") in (["1", "2"], ["1"])
        await store.multi([Create("/ids/3", b"", await store.open_session(1_000))])
        assert await store.children("/ids") == ["3"]
        await store.close()
        assert os.listdir(tmp_path) == ["store.db"]

    asyncio.run(main())


def test_a_process_killed_while_it_writes_leaves_the_store_whole(address):
    """Every answered change is there, and nothing is damaged."""

    async def count():
        store = await connect(address)
        nodes = await store.subtree("/written")
        await store.close()
        return len(nodes)

    for _ in range(3):
        with members(address, "1", lease_ms=3_600_000) as (writer,):
            writer.tell("write")
            writer.wait_for("wrote 20")
            writer.kill()
            answered = [line for line in writer.said if line.startswith("wrote ")]
            last = int(answered[-1].removeprefix("wrote "))
        # Itself, and perhaps one whose answer did not get out.
        assert asyncio.run(count()) >= last + 1
