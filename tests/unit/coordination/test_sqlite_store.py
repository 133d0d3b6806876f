"""What the SQLite file adds: it outlives processes, and several may share it."""

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordination.connect import connect
from ottla.coordination.interface.store import (
    Create,
    Node,
    SessionExpired,
    StoreDamaged,
    StoreRolledBack,
    StoreUnavailable,
)
from ottla.coordination.sqlite.file import Bell
from ottla.coordination.sqlite.peers import SessionLock
from ottla.coordination.sqlite.session import CLOCK
from ottla.coordination.sqlite.sqlite import SqliteStore
from tests.unit.coordination.contract import eventually
from tests.unit.coordination.writes import create, delete, set_data


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
    """WAL with synchronous=FULL (2): what was answered survives a power cut.

    With secure_delete, removed credentials do not stay in free pages.
    """

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        modes = await store._ask(
            lambda: [
                store._file._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "secure_delete")
            ]
        )
        assert modes == ["wal", 2, 1]
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


def test_the_file_is_for_its_owner_only(tmp_path):
    """It may hold credentials; the log files beside it too."""

    async def main():
        path = tmp_path / "store.db"
        path.touch(0o644)
        store = await SqliteStore.open(str(path))
        await create(store, "/a")
        await store.open_session(1000)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert len(list(tmp_path.iterdir())) == 4
        assert modes == {0o600}
        await store.close()

    asyncio.run(main())


def test_files_that_were_open_to_others_are_narrowed_with_a_line_that_says_so(tmp_path, caplog):
    """The main file and those beside it, and each once; a private store says nothing."""

    async def main():
        path = tmp_path / "store.db"
        store = await SqliteStore.open(str(path))
        await create(store, "/a")
        assert caplog.messages == []
        files = [path, tmp_path / "store.db-wal"]
        for file in files:
            file.chmod(0o644)
        for _ in range(2):
            other = await SqliteStore.open(str(path))
            await other.close()
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert [f"{file} was open to other users" in caplog.text for file in files] == [True, True]
        assert len(caplog.messages) == 2
        assert "(mode 0644)" in caplog.text
        assert "give users new passwords" in caplog.text
        await store.close()

    asyncio.run(main())


def test_a_store_of_another_user_is_refused_with_both_users(tmp_path, monkeypatch):
    """A container that runs as another user than before, for example."""

    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    async def main():
        monkeypatch.setattr("ottla.coordination.sqlite.file.os.open", denied)
        with pytest.raises(StoreUnavailable) as refused:
            await SqliteStore.open(str(tmp_path / "store.db"))
        return refused.value.message

    said = asyncio.run(main())
    assert f"Permission denied ({tmp_path} belongs to user {os.geteuid()}" in said
    assert "run the broker as the owner, or `chown -R` the folder" in said


def test_the_stores_folder_is_made_for_its_owner_only(tmp_path):
    """Whatever the process's mask is."""

    async def main():
        store = await connect(f"sqlite://{tmp_path}/new/store.sqlite")
        await store.close()

    before = os.umask(0)
    try:
        asyncio.run(main())
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in sorted(tmp_path.rglob("*"))]
    assert modes == [0o700, 0o600]


def test_an_older_copy_in_its_place_is_refused_by_who_saw_more(tmp_path):
    """S15 (d): also after it has grown past what the broker saw."""

    async def main():
        path, copy = tmp_path / "store.db", tmp_path / "copy.db"
        store = await SqliteStore.open(str(path))
        await create(store, "/a")
        await store.close()
        shutil.copy(path, copy)
        store = await SqliteStore.open(str(path))
        await set_data(store, "/a", b"x")
        mark = await store.history()
        await store.close()
        shutil.copy(copy, path)
        store = await SqliteStore.open(str(path))
        with pytest.raises(StoreRolledBack, match="an older copy stands in its place"):
            await store.require_history(mark)
        for _ in range(3):
            await set_data(store, "/a", b"y")
        with pytest.raises(StoreRolledBack):
            await store.require_history(mark)
        await store.require_history(await store.history())
        await store.close()

    asyncio.run(main())


def test_a_file_replaced_while_in_use_is_noticed(tmp_path):
    """Whoever goes on with the old one would decide alone."""

    async def main():
        path = tmp_path / "store.db"
        store = await SqliteStore.open(str(path))
        await create(store, "/a")
        shutil.copy(path, tmp_path / "copy.db")
        os.replace(tmp_path / "copy.db", path)
        with pytest.raises(StoreDamaged, match="was replaced while it was in use"):
            await set_data(store, "/a", b"x")
        await store.close()

    asyncio.run(main())


def test_a_node_that_is_not_what_was_written_is_refused(tmp_path):
    """A flipped byte in its data, which SQLite itself does not see."""

    async def main():
        path = tmp_path / "store.db"
        store = await SqliteStore.open(str(path))
        await create(store, "/a", b"the one and only")
        await store.close()
        content = path.read_bytes()
        assert content.count(b"the one and only") == 1
        path.write_bytes(content.replace(b"the one and only", b"the one xnd only"))
        with pytest.raises(StoreDamaged, match="node /a is not what was written"):
            await SqliteStore.open(str(path))

    asyncio.run(main())


def test_a_damaged_page_is_refused(tmp_path):
    """Before anything is read from it."""

    async def main():
        path = tmp_path / "store.db"
        store = await SqliteStore.open(str(path))
        for number in range(300):
            await create(store, f"/node-{number}", b"x" * 100)
        await store.close()
        content = bytearray(path.read_bytes())
        middle = len(content) // 2 // 4096 * 4096
        content[middle : middle + 4096] = bytes(4096)
        path.write_bytes(content)
        with pytest.raises(StoreDamaged):
            await SqliteStore.open(str(path))

    asyncio.run(main())


def test_a_store_of_a_newer_version_is_left_alone(tmp_path):
    """Run the newer one."""

    async def main():
        path = tmp_path / "store.db"
        await (await SqliteStore.open(str(path))).close()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 99")
        with pytest.raises(StoreDamaged, match="newer Ottla"):
            await SqliteStore.open(str(path))

    asyncio.run(main())


def test_sessions_of_another_boot_are_void(tmp_path):
    """Whatever their locks and leases seem to say."""

    async def main():
        path = str(tmp_path / "store.db")
        old, new = await SqliteStore.open(path), await SqliteStore.open(path)
        session = await old.open_session(3_600_000)
        await old.multi([Create("/me", b"", session)])
        await old._ask(
            lambda: old._file._connection.execute("UPDATE sessions SET boot_id = 'before'")
        )
        await new.open_session(3_600_000)
        assert await new.get("/me") is None
        await eventually(lambda: session.expired)
        for store in (old, new):
            await store.close()

    asyncio.run(main())


def test_a_session_that_shows_no_life_is_ended_by_a_peer(tmp_path):
    """Its holder is told, can do nothing in its name any more, and opens another."""

    async def main():
        path = str(tmp_path / "store.db")
        still, awake = await SqliteStore.open(path), await SqliteStore.open(path)
        await awake.open_session(3_600_000)
        session = await still.open_session(100)
        await still.multi([Create("/me", b"", session)])
        ended = []
        session.on_expired(lambda: ended.append(1))
        session._lease.stop()
        # The peer looks every eighth of its own lease: let it be a short one.
        await awake._session.close()
        await awake.open_session(100)
        await eventually(lambda: ended)
        assert await awake.get("/me") is None
        with pytest.raises(SessionExpired):
            await still.multi([Create("/me", b"", session)])
        assert (await still.open_session(3_600_000)).generation == 2
        for store in (still, awake):
            await store.close()

    asyncio.run(main())


def test_a_peer_is_looked_at_when_its_silence_gets_too_long(tmp_path):
    """And not a beat later: others wait for the end of its session."""

    async def main():
        path = str(tmp_path / "store.db")
        still, awake = await SqliteStore.open(path), await SqliteStore.open(path)
        lease = (await awake.open_session(3_600_000))._lease
        session = await still.open_session(100_000)
        session._lease.stop()
        await eventually(lease._peers)
        assert lease._look_at_peers(CLOCK.monotonic_ms()) == session.confirmed_ms + 100_001
        for store in (still, awake):
            await store.close()

    asyncio.run(main())


def test_a_late_lease_is_renewed_where_nobody_ended_it(tmp_path):
    """A pause that nobody saw costs nothing."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        session = await store.open_session(200)
        late_ms = session.confirmed_ms - 1_000_000
        session._lease.confirmed_ms = late_ms
        await eventually(lambda: session.confirmed_ms > late_ms + 900_000)
        assert not session.expired
        await store.close()

    asyncio.run(main())


def test_who_looks_seldom_is_told_of_everything(tmp_path):
    """More changes than are kept: every watch is called."""

    async def main():
        path = str(tmp_path / "store.db")
        watching, writing = await SqliteStore.open(path), await SqliteStore.open(path)
        heard = []
        watching.watch_data("/never", lambda: heard.append(1))
        watching._file._seen_id = -5
        await create(writing, "/a")
        await eventually(lambda: heard)
        for store in (watching, writing):
            await store.close()

    asyncio.run(main())


def test_changes_are_heard_without_a_bell(tmp_path, monkeypatch):
    """Where the system has none, looking again and again does it."""
    monkeypatch.setattr(Bell, "listen", lambda path: None)

    async def main():
        path = str(tmp_path / "store.db")
        watching, writing = await SqliteStore.open(path), await SqliteStore.open(path)
        heard = []
        watching.watch_data("/a", lambda: heard.append(1))
        await create(writing, "/a")
        await eventually(lambda: heard)
        for store in (watching, writing):
            await store.close()

    asyncio.run(main())


def test_a_file_that_others_hold_is_unavailable(tmp_path, monkeypatch):
    """After a bounded time; and serves again afterwards."""
    monkeypatch.setattr("ottla.coordination.sqlite.file._BUSY_TIMEOUT_S", 0.01)

    async def main():
        path = tmp_path / "store.db"
        store = await SqliteStore.open(str(path))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="another program holds the file"):
                await create(store, "/a")
            other.execute("ROLLBACK")
        await create(store, "/a")
        await store.close()

    asyncio.run(main())


def test_a_session_that_is_not_awaited_to_its_begin_leaves_nothing(tmp_path):
    """A start that is cancelled here leaves no lock, which would show a life that there is not."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        writer = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        opening = asyncio.create_task(store.open_session(10_000))
        # The lock is taken, and the row waits for the other writer.
        await eventually(lambda: bool(list(tmp_path.glob("*.session-*"))))
        opening.cancel()
        await asyncio.sleep(0)
        writer.execute("ROLLBACK")
        writer.close()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await store.close()
        assert list(tmp_path.glob("*.session-*")) == []
        again = await SqliteStore.open(str(tmp_path / "store.db"))
        assert await again._ask(again._file.sessions) == []
        await again.close()

    asyncio.run(main())


class SteppedThread(ThreadPoolExecutor):
    """A thread whose calls wait, each for a permit of its own."""

    def __init__(self):
        super().__init__(1)
        self.permits = threading.Semaphore(0)
        self.calls_asked = self.calls_done = 0

    def submit(self, function, /, *arguments):
        self.calls_asked += 1

        def call():
            self.permits.acquire()
            try:
                return function(*arguments)
            finally:
                self.calls_done += 1

        return super().submit(call)


@pytest.mark.parametrize("ends", ["session", "store"])
@pytest.mark.parametrize("calls", range(4))
def test_a_close_that_is_cancelled_leaves_no_lock(tmp_path, calls, ends):
    """Whatever call to the file it waits for: else the session would look alive."""

    async def main():
        store = await SqliteStore.open(str(tmp_path / "store.db"))
        session = await store.open_session(10_000)
        # The first look at the file's sessions is over.
        await eventually(lambda: not store._looking)
        thread, store._thread = store._thread, SteppedThread()
        thread.shutdown()
        closing = asyncio.create_task((session if ends == "session" else store).close())
        for done in range(1, calls + 1):
            store._thread.permits.release()
            await eventually(lambda done=done: store._thread.calls_done >= done or closing.done())
        thread = store._thread
        await eventually(lambda: thread.calls_asked > thread.calls_done or closing.done())
        closing.cancel()
        store._thread.permits.release(1_000_000)
        with contextlib.suppress(asyncio.CancelledError):
            await closing
        await store.close()
        assert list(tmp_path.glob("*.session-*")) == []
        assert session.expired

    asyncio.run(main())


def _files_with(path, needle):
    return [each.name for each in sorted(path.parent.iterdir()) if needle in each.read_bytes()]


def test_a_credential_that_is_removed_is_in_none_of_the_files(tmp_path):
    """Neither in free pages nor in the write-ahead log, whose older frames would keep it."""
    path = tmp_path / "store.db"
    first, second = b"StoredKey-of-the-first" * 300, b"StoredKey-of-the-second" * 300

    async def main():
        store = await SqliteStore.open(str(path), ["/secret"])
        other = await SqliteStore.open(str(path), ["/secret"])
        for parent in ("/secret", "/open"):
            await create(store, parent)
            await create(store, f"{parent}/alice", first)
        assert _files_with(path, first[:22])
        await set_data(store, "/secret/alice", second)
        await delete(store, "/open/alice")
        await set_data(store, "/secret/alice", b"third")
        assert _files_with(path, second[:23]) == []
        await create(store, "/secret/bob", first)
        await delete(store, "/secret/bob")
        assert _files_with(path, first[:22]) == []
        assert await other.get("/secret/alice") == Node(b"third", 2)
        await other.close()
        await store.close()

    asyncio.run(main())


def test_a_reader_elsewhere_delays_the_wiping_and_nothing_else(tmp_path):
    """The change is answered; the next look for changes wipes."""
    path = tmp_path / "store.db"

    async def main():
        store = await SqliteStore.open(str(path), ["/secret"])
        await create(store, "/secret")
        await create(store, "/secret/alice", b"the-old-credential" * 300)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM nodes").fetchone()
        await delete(store, "/secret/alice")
        assert _files_with(path, b"the-old-credential")
        reader.execute("ROLLBACK")
        reader.close()
        await eventually(lambda: not _files_with(path, b"the-old-credential"))
        await store.close()

    asyncio.run(main())
