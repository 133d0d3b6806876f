"""Laws of the filesystem seam, for the system's files and for those in memory."""

import errno
import fcntl
import os
from pathlib import Path
from random import Random

import pytest

from ottla.storage.disk.filesystem import FileSystem, OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem


@pytest.fixture(params=["system", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    """A filesystem and an existing folder in it."""
    if request.param == "system":
        return OsFileSystem(), str(tmp_path)
    filesystem = MemoryFileSystem()
    filesystem.mkdir("/tmp")
    return filesystem, "/tmp"


def test_appended_bytes_are_read_by_position(place: tuple[FileSystem, str]) -> None:
    """Reads past the end are short."""
    filesystem, folder = place
    file = filesystem.open(f"{folder}/file", create=True)
    file.append(b"hello ")
    file.append_many([b"wide ", memoryview(b"world")])
    assert (file.pread(4, 6), file.pread(100, 11), file.size()) == (b"wide", b"world", 16)
    buffer = bytearray(8)
    assert (file.read_into(buffer, 11), bytes(buffer[:5])) == (5, b"world")
    file.truncate(5)
    file.append(b"!")
    assert filesystem.read_bytes(f"{folder}/file") == b"hello!"


def test_names_can_be_changed_and_removed(place: tuple[FileSystem, str]) -> None:
    """Renaming replaces; making what is there and removing what is not is no error."""
    filesystem, folder = place
    assert filesystem.mkdir(f"{folder}/a/b") is True
    assert filesystem.mkdir(f"{folder}/a/b") is False
    for name in ("one", "two"):
        filesystem.open(f"{folder}/a/{name}", create=True).append(name.encode())
    filesystem.rename(f"{folder}/a/one", f"{folder}/a/two")
    assert filesystem.listdir(f"{folder}/a") == ["b", "two"]
    assert filesystem.read_bytes(f"{folder}/a/two") == b"one"
    filesystem.rename(f"{folder}/a", f"{folder}/c")
    assert (filesystem.exists(f"{folder}/a"), filesystem.size(f"{folder}/c/two")) == (False, 3)
    filesystem.unlink(f"{folder}/c/two")
    filesystem.unlink(f"{folder}/c/two")
    assert (filesystem.is_directory(f"{folder}/c/b"), filesystem.listdir(f"{folder}/c")) == (
        True,
        ["b"],
    )
    filesystem.rmdir(f"{folder}/c/b")
    assert filesystem.listdir(f"{folder}/c") == []


def test_missing_files_are_said_to_be_missing(place: tuple[FileSystem, str]) -> None:
    """Nothing is made by looking for it."""
    filesystem, folder = place
    for look in (filesystem.open, filesystem.read_bytes, filesystem.size):
        with pytest.raises(FileNotFoundError):
            look(f"{folder}/missing")
    with pytest.raises(FileNotFoundError):
        filesystem.listdir(f"{folder}/missing")


def test_lock_is_held_until_it_is_closed(place: tuple[FileSystem, str]) -> None:
    """One holder at a time."""
    filesystem, folder = place
    lock = filesystem.lock(f"{folder}/.lock")
    assert lock is not None
    assert filesystem.lock(f"{folder}/.lock") is None
    lock.close()
    assert filesystem.lock(f"{folder}/.lock") is not None


def test_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Records are nobody else's business."""
    OsFileSystem().mkdir(f"{tmp_path}/data")
    OsFileSystem().open(f"{tmp_path}/data/file", create=True)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "file").stat().st_mode & 0o777 == 0o600


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take less than it is given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:3]))
    monkeypatch.setattr(os, "writev", lambda descriptor, data: write(descriptor, data[0] + b"4"))
    file = OsFileSystem().open(f"{tmp_path}/file", create=True)
    file.append(b"0123456789")
    file.append_many([b"123", b"4567", b"89"])
    assert (tmp_path / "file").read_bytes() == b"0123456789123456789"


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    """A child process must not hold the lock or the log."""
    descriptor = OsFileSystem().open(f"{tmp_path}/file", create=True).fileno()
    assert descriptor is not None
    assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_memory_is_full_at_its_capacity() -> None:
    """What fits is written, as a disk does it."""
    filesystem = MemoryFileSystem(capacity_bytes=5)
    file = filesystem.open("/file", create=True)
    with pytest.raises(OSError, match="No space left") as caught:
        file.append(b"1234567")
    assert (caught.value.errno, file.pread(10, 0)) == (errno.ENOSPC, b"12345")


def test_power_cut_in_memory_loses_only_what_was_not_flushed() -> None:
    """Every outcome is one that a disk may show: names and bytes are flushed apart."""
    seen = set()
    for seed in range(200):
        filesystem = MemoryFileSystem()
        file = filesystem.open("/file", create=True)
        file.append(b"kept")
        file.fsync()
        filesystem.fsync_directory("/")
        file.append(b"lost")
        filesystem.rename("/file", "/other")
        filesystem.crash(Random(seed))
        [name] = filesystem.listdir("/")
        content = filesystem.read_bytes(f"/{name}")
        assert content.startswith(b"kept")
        seen.add((name, content))
        with pytest.raises(OSError, match="closed"):
            file.append(b"x")
    assert {("file", b"kept"), ("other", b"kept"), ("file", b"keptlost")} <= seen


def test_failed_fsync_in_memory_forgets_what_was_dirty() -> None:
    """As the kernel does: a second fsync succeeds and saves nothing."""
    filesystem = MemoryFileSystem()
    file = filesystem.open("/file", create=True)
    filesystem.fsync_directory("/")
    file.append(b"lost")
    filesystem.fault = lambda operation, _: OSError("bad") if operation == "fsync" else None
    with pytest.raises(OSError, match="bad"):
        file.fsync()
    filesystem.fault = None
    file.fsync()
    outcomes = set()
    filesystem.crash(Random(3))
    outcomes.add(filesystem.read_bytes("/file"))
    assert outcomes != {b"lost"}
