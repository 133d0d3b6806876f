"""What stands in for calls that a system lacks does what the calls do."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.base import file_lock, system


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """A file of ten bytes, open as a log is."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("pread", [os.pread, system.seek_and_read])
def test_a_read_at_a_position_is_no_matter_of_reads_before(
    file: int, pread: Callable[[int, int, int], bytes]
) -> None:
    """In the middle, before it, across the end and behind it."""
    found = [pread(file, 4, position) for position in (5, 1, 8, 20)]
    assert found == [b"5678", b"1234", b"89", b""]


@pytest.mark.parametrize("preadv", [os.preadv, system.read_and_copy])
def test_a_read_into_a_buffer_says_how_much_was_there(
    file: int, preadv: Callable[[int, list[bytearray], int], int]
) -> None:
    """The rest of the buffer stays as it was."""
    buffer = bytearray(b"......")
    assert preadv(file, [buffer], 7) == 3
    assert buffer == b"789..."


@pytest.mark.parametrize("writev", [os.writev, system.write_one_by_one])
def test_gathered_buffers_are_written_in_order(
    file: int, writev: Callable[[int, list[bytes]], int]
) -> None:
    """All of them on a disk with room."""
    assert writev(file, [b"ab", b"", b"cde"]) == 5
    assert os.pread(file, 99, 0) == b"0123456789abcde"


@pytest.mark.parametrize("write", [os.write, system.write_alone])
def test_appending_after_a_read_appends(file: int, write: Callable[[int, bytes], int]) -> None:
    """The position that a read left does not count."""
    system.seek_and_read(file, 2, 3)
    assert write(file, b"ab") == 2
    assert os.pread(file, 99, 0) == b"0123456789ab"


@pytest.mark.parametrize("pwrite", [os.pwrite, system.seek_and_write])
def test_a_write_at_a_position_overwrites(
    tmp_path: Path, pwrite: Callable[[int, bytes, int], int]
) -> None:
    """Of a file that is not opened for appending."""
    path = tmp_path / "other"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDWR)
    assert pwrite(descriptor, b"ab", 4) == 2
    os.close(descriptor)
    assert path.read_bytes() == b"0123ab6789"


def test_a_lock_holds_until_its_file_is_closed(tmp_path: Path) -> None:
    """Another descriptor of the same file does not get it before."""
    path = tmp_path / "lock"
    first, second, third = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(3))
    assert file_lock.try_lock(first)
    assert not file_lock.try_lock(second)
    assert not file_lock.is_free(third)
    os.close(first)
    assert file_lock.is_free(third)
    os.close(third)
    assert file_lock.try_lock(second)
    os.close(second)


_FILL = """
import resource, sys
from ottla.base.system import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def fill():
    del [bytearray(8 << 20) for _ in range(3)][:]
fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the malloc of another library")
def test_buffers_stand_in_memory_that_was_freed() -> None:
    """24 MiB of buffers, ten times over: the system gives their pages once and not ten times."""
    faults = {
        how: int(subprocess.check_output([sys.executable, "-c", _FILL, how]))
        for how in ("kept", "by default")
    }
    assert 5 * faults["kept"] < faults["by default"]
