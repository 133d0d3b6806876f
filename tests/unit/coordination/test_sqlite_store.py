"""What the SQLite file adds: it outlives processes, and several may share it."""

import asyncio
import os

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordination.session_lock import SessionLock
from ottla.coordination.sqlite import SqliteStore
from ottla.coordination.store import Node, StoreDamaged, StoreUnavailable, create, set_data


def test_what_was_written_is_there_after_reopening(tmp_path):
    """The file is the store."""

    async def main():
        path = str(tmp_path / "store.db")
        store = await SqliteStore.open(path)
        await create(store, "/a", b"x")
        await set_data(store, "/a", b"y")
        await store.close()
        again = await SqliteStore.open(path)
        assert await again.get("/a") == Node(b"y", 1)
        await again.close()

    asyncio.run(main())


def test_every_commit_waits_for_the_disk(tmp_path):
    """WAL with synchronous=FULL (2): what was answered survives a power cut."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        modes = await store._ask(
            lambda: [
                store._file._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous")
            ]
        )
        assert modes == ["wal", 2]
        await store.close()

    asyncio.run(main())


def test_closing_leaves_no_lock_file_behind(tmp_path):
    """Only the store itself stays in the folder."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        await store.open_session(1000)
        assert any(".session-" in name for name in os.listdir(tmp_path))
        await store.close()
        assert os.listdir(tmp_path) == ["store.db"]

    asyncio.run(main())


def test_a_lock_is_held_by_one(tmp_path):
    """A second taker gets None, and may take it once it is released."""
    path = str(tmp_path / "lock")
    lock = SessionLock.take(path)
    assert SessionLock.take(path) is None
    lock.release()
    again = SessionLock.take(path)
    assert again is not None
    again.release()


def test_a_store_that_cannot_be_opened_says_where_and_what_to_do(tmp_path):
    """The error carries the path."""

    async def main():
        path = str(tmp_path / "no" / "folder" / "store.db")
        with pytest.raises(StoreUnavailable) as raised:
            await SqliteStore.open(path)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert path in raised.value.message

    asyncio.run(main())


def test_a_file_that_is_no_store_is_refused(tmp_path):
    """Not overwritten."""

    async def main():
        path = tmp_path / "store.db"
        path.write_bytes(b"something else entirely, longer than a header" * 40)
        with pytest.raises(StoreDamaged, match="no store"):
            await SqliteStore.open(str(path))
        assert path.read_bytes().startswith(b"something else")

    asyncio.run(main())


def test_a_closed_store_answers_nobody(tmp_path):
    """And closing twice is fine."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable):
            await store.get("/a")

    asyncio.run(main())
