"""The note of a broker's sessions: read again, and worth nothing in a copy of its folder."""

import asyncio
from collections.abc import Sequence

from ottla.broker.cluster.old_session import SESSION_NOTE, NotedSession, SessionNote
from ottla.storage.disk.memory_filesystem import MemoryFileSystem


def written(sessions: Sequence[NotedSession]) -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    filesystem.mkdir("data")
    asyncio.run(SessionNote(filesystem, "data").write(sessions))
    return filesystem


def test_sessions_are_read_as_they_were_written() -> None:
    """With a credential or without one."""
    sessions = (NotedSession(7), NotedSession(8, "8:ff"))
    assert SessionNote(written(sessions), "data").read() == sessions


def test_a_credential_is_worth_nothing_elsewhere() -> None:
    """Nobody there has the lock that shows the session's holder to be dead."""
    filesystem = written([NotedSession(8, "8:ff")])
    filesystem.mkdir("copy")
    filesystem.rename(f"data/{SESSION_NOTE}", f"copy/{SESSION_NOTE}")
    assert SessionNote(filesystem, "copy").read() == (NotedSession(8),)


def test_a_credential_is_worth_nothing_after_a_power_cut() -> None:
    """The lock went with the system, not with the process."""
    filesystem = written([NotedSession(8, "8:ff")])
    filesystem.crash()
    assert SessionNote(filesystem, "data").read() == (NotedSession(8, "8:ff"),)
    filesystem.power_cuts += 1
    assert SessionNote(filesystem, "data").read() == (NotedSession(8),)


def test_a_note_of_ids_alone_is_read() -> None:
    """As earlier versions wrote it."""
    filesystem = written([NotedSession(7), NotedSession(8)])
    assert filesystem.read_bytes(f"data/{SESSION_NOTE}") == b"7\n8\n"
    assert SessionNote(filesystem, "data").read() == (NotedSession(7), NotedSession(8))


def test_an_unreadable_note_is_none() -> None:
    """It only saves waiting."""
    filesystem = written([])
    filesystem.open(f"data/{SESSION_NOTE}", create=True).append(b"\xff\n")
    assert SessionNote(filesystem, "data").read() == ()
