"""The note of a broker's sessions is read as it was written."""

import asyncio
from collections.abc import Sequence

from ottla.broker.cluster.old_session import SESSION_NOTE, SessionNote
from ottla.storage.disk.memory_filesystem import MemoryFileSystem


def written(sessions: Sequence[int]) -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    filesystem.mkdir("data")
    asyncio.run(SessionNote(filesystem, "data").write(sessions))
    return filesystem


def test_sessions_are_read_as_they_were_written() -> None:
    """One id a line."""
    filesystem = written((7, 8))
    assert filesystem.read_bytes(f"data/{SESSION_NOTE}") == b"7\n8\n"
    assert SessionNote(filesystem, "data").read() == (7, 8)


def test_an_unreadable_note_is_none() -> None:
    """Whatever bytes are in it."""
    filesystem = written([])
    filesystem.open(f"data/{SESSION_NOTE}", create=True).append(b"\xff\n")
    assert SessionNote(filesystem, "data").read() == ()
